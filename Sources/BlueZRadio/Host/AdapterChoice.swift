internal import DBus
internal import Radio

/// Which adapter of the daemon a radio is on, and what can be done with it.
struct AdapterChoice: Sendable, Hashable {
  /// The kernel's name of the adapter, such as `hci1`, or nil for whichever there is.
  let wanted: String?
  /// The chosen one, as long as it is there.
  private(set) var path: ObjectPath?

  init(_ wanted: String?) { self.wanted = wanted }

  /// Looks at the daemon's objects again: stays with an adapter that is still there, else takes the wanted one, or else the first
  /// that is switched on, or else the first.
  mutating func update(_ store: ObjectStore) {
    if let path, store.properties(BlueZ.adapter, of: path) != nil { return }
    let all = store.paths(with: BlueZ.adapter)
    if let wanted {
      path = all.first { $0.text.hasSuffix("/" + wanted) }
    } else {
      path = all.first { store.property("Powered", BlueZ.adapter, of: $0) == true } ?? all.first
    }
  }

  /// Forgets the adapter, as its daemon has gone.
  mutating func forget() { path = nil }

  /// The state that the store tells.
  func state(_ store: ObjectStore) -> AdapterState {
    guard let path else { return .unsupported }
    return store.property("Powered", BlueZ.adapter, of: path) == true ? .poweredOn : .poweredOff
  }

  /// The address that the adapter has on the air, for sockets.
  func address(_ store: ObjectStore) -> DeviceAddress? {
    guard let path, let text = store.property("Address", BlueZ.adapter, of: path, as: String.self)
    else { return nil }
    let kind = store.property("AddressType", BlueZ.adapter, of: path, as: String.self)
    return DeviceAddress(text, kind: kind == "random" ? .random : .public)
  }
}
