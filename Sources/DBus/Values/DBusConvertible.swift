/// A Swift type that is one D-Bus type: numbers, `Bool`, `String`, paths, signatures, descriptors, arrays and dictionaries of them.
public protocol DBusConvertible: Sendable {
  static var dbusType: DBusType { get }

  /// Throws with kind ``DBusError/Kind/unexpectedReply`` where the value has another type.
  init(_ value: DBusValue) throws(DBusError)

  var dbusValue: DBusValue { get }
}

extension DBusConvertible {
  static func mismatch(_ value: DBusValue) -> DBusError {
    .unexpected("a value of type “\(value.type)” where “\(dbusType)” is expected")
  }
}

extension UInt8: DBusConvertible {
  public static var dbusType: DBusType { .byte }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .byte(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .byte(self) }
}

extension Bool: DBusConvertible {
  public static var dbusType: DBusType { .boolean }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .boolean(let flag) = value else { throw Self.mismatch(value) }
    self = flag
  }
  public var dbusValue: DBusValue { .boolean(self) }
}

extension Int16: DBusConvertible {
  public static var dbusType: DBusType { .int16 }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .int16(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .int16(self) }
}

extension UInt16: DBusConvertible {
  public static var dbusType: DBusType { .uint16 }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .uint16(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .uint16(self) }
}

extension Int32: DBusConvertible {
  public static var dbusType: DBusType { .int32 }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .int32(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .int32(self) }
}

extension UInt32: DBusConvertible {
  public static var dbusType: DBusType { .uint32 }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .uint32(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .uint32(self) }
}

extension Int64: DBusConvertible {
  public static var dbusType: DBusType { .int64 }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .int64(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .int64(self) }
}

extension UInt64: DBusConvertible {
  public static var dbusType: DBusType { .uint64 }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .uint64(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .uint64(self) }
}

extension Double: DBusConvertible {
  public static var dbusType: DBusType { .double }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .double(let number) = value else { throw Self.mismatch(value) }
    self = number
  }
  public var dbusValue: DBusValue { .double(self) }
}

extension String: DBusConvertible {
  public static var dbusType: DBusType { .string }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .string(let text) = value else { throw Self.mismatch(value) }
    self = text
  }
  public var dbusValue: DBusValue { .string(self) }
}

extension ObjectPath: DBusConvertible {
  public static var dbusType: DBusType { .objectPath }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .objectPath(let path) = value else { throw Self.mismatch(value) }
    self = path
  }
  public var dbusValue: DBusValue { .objectPath(self) }
}

extension DBusSignature: DBusConvertible {
  public static var dbusType: DBusType { .signature }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .signature(let signature) = value else { throw Self.mismatch(value) }
    self = signature
  }
  public var dbusValue: DBusValue { .signature(self) }
}

/// A descriptor as an argument: the owner is a class, which cannot be made from another's value.
public struct DBusDescriptor: DBusConvertible, Hashable {
  public let owner: UnixDescriptor

  public init(_ owner: UnixDescriptor) { self.owner = owner }

  public static var dbusType: DBusType { .descriptor }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .descriptor(let owner) = value else { throw Self.mismatch(value) }
    self.owner = owner
  }
  public var dbusValue: DBusValue { .descriptor(owner) }
}

/// A variant as an argument.
public struct DBusVariant: DBusConvertible, Hashable {
  /// What is inside.
  public let content: DBusValue

  public init(containing content: DBusValue) { self.content = content }

  public static var dbusType: DBusType { .variant }
  public init(_ value: DBusValue) throws(DBusError) {
    guard case .variant(let content) = value else { throw Self.mismatch(value) }
    self.content = content
  }
  public var dbusValue: DBusValue { .variant(content) }
}
