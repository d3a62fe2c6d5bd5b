/// Reads values one after the other, each as the type that is expected; every difference is an error with its position.
///
///     var reader = DBusReader(reply.body)
///     let descriptor = try reader.next(DBusDescriptor.self).owner
///     let mtu = try reader.next(UInt16.self)
///     try reader.end()
public struct DBusReader: Sendable {
  private let values: [DBusValue]
  private var position = 0

  /// A reader of a body, or of the fields of a structure.
  public init(_ values: [DBusValue]) { self.values = values }

  /// Values that were not read.
  public var count: Int { values.count - position }

  public mutating func next() throws(DBusError) -> DBusValue {
    guard position < values.count else {
      throw .unexpected("value \(position + 1) is missing: there are \(values.count)")
    }
    defer { position += 1 }
    return values[position]
  }

  public mutating func next<Value: DBusConvertible>(_: Value.Type = Value.self) throws(DBusError) -> Value {
    let value = try next()
    do { return try Value(value) } catch { throw .unexpected("value \(position): \(error.message)") }
  }

  /// The fields of a structure.
  public mutating func structure() throws(DBusError) -> DBusReader {
    let value = try next()
    guard case .structure(let fields) = value else {
      throw .unexpected("value \(position): a value of type “\(value.type)” where a structure is expected")
    }
    return DBusReader(fields)
  }

  /// The elements of an array of structures, each with its reader.
  public mutating func structures() throws(DBusError) -> [DBusReader] {
    let value = try next()
    guard case .array(.structure, let elements) = value else {
      throw .unexpected(
        "value \(position): a value of type “\(value.type)” where an array of structures is expected")
    }
    return elements.compactMap { if case .structure(let fields) = $0 { DBusReader(fields) } else { nil } }
  }

  /// Throws where values are left.
  public func end() throws(DBusError) {
    guard count == 0 else { throw .unexpected("\(values.count) values where \(position) are expected") }
  }
}

/// Writes a body value by value, as the types that Swift has for them.
///
///     var writer = DBusWriter()
///     writer.append(path)
///     writer.append(["type": DBusVariant(containing: .string("command"))])
public struct DBusWriter: Sendable {
  /// What was appended.
  public private(set) var values: [DBusValue] = []

  public init() {}

  public mutating func append(_ value: DBusValue) { values.append(value) }

  public mutating func append<Value: DBusConvertible>(_ value: Value) { values.append(value.dbusValue) }

  /// Appends a structure with the fields that `content` writes; at least one.
  public mutating func structure(_ content: (inout DBusWriter) -> Void) {
    var fields = DBusWriter()
    content(&fields)
    values.append(.structure(fields.values))
  }
}
