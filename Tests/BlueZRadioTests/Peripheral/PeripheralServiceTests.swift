import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Services of a peripheral at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PeripheralServiceTests {
  @Test("A service is shown with everything that the daemon asks for, and taken back")
  func services() async throws {
    let rig = try await PeripheralRig()
    let descriptor = LocalDescriptor(uuid: BluetoothUUID(UInt16(0x2901)), value: Data("name".utf8))
    let published = try await rig.publish(
      .plain(
        7, [.plain(1, [.read, .notify], descriptors: [descriptor]), .plain(3, .read, value: Data([9]))]))
    let service = try #require(published.objects.first { $0.value[BlueZ.gattService] != nil })
    #expect(service.value[BlueZ.gattService]?["Primary"] == .boolean(true))
    #expect(
      service.value[BlueZ.gattService]?["UUID"] == .string("0000d007-0000-1000-8000-00805f9b34fb"))
    let first = try #require(
      published.characteristics.first.flatMap { published.objects[$0]?[BlueZ.gattCharacteristic] })
    #expect(first["Service"] == .objectPath(service.key))
    #expect(first["Flags"] == ["read", "notify"].dbusValue)
    #expect(first["NotifyAcquired"] == .boolean(false))
    #expect(first["WriteAcquired"] == nil)
    let extra = try #require(published.objects.first { $0.value[BlueZ.gattDescriptor] != nil })
    #expect(
      extra.value[BlueZ.gattDescriptor]?["Characteristic"]
        == published.characteristics.first.map { .objectPath($0) })
    #expect(
      try await rig.daemon.call("ReadValue", extra.key, of: published.client) == [.bytes(Array("name".utf8))])

    rig.peripheral.removeService(LocalServiceID(7))
    let call = try await rig.daemon.calls.next()
    #expect(call.member == "UnregisterApplication" && call.path == published.root)
  }

  @Test("Refusals of the daemon are told")
  func refusedServices() async throws {
    let rig = try await PeripheralRig()
    rig.daemon.refuse(
      "RegisterApplication",
      DBusError(name: BlueZ.Failure.failed, message: "Failed to create entry in database"))
    for isProtected in [false, true] {
      rig.peripheral.addService(.plain(7, [.plain(1, [.notify], isProtected: isProtected)]))
      let code = try await rig.events.first { event in
        if case .serviceAdded(LocalServiceID(7), .failure(let error)) = event { error.code } else { nil }
      }
      #expect(code == (isProtected ? .notSupported : .other))
    }
    rig.daemon.refuse("RegisterApplication", nil)
    rig.peripheral.addService(.plain(7, [.plain(1)]))
    try await rig.events.first { event in
      if case .serviceAdded(LocalServiceID(7), .success) = event { () } else { nil }
    }
  }

  @Test("A service that includes others is shown together with them, and their subscribers begin anew")
  func includes() async throws {
    let rig = try await PeripheralRig()
    let first = try await rig.subscribed()
    rig.peripheral.addService(.plain(8, [.plain(3)], includes: [LocalServiceID(7)]))
    let withdrawal = try await rig.daemon.calls.next()
    #expect(withdrawal.member == "UnregisterApplication" && withdrawal.path == first.root)
    let call = try await rig.daemon.calls.next()
    #expect(call.member == "RegisterApplication")
    guard case .unsubscribed(PeripheralRig.central, PeripheralRig.pushes) = try await rig.events.next(),
      case .serviceAdded(LocalServiceID(8), .success) = try await rig.events.next()
    else {
      Issue.record("other events")
      return
    }
    let objects = try await rig.daemon.bus.managedObjects(at: call.path, destination: call.sender)
    let services = objects.filter { $0.value[BlueZ.gattService] != nil }.sorted { $0.key < $1.key }
    #expect(services.count == 2)
    #expect(services[0].value[BlueZ.gattService]?["Includes"] == nil)
    #expect(services[1].value[BlueZ.gattService]?["Includes"] == [services[0].key].dbusValue)
    // They work as they did.
    let pushes = try #require(
      objects.first { $0.key.isWithin(services[0].key) && $0.value[BlueZ.gattCharacteristic] != nil })
    try await rig.daemon.subscribe(pushes.key, of: first.client)
    guard case .subscribed(PeripheralRig.central, PeripheralRig.pushes) = try await rig.events.next() else {
      Issue.record("not subscribed")
      return
    }
    rig.peripheral.removeService(LocalServiceID(8))
    #expect(try await rig.daemon.calls.next().member == "UnregisterApplication")
    let rest = try await rig.daemon.calls.next()
    #expect(rest.member == "RegisterApplication")
    let left = try await rig.daemon.bus.managedObjects(at: rest.path, destination: rest.sender)
    #expect(left.values.filter { $0[BlueZ.gattService] != nil }.count == 1)
  }
}
