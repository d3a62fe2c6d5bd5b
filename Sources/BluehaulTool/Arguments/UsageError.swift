/// A command line that does not follow the declarations.
struct UsageError: Error, Hashable {
  /// What is wrong, with the option and the value.
  let message: String
  /// The command whose help text explains it, as it is typed.
  let command: String

  init(_ message: String, at path: CommandPath) {
    self.message = message
    command = path.line
  }

  init(_ message: String, command: String) {
    self.message = message
    self.command = command
  }

  /// Where to read on.
  var advice: String { "see \(command) --help" }
}
