internal import VirtualRadio
internal import Wording

extension CommandDeclaration {
  /// `help [TOPIC...]`: a command's help text, or a text of its own.
  static let help = CommandDeclaration(
    name: "help", summary: "Explain a command or a topic: \(HelpTopic.names)",
    discussion: ["Without a topic: all commands. Topics that are no commands: \(HelpTopic.names)."],
    operands: [HelpCommand.topic.declaration],
    examples: [
      Example(line: "bluehaul help manifest create", effect: "the options of one command"),
      Example(line: "bluehaul help exit-codes", effect: "what the tool ends with, and when"),
    ],
    run: { try HelpCommand.run($0) })
}

enum HelpCommand {
  static let topic = Operand("TOPIC", .text("TOPIC"), "A command or topic", count: .any)

  static func run(_ invocation: Invocation) throws {
    let words = invocation.arguments.all(topic)
    let help = HelpText(columns: invocation.environment.helpColumns)
    var path = CommandPath(root: .bluehaul)
    if let topic = words.first.flatMap(HelpTopic.init(rawValue:)), words.count == 1 {
      invocation.environment.output.write(topic.text(help))
      return
    }
    if let topic = words.first(where: { HelpTopic(rawValue: $0) != nil }), words.count > 1 {
      throw UsageError("\(topic) is a topic of its own", command: "bluehaul help")
    }
    for word in words {
      guard let command = path.command.subcommand(word) else {
        let names = path.command.subcommands.map(\.name) + (path.commands.count == 1 ? HelpTopic.all : [])
        let meant = Spelling.closest(to: word, among: names).map { "; did you mean \($0)?" } ?? ""
        throw UsageError(
          "there is no help on \"\(Printable.text(word))\"\(meant)",
          command: CommandPath(root: .bluehaul).line)
      }
      path.enter(command)
    }
    invocation.environment.output.write(help.text(for: path))
  }
}

/// Help texts that belong to no command.
enum HelpTopic: String, CaseIterable {
  case exitCodes = "exit-codes"
  case link, fault

  static var all: [String] { allCases.map(\.rawValue) }
  static var names: String { all.joined(separator: ", ") }

  func text(_ help: HelpText) -> String {
    switch self {
    case .exitCodes:
      "Exit codes of bluehaul\n\n"
        + help.table(ExitCode.table.map { ("\($0.code.rawValue)", $0.meaning) }) + "\n"
    case .link:
      help.wrap(
        "A simulated link: --link KEY=VALUE,... What is not said is as in \(LinkParameters()).", indent: 0)
        + "\n\n" + help.table(LinkParameters.keys.map { ($0.name, $0.meaning) }) + "\n"
    case .fault:
      help.wrap(
        "Faults of a simulated link: --fault FAULT,... or several --fault. WHEN is a number of bytes of the transfer"
          + " (100000, 64KiB), a share of it (40%), or a time since the link was made (2s). P is a probability: 0.01 or 1%.",
        indent: 0)
        + "\n\n" + help.table(FaultPlan.forms.map { ($0.syntax, $0.meaning) }) + "\n"
    }
  }
}
