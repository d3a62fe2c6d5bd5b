internal import Wording

/// Reads a command line as a tree of declarations tells.
///
/// Options are `--name`, `--name value` or `--name=value`, before or after operands; `-x` where a flag has a short form. A value that
/// begins with `--` needs the form with `=`. After a lone `--` everything is an operand. A lone `-` is an operand.
struct ArgumentParser {
  /// What was asked for.
  enum Request: Sendable {
    case help(CommandPath)
    case version
    case command(CommandPath, ParsedArguments)
  }

  static let help = Flag("help", short: "h", "Show this text")
  static let version = Flag("version", "Show the version")

  let root: CommandDeclaration

  func parse(_ tokens: [String]) throws(UsageError) -> Request {
    let beforeOperands = tokens.prefix { $0 != "--" }
    if beforeOperands.contains("--help") || beforeOperands.contains("-h") {
      return .help(try pathNamed(in: beforeOperands))
    }
    var line = Line(path: CommandPath(root: root), tokens: tokens)
    while let token = line.next() {
      if line.onlyOperands || token == "-" || !token.hasPrefix("-") {
        try line.take(word: token)
      } else if token == "--" {
        line.onlyOperands = true
      } else {
        try line.take(option: token)
      }
    }
    if line.arguments[Self.version] { return .version }
    return .command(line.path, try line.finish())
  }

  /// The command that the words in front name, for its help text.
  private func pathNamed(in tokens: ArraySlice<String>) throws(UsageError) -> CommandPath {
    var path = CommandPath(root: root)
    for token in tokens where !token.hasPrefix("-") {
      if let command = path.command.subcommand(token) {
        path.enter(command)
      } else if path.commands.count == 1 {
        throw .unknownCommand(token, at: path)
      } else {
        break
      }
    }
    return path
  }
}

/// A command line while it is read.
private struct Line {
  var path: CommandPath
  var arguments = ParsedArguments()
  var onlyOperands = false
  private var operands: [String] = []
  private var tokens: ArraySlice<String>

  init(path: CommandPath, tokens: [String]) {
    self.path = path
    self.tokens = tokens[...]
  }

  mutating func next() -> String? { tokens.popFirst() }

  mutating func take(word: String) throws(UsageError) {
    if path.command.subcommands.isEmpty || onlyOperands {
      operands.append(word)
    } else if let command = path.command.subcommand(word) {
      path.enter(command)
    } else {
      throw .unknownCommand(word, at: path)
    }
  }

  mutating func take(option token: String) throws(UsageError) {
    let parts = token.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let inline = token.hasPrefix("--") && parts.count == 2 ? String(parts[1]) : nil
    let written = inline == nil ? token : String(parts[0])
    guard let option = declaration(of: written) else { throw .unknownOption(written, at: path) }
    guard let read = option.read else {
      if let inline { throw UsageError("--\(option.name) takes no value, not \(quoted(inline))", at: path) }
      arguments.addOption(option.name, true)
      return
    }
    if arguments.options[option.name] != nil, !option.repeats {
      throw UsageError("--\(option.name) is given twice", at: path)
    }
    guard let text = inline ?? nextValue() else {
      throw UsageError("--\(option.name) needs a value: \(option.usage)", at: path)
    }
    do throws(InvalidValue) {
      arguments.addOption(option.name, try read(text))
    } catch {
      throw UsageError("--\(option.name): \(quoted(text)) \(error.reason)", at: path)
    }
  }

  mutating func finish() throws(UsageError) -> ParsedArguments {
    if path.command.run == nil {
      let names = path.command.subcommands.map(\.name).joined(separator: ", ")
      throw UsageError("\(path.line) needs a command: \(names)", at: path)
    }
    var words = operands[...]
    for operand in path.command.operands {
      let most = operand.count == .one || operand.count == .optional ? 1 : words.count
      if words.isEmpty, operand.count == .one || operand.count == .oneOrMore {
        throw UsageError("\(path.line) needs \(operand.name): \(operand.help.lowercasedFirst)", at: path)
      }
      for word in words.prefix(most) {
        do throws(InvalidValue) {
          arguments.addOperand(operand.name, try operand.read(word))
        } catch {
          throw UsageError("\(operand.name): \(quoted(word)) \(error.reason)", at: path)
        }
      }
      words = words.dropFirst(most)
    }
    if let extra = words.first {
      throw UsageError("\(quoted(extra)) is one operand too many for \(path.line)", at: path)
    }
    for option in path.options where option.isRequired && arguments.options[option.name] == nil {
      throw UsageError("\(path.line) needs \(option.usage): \(option.help.lowercasedFirst)", at: path)
    }
    return arguments
  }

  private func declaration(of written: String) -> OptionDeclaration? {
    path.options.first { option in
      written == "--\(option.name)" || option.short.map { written == "-\($0)" } == true
    }
  }

  /// The next token, if it can be a value: another option is none.
  private mutating func nextValue() -> String? {
    guard let token = tokens.first, !token.hasPrefix("--"), declaration(of: token) == nil else { return nil }
    return tokens.popFirst()
  }
}

private func quoted(_ text: String) -> String { "\"\(Printable.text(text, limit: 80))\"" }

extension UsageError {
  fileprivate static func unknownCommand(_ word: String, at path: CommandPath) -> Self {
    let names = path.command.subcommands.map(\.name)
    if let meant = Spelling.closest(to: word, among: names) {
      return Self("\(quoted(word)) is no command of \(path.line); did you mean \(meant)?", at: path)
    }
    return Self(
      "\(quoted(word)) is no command of \(path.line); there are \(names.joined(separator: ", "))", at: path)
  }

  fileprivate static func unknownOption(_ written: String, at path: CommandPath) -> Self {
    let word = quoted(written)
    let names = path.options.map { "--\($0.name)" }
    if let meant = Spelling.closest(to: written, among: names) {
      return Self("\(word) is no option of \(path.line); did you mean \(meant)?", at: path)
    }
    let below = path.command.subcommands.first { command in
      command.sections.contains { $0.options.contains { "--\($0.name)" == written } }
    }
    if let below {
      return Self("\(word) goes behind its command: \(path.line) \(below.name) \(written)", at: path)
    }
    return Self(
      "\(word) is no option of \(path.line); there are \(names.joined(separator: ", "))", at: path)
  }
}

extension String {
  /// For the middle of a sentence; words in capitals stay.
  fileprivate var lowercasedFirst: String {
    guard let first, dropFirst().first?.isUppercase != true else { return self }
    return first.lowercased() + dropFirst()
  }
}
