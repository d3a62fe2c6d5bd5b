import DBus
import Foundation
import RealStack
import Testing

/// What tests in the virtual machine build on.
@Suite(
  "Facts of the virtual machine",
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct StackFactsTests {
  @Test("bluetoothd has two powered adapters on one air")
  func adapters() async throws {
    let bus = try await DBusConnection.open(.system)
    #expect(try await poweredAdapters(bus) == [Guest.address(of: 0), Guest.address(of: 1)])
    await bus.close()
  }

  @Test("a daemon that is started again has the same adapters, and another name on the bus")
  func restartedDaemon() async throws {
    let bus = try await DBusConnection.open(.system)
    let before = try await bus.owner(of: "org.bluez")
    try await Guest.restartDaemon()
    try await Guest.waitUntilPowered()
    let after = try await bus.owner(of: "org.bluez")
    #expect(before != nil && after != nil && before != after)
    #expect(try await poweredAdapters(bus) == [Guest.address(of: 0), Guest.address(of: 1)])
    await bus.close()
  }

  @Test("an adapter that is switched off is there, without power")
  func poweredOff() async throws {
    let bus = try await DBusConnection.open(.system)
    try await Guest.setPowered("hci1", false)
    #expect(try await poweredAdapters(bus) == [Guest.address(of: 0)])
    try await Guest.setPowered("hci1", true)
    #expect(try await poweredAdapters(bus).count == 2)
    await bus.close()
  }

  @Test("an adapter that is taken down without the daemon has no power either")
  func down() async throws {
    let bus = try await DBusConnection.open(.system)
    try await Guest.takeDown("hci1")
    try await Guest.bringUp("hci1")
    try await Guest.waitUntilPowered()
    #expect(try await poweredAdapters(bus).count == 2)
    await bus.close()
  }

  @Test("controllers that are taken away and come back are new adapters of the same daemon")
  func air() async throws {
    let bus = try await DBusConnection.open(.system)
    let daemon = try await bus.owner(of: "org.bluez")
    try await Guest.stopAir()
    try await Guest.startAir()
    try await Guest.waitUntilPowered()
    #expect(try await bus.owner(of: "org.bluez") == daemon)
    #expect(try await poweredAdapters(bus) == [Guest.address(of: 0), Guest.address(of: 1)])
    await bus.close()
  }

  /// Foundation's run loops take the resolution of the clock for the unit of their times.
  @Test("timers of run loops fire") func timer() async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        RunLoop.current.add(
          Timer(timeInterval: 0.05, repeats: false) { _ in continuation.resume() }, forMode: .default)
        RunLoop.current.run()
      }
    }
  }

  @Test("a link that is not there cannot be ended")
  func disconnect() async {
    await #expect(throws: (any Error).self) { try await Guest.disconnect("hci0", from: Guest.address(of: 1)) }
  }

  /// Addresses of adapters that say they are powered.
  private func poweredAdapters(_ bus: DBusConnection) async throws -> Set<String> {
    let reply = try await bus.call(
      .call(
        destination: "org.bluez", path: "/", interface: DBusWellKnown.objectManager,
        member: "GetManagedObjects"))
    let objects = try reply.read([ObjectPath: [String: [String: DBusVariant]]].self)
    let adapters = objects.values.compactMap { $0["org.bluez.Adapter1"] }
    return Set(
      adapters.compactMap { properties in
        guard properties["Powered"]?.content == .boolean(true),
          case .string(let address)? = properties["Address"]?.content
        else { return nil }
        return address
      })
  }
}
