internal import Wording

/// How the value of an option or operand is written, and what it is read into.
struct ValueSyntax<Value: Sendable>: Sendable {
  /// What stands for the value in help texts, such as `SIZE`.
  let placeholder: String
  /// Reads one value.
  let read: @Sendable (String) throws(InvalidValue) -> Value

  init(_ placeholder: String, read: @escaping @Sendable (String) throws(InvalidValue) -> Value) {
    self.placeholder = placeholder
    self.read = read
  }

  /// The same syntax under another name in help texts.
  func named(_ placeholder: String) -> Self { Self(placeholder, read: read) }
}

/// Why a value cannot be read; completes the sentence that begins with the value.
struct InvalidValue: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

extension ValueSyntax where Value == String {
  /// Any text that is not empty.
  static func text(_ placeholder: String) -> Self {
    Self(placeholder) { text throws(InvalidValue) in
      if text.isEmpty { throw InvalidValue("is empty") }
      return text
    }
  }
}

extension ValueSyntax where Value: CaseIterable & RawRepresentable<String> {
  /// One of a few words.
  static func oneOf(_: Value.Type = Value.self) -> Self {
    let words = Value.allCases.map(\.rawValue)
    return Self(words.joined(separator: "|")) { text throws(InvalidValue) in
      if let value = Value(rawValue: text) { return value }
      let hint = Spelling.closest(to: text, among: words).map { "; did you mean \($0)?" } ?? ""
      throw InvalidValue("is not one of \(words.joined(separator: ", "))\(hint)")
    }
  }
}
