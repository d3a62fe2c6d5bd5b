/// One complete type. Source: D-Bus Specification, "Type System".
public indirect enum DBusType: Hashable, Sendable, CustomStringConvertible {
  case byte, boolean, int16, uint16, int32, uint32, int64, uint64, double
  case string, objectPath, signature, descriptor, variant
  case array(of: DBusType)
  case structure([DBusType])
  case dictionary(key: DBusType, value: DBusType)

  /// The type code; of a dictionary that of an array.
  var code: UInt8 {
    switch self {
    case .byte: UInt8(ascii: "y")
    case .boolean: UInt8(ascii: "b")
    case .int16: UInt8(ascii: "n")
    case .uint16: UInt8(ascii: "q")
    case .int32: UInt8(ascii: "i")
    case .uint32: UInt8(ascii: "u")
    case .int64: UInt8(ascii: "x")
    case .uint64: UInt8(ascii: "t")
    case .double: UInt8(ascii: "d")
    case .string: UInt8(ascii: "s")
    case .objectPath: UInt8(ascii: "o")
    case .signature: UInt8(ascii: "g")
    case .descriptor: UInt8(ascii: "h")
    case .variant: UInt8(ascii: "v")
    case .array, .dictionary: UInt8(ascii: "a")
    case .structure: UInt8(ascii: "(")
    }
  }

  /// The basic type of a code.
  static func basic(code: UInt8) -> DBusType? { basics[code] }

  private static let basics: [UInt8: DBusType] = Dictionary(
    uniqueKeysWithValues: ([
      .byte, .boolean, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .string, .objectPath,
      .signature, .descriptor,
    ] as [DBusType]).map { ($0.code, $0) })

  /// Whether a value has no parts: only such types are keys of dictionaries.
  public var isBasic: Bool {
    switch self {
    case .variant, .array, .structure, .dictionary: false
    default: true
    }
  }

  /// Octets of a value's natural boundary. Source: D-Bus Specification, "Marshaling", "Summary of D-Bus marshaling".
  var alignment: Int {
    switch self {
    case .byte, .signature, .variant: 1
    case .int16, .uint16: 2
    case .boolean, .int32, .uint32, .string, .objectPath, .descriptor, .array, .dictionary: 4
    case .int64, .uint64, .double, .structure: 8
    }
  }

  /// The type's signature, such as `a{sv}`.
  public var description: String {
    switch self {
    case .array(let element): "a\(element)"
    case .structure(let fields): "(\(fields.map(\.description).joined()))"
    case .dictionary(let key, let value): "a{\(key)\(value)}"
    default: String(UnicodeScalar(code))
    }
  }
}
