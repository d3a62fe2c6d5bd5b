/// A value of any D-Bus type. Source: D-Bus Specification, "Type System".
public indirect enum DBusValue: Hashable, Sendable {
  case byte(UInt8)
  case boolean(Bool)
  case int16(Int16)
  case uint16(UInt16)
  case int32(Int32)
  case uint32(UInt32)
  case int64(Int64)
  case uint64(UInt64)
  case double(Double)
  /// Without NUL.
  case string(String)
  case objectPath(ObjectPath)
  case signature(DBusSignature)
  case descriptor(UnixDescriptor)
  /// An array of bytes (`ay`), which is copied at once. What is read has this case and never ``array(of:_:)`` of bytes.
  case bytes([UInt8])
  /// Elements that all have the type.
  case array(of: DBusType, [DBusValue])
  /// At least one field.
  case structure([DBusValue])
  /// Entries in the order in which they were sent; a peer may send a key twice.
  case dictionary(key: DBusType, value: DBusType, [DBusEntry])
  case variant(DBusValue)

  /// The value's type.
  public var type: DBusType {
    switch self {
    case .byte: .byte
    case .boolean: .boolean
    case .int16: .int16
    case .uint16: .uint16
    case .int32: .int32
    case .uint32: .uint32
    case .int64: .int64
    case .uint64: .uint64
    case .double: .double
    case .string: .string
    case .objectPath: .objectPath
    case .signature: .signature
    case .descriptor: .descriptor
    case .bytes: .array(of: .byte)
    case .array(let element, _): .array(of: element)
    case .structure(let fields): .structure(fields.map(\.type))
    case .dictionary(let key, let value, _): .dictionary(key: key, value: value)
    case .variant: .variant
    }
  }

  /// What is inside of variants around it, if any.
  public var unwrapped: DBusValue {
    var value = self
    while case .variant(let inner) = value { value = inner }
    return value
  }

  /// A dictionary of strings and variants (`a{sv}`), as properties and options are sent.
  public static func options(_ entries: KeyValuePairs<String, DBusValue>) -> DBusValue {
    .dictionary(
      key: .string, value: .variant,
      entries.map { DBusEntry(key: .string($0.key), value: .variant($0.value)) })
  }
}

/// One entry of a dictionary.
public struct DBusEntry: Hashable, Sendable {
  public var key: DBusValue
  public var value: DBusValue

  public init(key: DBusValue, value: DBusValue) {
    self.key = key
    self.value = value
  }
}
