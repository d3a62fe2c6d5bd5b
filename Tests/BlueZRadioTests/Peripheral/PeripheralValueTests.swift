import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Values of a peripheral at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PeripheralValueTests {
  @Test(
    "Values go to the daemon, in order; at their bound the read of an attribute makes room, and one signal tells so"
  )
  func values() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.subscribed()
    var sent = 0
    while sent < 1000, rig.peripheral.notify(Data([UInt8(sent)]), of: PeripheralRig.pushes, to: nil) {
      sent += 1
    }
    #expect(sent == 64)
    for number in 0..<sent {
      let (path, value) = try await rig.daemon.values.next()
      #expect(path == published.characteristics[0] && value == [UInt8(number)])
    }
    try await rig.expectNothing()
    try await rig.daemon.reads.next().reply([.bytes([0])])
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    #expect(rig.peripheral.notify(Data([1]), of: PeripheralRig.pushes, to: [PeripheralRig.central]))
    try await rig.expectNothing()
  }

  @Test(
    "What an ATT MTU gives room for fits into a notification of several values, too",
    arguments: [(23, 23), (24, 23), (26, 24), (185, 183), (517, 515)] as [(UInt16, Int)])
  func limit(_ mtu: UInt16, _ usable: Int) async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(2, .notify, [])]))
    try await rig.daemon.subscribe(published.characteristics[0], of: published.client, mtu: mtu)
    #expect(rig.peripheral.attMTU(of: PeripheralRig.central) == usable)
  }

  @Test("Where an attribute cannot be read, a window is taken for sent after a while")
  func noEvidence() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.subscribed()
    while rig.peripheral.notify(Data(count: 20), of: PeripheralRig.pushes, to: nil) {}
    try await rig.daemon.reads.next().fail(DBusError(name: BlueZ.Failure.notAuthorized, message: ""))
    // What the daemon says comes in order: once this is answered, the failure is known.
    _ = try await rig.daemon.call("Confirm", published.characteristics[0], of: published.client)
    try await rig.expectNothing()
    rig.clock.advance(by: .milliseconds(1000))
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
  }

  @Test("Indications wait for confirmations")
  func indications() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.subscribed(.indicate)
    var sent = 0
    while sent < 1000, rig.peripheral.notify(Data([1]), of: PeripheralRig.pushes, to: nil) { sent += 1 }
    #expect(sent == 4)
    _ = try await rig.daemon.call("Confirm", published.characteristics[0], of: published.client)
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    #expect(rig.peripheral.notify(Data([1]), of: PeripheralRig.pushes, to: nil))
    #expect(!rig.peripheral.notify(Data([1]), of: PeripheralRig.pushes, to: nil))
  }

  @Test("A subscription ends with its last word, with its link, and with its service", arguments: 0..<3)
  func ends(_ way: Int) async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.subscribed()
    while rig.peripheral.notify(Data([1]), of: PeripheralRig.pushes, to: nil) {}
    switch way {
    case 0: _ = try await rig.daemon.call("StopNotify", published.characteristics[0], of: published.client)
    case 1: rig.daemon.setConnected(false)
    default: rig.peripheral.removeAllServices()
    }
    if way < 2 {
      guard case .unsubscribed(PeripheralRig.central, PeripheralRig.pushes) = try await rig.events.next()
      else {
        Issue.record("something else")
        return
      }
    }
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    #expect(rig.peripheral.notify(Data([1]), of: PeripheralRig.pushes, to: nil))
    try await rig.expectNothing()
  }

  @Test("A bonded central comes back as a subscriber, another does not", arguments: [true, false])
  func bonded(_ isBonded: Bool) async throws {
    let rig = try await PeripheralRig()
    if isBonded { rig.daemon.setBonded() }
    let published = try await rig.subscribed()
    rig.daemon.setConnected(false)
    guard case .unsubscribed = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    rig.daemon.setConnected(true)
    if isBonded {
      guard case .subscribed(PeripheralRig.central, PeripheralRig.pushes) = try await rig.events.next() else {
        Issue.record("something else")
        return
      }
    }
    // The daemon's words come in order: what was sent before has been handled.
    await #expect(throws: DBusError.self) {
      _ = try await rig.daemon.call("ReadValue", published.characteristics[0], of: published.client)
    }
    try await rig.expectNothing()
  }
}
