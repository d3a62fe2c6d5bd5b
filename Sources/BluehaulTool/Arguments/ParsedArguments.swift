/// The values of one command line, read and checked.
struct ParsedArguments: Sendable {
  private(set) var options: [String: [any Sendable]] = [:]
  private(set) var operands: [String: [any Sendable]] = [:]

  mutating func addOption(_ name: String, _ value: any Sendable) { options[name, default: []].append(value) }
  mutating func addOperand(_ name: String, _ value: any Sendable) {
    operands[name, default: []].append(value)
  }

  /// Whether the flag was given.
  subscript(_ flag: Flag) -> Bool { options[flag.declaration.name] != nil }

  /// The value of an option, nil where it was not given.
  subscript<Value>(_ option: Option<Value>) -> Value? { all(option).first }

  /// Every value of an option that may be repeated, in their order.
  func all<Value>(_ option: Option<Value>) -> [Value] {
    options[option.declaration.name, default: []].compactMap { $0 as? Value }
  }

  /// Every value of an operand, in their order.
  func all<Value>(_ operand: Operand<Value>) -> [Value] {
    operands[operand.declaration.name, default: []].compactMap { $0 as? Value }
  }
}
