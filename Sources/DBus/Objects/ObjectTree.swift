/// Exported objects, and how calls find them. Knows no connection: it says what is to be done.
struct ObjectTree {
  struct Object {
    var interfaces: [DBusInterface]
    let isManager: Bool
    let token: DBusExport.Token

    func interface(_ name: String) -> DBusInterface? { interfaces.first { $0.name == name } }
  }

  /// What a call comes to.
  enum Outcome {
    case reply([DBusValue])
    /// A property was written: answer, then announce.
    case written(interface: String, property: String)
    case machineIdentifier
    case invoke(DBusMethod)
  }

  private(set) var objects: [ObjectPath: Object] = [:]

  mutating func insert(_ object: Object, at path: ObjectPath) throws(DBusError) {
    guard objects[path] == nil else {
      throw .invalid("there is an object at \(path)", name: DBusErrorName.objectPathInUse)
    }
    guard Set(object.interfaces.map(\.name)).count == object.interfaces.count else {
      throw .invalid("an interface is there twice")
    }
    for interface in object.interfaces { try interface.check() }
    objects[path] = object
  }

  /// Whether the object at a path is that of this export.
  func holds(_ token: DBusExport.Token, at path: ObjectPath) -> Bool { objects[path]?.token === token }

  mutating func remove(_ path: ObjectPath) -> Object? { objects.removeValue(forKey: path) }

  mutating func insert(_ interface: DBusInterface, at path: ObjectPath) throws(DBusError) {
    try interface.check()
    guard let object = objects[path] else { throw .invalid("there is no object at \(path)") }
    guard object.interface(interface.name) == nil else {
      throw .invalid("\(path) has the interface \(interface.name)")
    }
    objects[path]?.interfaces.append(interface)
  }

  /// False where it was not there.
  mutating func removeInterface(_ name: String, at path: ObjectPath) -> Bool {
    guard let index = objects[path]?.interfaces.firstIndex(where: { $0.name == name }) else { return false }
    objects[path]?.interfaces.remove(at: index)
    return true
  }

  /// Object managers above a path, which tell of what comes and goes there.
  func managers(above path: ObjectPath) -> [ObjectPath] {
    objects.filter { $0.value.isManager && $0.key != path && path.isWithin($0.key) }.keys.sorted()
  }

  /// Names of the next elements below a path; nil where there is neither an object nor something below.
  func children(of path: ObjectPath) -> [String]? {
    let prefix = path.prefixOfChildren
    let below = objects.keys.filter { $0 != path && $0.text.hasPrefix(prefix) }
    guard !below.isEmpty || objects[path] != nil else { return nil }
    let elements = below.compactMap { $0.text.dropFirst(prefix.count).split(separator: "/").first }
    return Set(elements).map(String.init).sorted()
  }

  /// Interfaces and their properties, as object managers tell them (`a{sa{sv}}`).
  static func interfacesAndProperties(_ interfaces: [DBusInterface]) -> DBusValue {
    .dictionary(
      key: .string, value: .dictionary(key: .string, value: .variant),
      interfaces.map { DBusEntry(key: .string($0.name), value: allProperties(of: $0)) })
  }

  /// Readable properties (`a{sv}`). One whose value cannot be had now is left out, as the specification says.
  static func allProperties(of interface: DBusInterface) -> DBusValue {
    let entries = interface.properties.compactMap { property -> DBusEntry? in
      guard let value = try? property.read() else { return nil }
      return DBusEntry(key: .string(property.name), value: .variant(value))
    }
    return .dictionary(key: .string, value: .variant, entries)
  }
}
