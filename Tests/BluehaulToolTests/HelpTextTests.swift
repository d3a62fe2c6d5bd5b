import Testing

@testable import BluehaulTool

@Suite struct HelpTextTests {
  static let path: CommandPath = {
    let command = CommandDeclaration(
      name: "send", summary: "Send files to a device",
      discussion: ["A paragraph that is long enough to need a second line when columns are few."],
      operands: [Operand("FILE", .text("FILE"), "What to send", count: .oneOrMore).declaration],
      sections: [
        .init(
          title: "Options",
          options: [
            Option("to", .text("NAME"), "The device that is meant", isRequired: true).declaration,
            Option("segment-size", .size().named("SIZE"), "How much is checked at a time").declaration,
          ])
      ],
      examples: [.init(line: "tool send a.bin --to bench", effect: "one file")], run: { _ in })
    let root = CommandDeclaration(
      name: "tool", summary: "A tool",
      sections: [
        .init(
          title: "Global options", options: [Flag("quiet", short: "q", "Say less").declaration],
          isInherited: true)
      ], subcommands: [command])
    var path = CommandPath(root: root)
    path.enter(command)
    return path
  }()

  @Test func wide() {
    #expect(
      HelpText(columns: 80).text(for: Self.path) == """
        Send files to a device

        Usage: tool send FILE... --to NAME [options]

        A paragraph that is long enough to need a second line when columns are few.

        Operands:
          FILE...  What to send

        Options:
          --to NAME            The device that is meant
          --segment-size SIZE  How much is checked at a time

        Global options:
          -q, --quiet  Say less

        Examples:
          tool send a.bin --to bench
              one file

        """)
  }

  @Test func narrow() {
    #expect(
      HelpText(columns: 40).text(for: Self.path) == """
        Send files to a device

        Usage: tool send FILE... --to NAME
            [options]

        A paragraph that is long enough to need
        a second line when columns are few.

        Operands:
          FILE...  What to send

        Options:
          --to NAME
                    The device that is meant
          --segment-size SIZE
                    How much is checked at a
                    time

        Global options:
          -q, --quiet
                    Say less

        Examples:
          tool send a.bin --to bench
              one file

        """)
  }

  @Test(arguments: [0, 40, 57, 80, 1000])
  func everyCommandFitsTheTerminal(columns: Int) {
    for path in CommandPath.all {
      for line in HelpText(columns: columns).text(for: path).split(separator: "\n") {
        let isExample = path.command.examples.contains { line == "  \($0.line)" }
        #expect(isExample || line.count <= max(40, columns), "\(path.line): \(line)")
        #expect(line.last != " ")
      }
    }
  }

  @Test(arguments: [["link", "fault"], ["push", "fault"], ["exit-codes", "link"]])
  func oneTopicAtATime(words: [String]) async {
    let run = await ToolRun(["help"] + words)
    #expect(run.code == .usage)
    #expect(run.errors.contains("is a topic of its own") && !run.errors.contains("did you mean"))
  }

  @Test func everyCommandExplainsItself() {
    for path in CommandPath.all {
      let command = path.command
      #expect(!command.summary.hasSuffix("."))
      #expect(command.run != nil || !command.subcommands.isEmpty, "\(path.line) does nothing")
      let names = path.options.map(\.name)
      #expect(Set(names).count == names.count, "\(path.line) declares an option twice")
      let shorts = path.options.compactMap(\.short)
      #expect(Set(shorts).count == shorts.count, "\(path.line) declares a short option twice")
      for option in path.options { #expect(!option.help.isEmpty && !option.help.hasSuffix(".")) }
    }
  }
}

extension CommandPath {
  /// Every command of the tool.
  static var all: [CommandPath] {
    func below(_ path: CommandPath) -> [CommandPath] {
      [path]
        + path.command.subcommands.flatMap { command in
          var next = path
          next.enter(command)
          return below(next)
        }
    }
    return below(CommandPath(root: .bluehaul))
  }
}
