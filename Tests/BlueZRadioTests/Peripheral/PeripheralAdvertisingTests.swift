import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Advertising of a peripheral at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PeripheralAdvertisingTests {
  @Test("Advertising starts and stops at the daemon")
  func advertising() async throws {
    let rig = try await PeripheralRig()
    for _ in 0..<3 {
      rig.peripheral.startAdvertising(
        Advertisement(localName: "D", services: [BluetoothUUID(UInt16(0xFFF0))]))
      let call = try await rig.daemon.calls.next()
      #expect(call.member == "RegisterAdvertisement")
      let properties = try await rig.daemon.bus.properties(
        of: BlueZ.advertisement, at: call.path, destination: call.sender)
      #expect(properties["LocalName"] == .string("D"))
      guard case .advertisingStarted(.success) = try await rig.events.next() else {
        Issue.record("not started")
        return
      }
      rig.peripheral.stopAdvertising()
      let end = try await rig.daemon.calls.next()
      #expect(end.member == "UnregisterAdvertisement" && end.path == call.path)
    }
  }

  @Test(
    "Refusals of the daemon are told",
    arguments: [
      (BlueZ.Failure.notPermitted, .outOfSpace), (BlueZ.Failure.invalidLength, .outOfSpace),
      (DBusErrorName.unknownMethod, .notSupported), (BlueZ.Failure.failed, .other),
    ] as [(String, RadioError.Code)])
  func refusedAdvertising(_ name: String, _ code: RadioError.Code) async throws {
    let rig = try await PeripheralRig()
    rig.daemon.refuse("RegisterAdvertisement", DBusError(name: name, message: "no"))
    rig.peripheral.startAdvertising(Advertisement())
    guard case .advertisingStarted(.failure(let error)) = try await rig.events.next() else {
      Issue.record("started")
      return
    }
    #expect(error.code == code)
  }

  @Test("A client that goes in the middle of a registration takes it back once it was answered")
  func releasedEarly() async throws {
    let bus = try await PrivateBus()
    let daemon = try await FakeManagers(bus)
    daemon.hold("RegisterAdvertisement")
    let events = Arrivals<PeripheralEvent>()
    // Radio and client are gone after this.
    try await {
      let radio = try BlueZRadio(bus: bus.address)
      let peripheral = radio.makePeripheral { events.put($0) }
      try await events.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
      peripheral.startAdvertising(Advertisement())
      _ = try await daemon.calls.next()
    }()
    try await daemon.held.next().reply()
    #expect(try await daemon.calls.next().member == "UnregisterAdvertisement")
  }
}
