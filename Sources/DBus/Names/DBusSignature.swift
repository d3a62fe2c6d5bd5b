/// A sequence of complete types, at most 255 octets long, with at most 32 arrays and 32 structures inside each other.
///
/// Source: D-Bus Specification, "Type System", "Valid Signatures".
public struct DBusSignature: Hashable, Sendable, CustomStringConvertible {
  /// Octets of the longest signature.
  public static let maximumLength = 255
  /// Levels of arrays, and of structures and dictionary entries.
  public static let maximumDepth = 32

  public let types: [DBusType]
  public let text: String

  public static let empty = DBusSignature(valid: [])

  /// Parses text; throws with kind ``DBusError/Kind/invalidArgument`` and the reason.
  public init(_ text: String) throws(DBusError) {
    guard text.utf8.count <= Self.maximumLength else {
      throw .invalid("a signature of \(text.utf8.count) octets", name: DBusErrorName.invalidSignature)
    }
    // Most variants hold one basic value.
    if text.utf8.count == 1, let code = text.utf8.first, let type = DBusType.basic(code: code) {
      types = [type]
      self.text = text
      return
    }
    var parser = SignatureParser(text)
    var types: [DBusType] = []
    while !parser.isAtEnd { types.append(try parser.type()) }
    self.types = types
    self.text = text
  }

  /// The signature of types; throws where they do not make one: no fields, a key that is no basic type, too deep, too long.
  public init(_ types: [DBusType]) throws(DBusError) {
    try self.init(types.map(\.description).joined())
  }

  private init(valid types: [DBusType]) {
    self.types = types
    text = types.map(\.description).joined()
  }

  public var description: String { text }

  public static func == (left: DBusSignature, right: DBusSignature) -> Bool { left.text == right.text }

  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// A recursive descent whose depth is bounded by the limits on nesting.
private struct SignatureParser {
  private let bytes: [UInt8]
  private var position = 0
  private var arrays = 0
  private var structures = 0

  init(_ text: String) { bytes = Array(text.utf8) }

  var isAtEnd: Bool { position == bytes.count }

  mutating func type() throws(DBusError) -> DBusType {
    let code = try next("a type")
    switch code {
    case UInt8(ascii: "v"): return .variant
    case UInt8(ascii: "a"): return try array()
    case UInt8(ascii: "("): return try structure()
    default:
      guard let type = DBusType.basic(code: code) else {
        throw failure("“\(String(UnicodeScalar(code)))” is no type here")
      }
      return type
    }
  }

  private mutating func array() throws(DBusError) -> DBusType {
    arrays += 1
    defer { arrays -= 1 }
    guard arrays <= DBusSignature.maximumDepth else { throw failure("arrays are nested too deeply") }
    guard !isAtEnd, bytes[position] == UInt8(ascii: "{") else { return .array(of: try type()) }
    position += 1
    try enter()
    defer { structures -= 1 }
    let key = try type()
    guard key.isBasic else { throw failure("a key of type “\(key)”, which is not basic") }
    let value = try type()
    guard try next("the end of a dictionary entry") == UInt8(ascii: "}") else {
      throw failure("a dictionary entry has more than a key and a value")
    }
    return .dictionary(key: key, value: value)
  }

  private mutating func structure() throws(DBusError) -> DBusType {
    try enter()
    defer { structures -= 1 }
    var fields: [DBusType] = []
    while !isAtEnd, bytes[position] != UInt8(ascii: ")") { fields.append(try type()) }
    _ = try next("the end of a structure")
    guard !fields.isEmpty else { throw failure("a structure without fields") }
    return .structure(fields)
  }

  private mutating func enter() throws(DBusError) {
    structures += 1
    guard structures <= DBusSignature.maximumDepth else { throw failure("structures are nested too deeply") }
  }

  private mutating func next(_ wanted: String) throws(DBusError) -> UInt8 {
    guard !isAtEnd else { throw failure("\(wanted) is missing") }
    defer { position += 1 }
    return bytes[position]
  }

  private func failure(_ reason: String) -> DBusError {
    .invalid(
      "signature “\(String(decoding: bytes, as: UTF8.self))”, at octet \(position): \(reason)",
      name: DBusErrorName.invalidSignature)
  }
}
