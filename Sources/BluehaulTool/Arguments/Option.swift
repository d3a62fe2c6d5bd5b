/// An option with a value: what it is called, how its value is written, what `--help` says about it.
struct Option<Value: Sendable>: Sendable {
  let declaration: OptionDeclaration

  init(
    _ name: String, _ syntax: ValueSyntax<Value>, _ help: String, isRequired: Bool = false,
    repeats: Bool = false
  ) {
    declaration = OptionDeclaration(
      name: name, short: nil, placeholder: syntax.placeholder, help: help, isRequired: isRequired,
      repeats: repeats, read: { text throws(InvalidValue) in try syntax.read(text) })
  }
}

/// An option without a value.
struct Flag: Sendable {
  let declaration: OptionDeclaration

  init(_ name: String, short: Character? = nil, _ help: String) {
    declaration = OptionDeclaration(
      name: name, short: short, placeholder: nil, help: help, isRequired: false, repeats: false, read: nil)
  }
}

/// A value without a name in front, known by its place.
struct Operand<Value: Sendable>: Sendable {
  let declaration: OperandDeclaration

  init(
    _ name: String, _ syntax: ValueSyntax<Value>, _ help: String, count: OperandDeclaration.Count = .one
  ) {
    declaration = OperandDeclaration(
      name: name, help: help, count: count, read: { text throws(InvalidValue) in try syntax.read(text) })
  }
}

/// What the parser and the help texts know of an option, whatever the type of its value.
struct OptionDeclaration: Sendable {
  let name: String
  let short: Character?
  /// nil: takes no value.
  let placeholder: String?
  let help: String
  let isRequired: Bool
  let repeats: Bool
  let read: (@Sendable (String) throws(InvalidValue) -> any Sendable)?

  /// As it is typed, with the placeholder of its value.
  var usage: String { placeholder.map { "--\(name) \($0)" } ?? "--\(name)" }
}

/// What the parser and the help texts know of an operand.
struct OperandDeclaration: Sendable {
  /// How many values there may be.
  enum Count: Sendable { case one, optional, oneOrMore, any }

  let name: String
  let help: String
  let count: Count
  let read: @Sendable (String) throws(InvalidValue) -> any Sendable

  /// As it stands in a usage line.
  var usage: String {
    switch count {
    case .one: name
    case .optional: "[\(name)]"
    case .oneOrMore: "\(name)..."
    case .any: "[\(name)...]"
    }
  }
}
