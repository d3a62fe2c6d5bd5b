internal import Foundation

/// Checks that a text is one JSON value by the letter of RFC 8259, with each name once in an object.
///
/// Decoders take more than that, each something else: what two programs read from one text must be the same.
struct JSONGrammar {
  /// Deeper nesting is refused.
  static let mostLevels = 64

  private enum Fault: Error {
    case syntax
    case twice(String)
  }

  private enum Step {
    case member(String)
    case element(Int)
  }

  private let bytes: [UInt8]
  private var place = 0
  private var steps: [Step] = []

  /// - Throws: `damagedState` with what is wrong, as something that `document` is or has.
  static func check(_ text: Data, document: String) throws(TransferError) {
    guard let string = String(validating: text, as: UTF8.self), !string.utf8.contains(0) else {
      throw TransferError(.damagedState, "\(document) is no text in UTF-8", advice: "save it as UTF-8")
    }
    var grammar = JSONGrammar(bytes: [UInt8](text))
    do throws(Fault) {
      try grammar.value()
      grammar.skipSpace()
      guard grammar.place == grammar.bytes.count else { throw Fault.syntax }
    } catch {
      switch error {
      case .syntax:
        let line = grammar.bytes.prefix(grammar.place).count { $0 == UInt8(ascii: "\n") } + 1
        throw TransferError(.damagedState, "\(document) is cut short or no JSON, in line \(line)")
      case .twice(let name):
        throw TransferError(.damagedState, "\(document): \(grammar.path(to: name).printable) is there twice")
      }
    }
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private func path(to name: String) -> String {
    steps.reduce(into: "") { path, step in
      switch step {
      case .member(let name): path += path.isEmpty ? name : ".\(name)"
      case .element(let number): path += "[\(number)]"
      }
    } + (steps.isEmpty ? name : ".\(name)")
  }

  // MARK: Values

  private mutating func value() throws(Fault) {
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): try object()
    case UInt8(ascii: "["): try array()
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "t"): try word("true")
    case UInt8(ascii: "f"): try word("false")
    case UInt8(ascii: "n"): try word("null")
    default: try number()
    }
  }

  private mutating func object() throws(Fault) {
    var names: Set<String> = []
    try list(UInt8(ascii: "}")) { (grammar: inout JSONGrammar, _: Int) throws(Fault) in
      grammar.skipSpace()
      guard let name = Self.text(try grammar.string()) else { throw Fault.syntax }
      guard names.insert(name).inserted else { throw Fault.twice(name) }
      grammar.skipSpace()
      guard grammar.take(UInt8(ascii: ":")) else { throw Fault.syntax }
      grammar.steps.append(.member(name))
      try grammar.value()
      grammar.steps.removeLast()
    }
  }

  private mutating func array() throws(Fault) {
    try list(UInt8(ascii: "]")) { (grammar: inout JSONGrammar, number: Int) throws(Fault) in
      grammar.steps.append(.element(number))
      try grammar.value()
      grammar.steps.removeLast()
    }
  }

  /// What is between two brackets, with commas between the elements and nowhere else.
  private mutating func list(
    _ end: UInt8, _ element: (inout JSONGrammar, Int) throws(Fault) -> Void
  ) throws(Fault) {
    guard steps.count < Self.mostLevels else { throw Fault.syntax }
    place += 1
    skipSpace()
    if take(end) { return }
    var count = 0
    repeat {
      try element(&self, count)
      count += 1
      skipSpace()
    } while take(UInt8(ascii: ","))
    guard take(end) else { throw Fault.syntax }
  }

  /// A string with its quotes.
  private mutating func string() throws(Fault) -> ArraySlice<UInt8> {
    let start = place
    guard take(UInt8(ascii: "\"")) else { throw Fault.syntax }
    while let byte = next {
      place += 1
      switch byte {
      case UInt8(ascii: "\""): return bytes[start..<place]
      case 0..<0x20: throw Fault.syntax
      case UInt8(ascii: "\\"):
        guard let escaped = next else { throw Fault.syntax }
        place += 1
        if escaped == UInt8(ascii: "u") {
          for _ in 0..<4 {
            guard let digit = next, Character(Unicode.Scalar(digit)).isHexDigit else { throw Fault.syntax }
            place += 1
          }
        } else if !"\"\\/bfnrt".utf8.contains(escaped) {
          throw Fault.syntax
        }
      default: break
      }
    }
    throw Fault.syntax
  }

  /// What a string with its quotes says.
  private static func text(_ string: ArraySlice<UInt8>) -> String? {
    guard string.contains(UInt8(ascii: "\\")) else {
      return String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
    }
    return try? JSONDecoder().decode([String].self, from: Data("[".utf8) + string + Data("]".utf8)).first
  }

  private mutating func number() throws(Fault) {
    _ = take(UInt8(ascii: "-"))
    if !take(UInt8(ascii: "0")) { try digits() }
    if take(UInt8(ascii: ".")) { try digits() }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "-")) { _ = take(UInt8(ascii: "+")) }
      try digits()
    }
  }

  private mutating func digits() throws(Fault) {
    let start = place
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { place += 1 }
    guard place > start else { throw Fault.syntax }
  }

  private mutating func word(_ word: String) throws(Fault) {
    for byte in word.utf8 {
      guard take(byte) else { throw Fault.syntax }
    }
  }

  // MARK: Bytes

  private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    place += 1
    return true
  }

  private mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { place += 1 }
  }
}
