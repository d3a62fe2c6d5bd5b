/// Bytes take a way without a value an element.
extension Array: DBusConvertible where Element: DBusConvertible {
  public static var dbusType: DBusType { .array(of: Element.dbusType) }

  public init(_ value: DBusValue) throws(DBusError) {
    switch value {
    case .bytes(let bytes):
      guard let bytes = bytes as? [Element] else { throw Self.mismatch(value) }
      self = bytes
    case .array(let type, let values) where type == Element.dbusType:
      self = []
      reserveCapacity(values.count)
      for value in values { append(try Element(value)) }
    default: throw Self.mismatch(value)
    }
  }

  public var dbusValue: DBusValue {
    if let bytes = self as? [UInt8] { return .bytes(bytes) }
    return .array(of: Element.dbusType, map(\.dbusValue))
  }
}

/// Of a key that was sent twice, the last value counts.
extension Dictionary: DBusConvertible where Key: DBusConvertible, Value: DBusConvertible {
  public static var dbusType: DBusType { .dictionary(key: Key.dbusType, value: Value.dbusType) }

  public init(_ value: DBusValue) throws(DBusError) {
    guard case .dictionary(let keyType, let valueType, let entries) = value, keyType == Key.dbusType,
      valueType == Value.dbusType
    else { throw Self.mismatch(value) }
    self.init(minimumCapacity: entries.count)
    for entry in entries { self[try Key(entry.key)] = try Value(entry.value) }
  }

  public var dbusValue: DBusValue {
    .dictionary(
      key: Key.dbusType, value: Value.dbusType,
      map { DBusEntry(key: $0.key.dbusValue, value: $0.value.dbusValue) })
  }
}
