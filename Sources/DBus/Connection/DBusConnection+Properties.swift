/// Properties of peers' objects. Source: D-Bus Specification, "org.freedesktop.DBus.Properties".
extension DBusConnection {
  /// Reads one property; the value is what the variant holds.
  public func property(
    _ name: String, of interface: String, at path: ObjectPath, destination: String,
    timeLimit: Duration? = defaultTimeLimit
  ) async throws -> DBusValue {
    let reply = try await call(
      .call(
        destination: destination, path: path, interface: DBusWellKnown.properties, member: "Get",
        body: [.string(interface), .string(name)]), timeLimit: timeLimit)
    return try reply.read(DBusVariant.self).content
  }

  /// Reads all properties of an interface.
  public func properties(
    of interface: String, at path: ObjectPath, destination: String, timeLimit: Duration? = defaultTimeLimit
  ) async throws -> [String: DBusValue] {
    let reply = try await call(
      .call(
        destination: destination, path: path, interface: DBusWellKnown.properties, member: "GetAll",
        body: [.string(interface)]), timeLimit: timeLimit)
    return try reply.read([String: DBusVariant].self).mapValues(\.content)
  }

  /// Writes one property.
  public func setProperty(
    _ name: String, of interface: String, at path: ObjectPath, destination: String, to value: DBusValue,
    timeLimit: Duration? = defaultTimeLimit
  ) async throws {
    _ = try await call(
      .call(
        destination: destination, path: path, interface: DBusWellKnown.properties, member: "Set",
        body: [.string(interface), .string(name), .variant(value)]), timeLimit: timeLimit
    ).read()
  }
}
