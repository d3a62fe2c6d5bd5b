/// What an object has: properties by their names, by interface. Values are what the variants hold.
public typealias DBusProperties = [String: [String: DBusValue]]

/// What the standard signals say of objects of a peer.
///
/// Source: D-Bus Specification, "org.freedesktop.DBus.ObjectManager", "org.freedesktop.DBus.Properties".
public enum ObjectChange: Hashable, Sendable {
  /// Interfaces are new at an object, which may be new itself.
  case added(ObjectPath, DBusProperties)
  /// Interfaces are gone, and with its last one the object.
  case removed(ObjectPath, interfaces: [String])
  /// Properties have new values; those invalidated have to be read to be known.
  case properties(ObjectPath, interface: String, changed: [String: DBusValue], invalidated: [String])

  /// Nil for other messages; throws with kind ``DBusError/Kind/unexpectedReply`` where one of these signals has other types than it should.
  public init?(_ message: DBusMessage) throws(DBusError) {
    guard message.kind == .signal, let path = message.path else { return nil }
    switch (message.interface, message.member) {
    case (DBusWellKnown.objectManager, "InterfacesAdded"):
      let (object, interfaces) = try message.read(ObjectPath.self, [String: [String: DBusVariant]].self)
      self = .added(object, interfaces.mapValues { $0.mapValues(\.content) })
    case (DBusWellKnown.objectManager, "InterfacesRemoved"):
      let (object, interfaces) = try message.read(ObjectPath.self, [String].self)
      self = .removed(object, interfaces: interfaces)
    case (DBusWellKnown.properties, "PropertiesChanged"):
      let (interface, changed, invalidated) = try message.read(
        String.self, [String: DBusVariant].self, [String].self)
      self = .properties(
        path, interface: interface, changed: changed.mapValues(\.content), invalidated: invalidated)
    default: return nil
    }
  }
}

extension DBusConnection {
  /// All objects below an object manager. Who wants to follow them subscribes to ``ObjectChange`` first, so that nothing falls in between.
  public func managedObjects(
    at path: ObjectPath, destination: String, timeLimit: Duration? = defaultTimeLimit
  ) async throws -> [ObjectPath: DBusProperties] {
    let reply = try await call(
      .call(
        destination: destination, path: path, interface: DBusWellKnown.objectManager,
        member: "GetManagedObjects"), timeLimit: timeLimit)
    return try reply.read([ObjectPath: [String: [String: DBusVariant]]].self)
      .mapValues { $0.mapValues { $0.mapValues(\.content) } }
  }
}
