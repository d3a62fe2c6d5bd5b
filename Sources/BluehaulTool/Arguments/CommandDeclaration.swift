/// A command: everything that the parser, the help texts and the documentation test know of it.
struct CommandDeclaration: Sendable {
  /// Options under one title.
  struct Section: Sendable {
    let title: String
    let options: [OptionDeclaration]
    /// Also accepted by every command below.
    var isInherited = false
  }

  /// A command line and what it does.
  struct Example: Sendable {
    let line: String
    let effect: String
  }

  let name: String
  /// One line, for the list of commands.
  let summary: String
  /// Paragraphs below the usage line.
  var discussion: [String] = []
  var operands: [OperandDeclaration] = []
  var sections: [Section] = []
  var subcommands: [CommandDeclaration] = []
  var examples: [Example] = []
  /// nil: only its subcommands do something.
  var run: (@Sendable (Invocation) async throws -> Void)?

  func subcommand(_ name: String) -> CommandDeclaration? { subcommands.first { $0.name == name } }
}

/// The way from the root to a command, root first.
struct CommandPath: Sendable {
  private(set) var commands: [CommandDeclaration]

  init(root: CommandDeclaration) { commands = [root] }

  /// The command that is meant.
  var command: CommandDeclaration { commands[commands.count - 1] }

  /// As it is typed, such as `bluehaul manifest create`.
  var line: String { commands.map(\.name).joined(separator: " ") }

  /// Its own sections and those inherited, in the order of the help text.
  var sections: [CommandDeclaration.Section] {
    command.sections + commands.dropLast().reversed().flatMap { $0.sections.filter(\.isInherited) }
  }

  var options: [OptionDeclaration] { sections.flatMap(\.options) }

  mutating func enter(_ command: CommandDeclaration) { commands.append(command) }
}
