internal import DBus

/// What bluetoothd has told of its objects: a copy, kept up to date by its signals.
struct ObjectStore: Sendable {
  /// What a change of an object means.
  enum Change: Sendable, Hashable {
    /// An interface is new; its properties are in the store.
    case added(ObjectPath, interface: String)
    /// An interface is gone; its last properties.
    case removed(ObjectPath, interface: String, last: [String: DBusValue])
    /// These properties of an interface are new; their values are in the store, and nil there where they became invalid.
    case changed(ObjectPath, interface: String, Set<String>)
  }

  /// How many objects are kept. A daemon drops devices that it has not heard for a while: this is far beyond what the air holds.
  static let capacity = 65_536

  private(set) var objects: [ObjectPath: DBusProperties] = [:]

  /// Replaces everything.
  mutating func load(_ objects: [ObjectPath: DBusProperties]) {
    self.objects =
      objects.count <= Self.capacity
      ? objects
      : Dictionary(
        uniqueKeysWithValues: objects.sorted { $0.key < $1.key }.prefix(Self.capacity).map {
          ($0.key, $0.value)
        })
  }

  /// Forgets everything.
  mutating func clear() { objects = [:] }

  /// Takes a signal; returns what it has changed, in order.
  mutating func apply(_ change: ObjectChange) -> [Change] {
    switch change {
    case .added(let path, let interfaces):
      guard objects[path] != nil || objects.count < Self.capacity else { return [] }
      objects[path, default: [:]].merge(interfaces) { $1 }
      return interfaces.keys.sorted().map { .added(path, interface: $0) }
    case .removed(let path, let interfaces):
      var changes: [Change] = []
      for interface in interfaces.sorted() {
        guard let last = objects[path]?.removeValue(forKey: interface) else { continue }
        changes.append(.removed(path, interface: interface, last: last))
      }
      if objects[path]?.isEmpty == true { objects[path] = nil }
      return changes
    case .properties(let path, let interface, let changed, let invalidated):
      guard objects[path]?[interface] != nil else { return [] }
      objects[path]?[interface]?.merge(changed) { $1 }
      for name in invalidated { objects[path]?[interface]?[name] = nil }
      let names = Set(changed.keys).union(invalidated)
      return names.isEmpty ? [] : [.changed(path, interface: interface, names)]
    }
  }

  /// The properties of an interface of an object, or nil where there is no such thing.
  func properties(_ interface: String, of path: ObjectPath) -> [String: DBusValue]? {
    objects[path]?[interface]
  }

  /// A property as a Swift type; nil where it is missing or is of another type.
  func property<Value: DBusConvertible>(
    _ name: String, _ interface: String, of path: ObjectPath, as type: Value.Type = Value.self
  ) -> Value? {
    objects[path]?[interface]?[name].flatMap { try? Value($0) }
  }

  /// Paths of the objects below `path`, or at it, that have an interface, in order.
  func paths(with interface: String, within path: ObjectPath = .root) -> [ObjectPath] {
    objects.filter { $0.value[interface] != nil && $0.key.isWithin(path) }.keys.sorted()
  }
}
