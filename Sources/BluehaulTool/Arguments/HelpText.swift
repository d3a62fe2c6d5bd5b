/// Writes the help text of a command from its declaration.
struct HelpText {
  /// The widest line, in columns.
  let columns: Int

  init(columns: Int) { self.columns = min(100, max(40, columns)) }

  func text(for path: CommandPath) -> String {
    let command = path.command
    var blocks = [wrap(command.summary, indent: 0), wrap("Usage: \(usage(of: path))", indent: 0, hanging: 4)]
    blocks += command.discussion.map { wrap($0, indent: 0) }
    if !command.operands.isEmpty {
      blocks.append("Operands:\n" + table(command.operands.map { ($0.usage, $0.help) }))
    }
    if !command.subcommands.isEmpty {
      blocks.append("Commands:\n" + table(command.subcommands.map { ($0.name, $0.summary) }))
    }
    for section in path.sections where !section.options.isEmpty {
      blocks.append("\(section.title):\n" + table(section.options.map { (label(of: $0), $0.help) }))
    }
    if !command.examples.isEmpty {
      let lines = command.examples.map { "  \($0.line)\n" + wrap($0.effect, indent: 6) }
      blocks.append("Examples:\n" + lines.joined(separator: "\n"))
    }
    if path.commands.count == 1 {
      blocks.append(wrap("See \(path.line) help COMMAND for its options, and help exit-codes.", indent: 0))
    }
    return blocks.joined(separator: "\n\n") + "\n"
  }

  /// Breaks words into lines of `columns`; those after the first are indented by `hanging` more.
  func wrap(_ text: String, indent: Int, hanging: Int = 0) -> String {
    var lines: [String] = []
    var line = String(repeating: " ", count: indent)
    var isEmpty = true
    for word in text.split(separator: " ") {
      if !isEmpty, line.count + 1 + word.count > columns {
        lines.append(line)
        line = String(repeating: " ", count: indent + hanging)
        isEmpty = true
      }
      line += isEmpty ? String(word) : " \(word)"
      isEmpty = false
    }
    return (lines + [line]).joined(separator: "\n")
  }

  /// Two columns: a label and its explanation.
  func table(_ rows: [(label: String, help: String)]) -> String {
    let widest = rows.map(\.label.count).max() ?? 0
    let column = min(widest + 4, columns < 70 ? 12 : 28)
    return rows.map { label, help in
      let explanation = wrap(help, indent: column)
      guard label.count + 4 <= column else { return "  \(label)\n\(explanation)" }
      let start = explanation.index(explanation.startIndex, offsetBy: min(column, explanation.count))
      let gap = String(repeating: " ", count: column - 2 - label.count)
      return "  \(label)\(gap)\(explanation[start...])"
    }.joined(separator: "\n")
  }

  private func usage(of path: CommandPath) -> String {
    let command = path.command
    guard command.subcommands.isEmpty else {
      return "\(path.line) \(command.run == nil ? "COMMAND" : "[COMMAND]") [options]"
    }
    let required = path.options.filter(\.isRequired).map(\.usage)
    let operands = command.operands.map(\.usage)
    return ([path.line] + operands + required + ["[options]"]).joined(separator: " ")
  }

  private func label(of option: OptionDeclaration) -> String {
    option.short.map { "-\($0), \(option.usage)" } ?? option.usage
  }
}
