import DBus
import Foundation
import RealStack
import Testing

/// What a test asks bluetoothd itself about its adapters, and how it brings them to where a test begins.
enum Adapters {
  private static let adapter = "org.bluez.Adapter1"
  private static let device = "org.bluez.Device1"
  private static let advertising = "org.bluez.LEAdvertisingManager1"

  /// All adapters are on, advertise nothing and know no device.
  static func prepare() async throws {
    try await withBus { bus in
      let objects = try await bus.managedObjects(at: "/", destination: "org.bluez")
      for (path, interfaces) in objects where interfaces[adapter]?["Powered"] == .boolean(false) {
        try await bus.setProperty(
          "Powered", of: adapter, at: path, destination: "org.bluez", to: .boolean(true))
      }
      // What programs have left goes once the daemon knows of their end.
      try await wait(bus) {
        $0.values.allSatisfy { $0[advertising]?["ActiveInstances"] ?? .byte(0) == .byte(0) }
      }
      for (path, interfaces) in try await bus.managedObjects(at: "/", destination: "org.bluez") {
        guard case .objectPath(let adapter)? = interfaces[device]?["Adapter"] else { continue }
        // While the daemon ends a link, it does not answer a call to forget the device; it does answer one to end the link.
        if interfaces[device]?["Connected"] == .boolean(true) {
          _ = try? await bus.call(
            .call(destination: "org.bluez", path: path, interface: device, member: "Disconnect"))
        }
        // It may go by itself meanwhile.
        _ = try? await bus.call(
          .call(
            destination: "org.bluez", path: adapter, interface: Self.adapter, member: "RemoveDevice",
            body: [.objectPath(path)]))
      }
    }
  }

  /// Waits until an adapter listens for advertisements on behalf of programs.
  static func waitUntilDiscovering(_ name: String) async throws {
    try await withBus { bus in
      try await wait(bus) {
        $0[try ObjectPath("/org/bluez/\(name)")]?[adapter]?["Discovering"] == .boolean(true)
      }
    }
  }

  /// Waits until so many advertisements are registered at an adapter.
  static func waitUntilAdvertising(_ name: String, _ count: UInt8) async throws {
    try await withBus { bus in
      try await wait(bus) {
        $0[try ObjectPath("/org/bluez/\(name)")]?[advertising]?["ActiveInstances"] == .byte(count)
      }
    }
  }

  /// Waits until no device is connected to an adapter any more, which takes the daemon 2 s.
  static func waitUntilApart(_ name: String) async throws {
    try await withBus { bus in
      let path = try ObjectPath("/org/bluez/\(name)")
      try await wait(bus) { objects in
        objects.allSatisfy { !$0.key.isWithin(path) || $0.value[device]?["Connected"] != .boolean(true) }
      }
    }
  }

  private static func withBus<Result>(_ body: (DBusConnection) async throws -> Result) async throws -> Result
  {
    let bus = try await DBusConnection.open(.system)
    let result: Result
    do { result = try await body(bus) } catch {
      await bus.close()
      throw error
    }
    await bus.close()
    return result
  }

  /// Looks at the daemon's objects, and again whenever one of them has changed.
  private static func wait(
    _ bus: DBusConnection, until condition: ([ObjectPath: DBusProperties]) throws -> Bool
  ) async throws {
    let changes = try await bus.signals(
      MatchRule(sender: "org.bluez", interface: DBusWellKnown.properties, member: "PropertiesChanged"))
    if try condition(await bus.managedObjects(at: "/", destination: "org.bluez")) { return }
    for try await _ in changes {
      if try condition(await bus.managedObjects(at: "/", destination: "org.bluez")) { return }
    }
    Issue.record("the bus has ended")
  }
}
