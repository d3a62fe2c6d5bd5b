import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("A central at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct CentralTests {
  private static let held = DBusError(name: BlueZ.Failure.notPermitted, message: "Notify acquired")
  private static let subscription = GATTRequest.setNotify(FakeDevice.Characteristic.pushes.remote, .notify)

  @Test("Commands to what takes none are refused", arguments: [0x14, 0x16, 0x999] as [AttributeHandle])
  func unwritable(_ handle: AttributeHandle) async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    #expect(
      rig.central.writeWithoutResponse(Data([1]), to: handle, of: FakeDevice.peer) == .invalidHandle)
    #expect(rig.command(1) == .accepted)
  }

  @Test(
    "Who knows the services of a device knows the ATT MTU, also where the daemon has had the device before",
    arguments: [true, false])
  func mtu(isTold: Bool) async throws {
    let rig = try await CentralRig()
    for mtu in [185, 100, 247] as [UInt16] {
      rig.daemon.setMTU(mtu, isTold: isTold)
      rig.central.connect(FakeDevice.peer)
      try await rig.events.first { if case .connected = $0 { () } else { nil } }
      _ = try await rig.answer(rig.ask(.discoverServices(nil))).get()
      #expect(rig.central.attMTU(of: FakeDevice.peer) == Int(mtu))
      rig.daemon.setConnected(false)
      _ = try await rig.disconnection()
    }
  }

  // MARK: Ends of links

  @Test(
    "Newer daemons say why a link has ended",
    arguments: [
      ("Timeout", .supervisionTimeout), ("Remote", .peerTerminated), (nil, .peerTerminated),
    ] as [(String?, RadioError.Code)])
  func reason(_ reason: String?, _ code: RadioError.Code) async throws {
    let rig = try await CentralRig()
    for _ in 0..<2 {
      try await rig.connect()
      if let reason { try rig.daemon.tellReason(reason) }
      rig.daemon.setConnected(false)
      #expect(try await rig.disconnection()?.code == code)
    }
    // It was said of that link alone.
    try await rig.connect()
    rig.daemon.setConnected(false)
    #expect(try await rig.disconnection()?.code == .peerTerminated)
  }

  @Test("Links that have ended leave nothing behind", arguments: [true, false])
  func links(isCancelled: Bool) async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    #expect(rig.host.queue.sync { rig.host.central.linkCount } == 1)
    if isCancelled {
      rig.central.cancelConnection(FakeDevice.peer)
    } else {
      rig.daemon.setConnected(false)
    }
    _ = try await rig.disconnection()
    await rig.settle()
    await rig.settle()
    #expect(rig.host.queue.sync { rig.host.central.linkCount } == 0)
    try await rig.connect()
  }

  @Test("A request for a connection that is given up leaves nothing either")
  func pending() async throws {
    let rig = try await CentralRig()
    rig.daemon.hold("Connect")
    rig.central.connect(FakeDevice.peer)
    let call = try await rig.daemon.held.next()
    rig.central.cancelConnection(FakeDevice.peer)
    #expect(try await rig.disconnection() == nil)
    #expect(rig.host.queue.sync { rig.host.central.linkCount } == 1)
    call.fail(DBusError(name: BlueZ.Failure.failed, message: "le-connection-abort-by-local"))
    await rig.settle()
    await rig.settle()
    #expect(rig.host.queue.sync { rig.host.central.linkCount } == 0)
  }

  // MARK: Signal strength

  @Test("The strength of a link is told where the daemon has it, and is an error elsewhere")
  func rssi() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    guard case .failure(.radio(let error)) = try await rig.answer(rig.ask(.readRSSI)) else {
      Issue.record("it was told")
      return
    }
    #expect(error.code == .notSupported)
    rig.daemon.setRSSI(-57)
    await rig.settle()
    guard case .success(.rssi(-57)) = try await rig.answer(rig.ask(.readRSSI)) else {
      Issue.record("it was not told")
      return
    }
  }

  // MARK: Notifications

  private func notified(_ rig: CentralRig) async throws -> Data {
    try await rig.events.first { if case .notified(_, 0x16, let value) = $0 { value } else { nil } }
  }

  @Test(
    "A subscription is told when the peer has taken it, however long that takes, and values come after it")
  func slowSubscription() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    rig.daemon.hold("StartNotify")
    rig.daemon.refuse("AcquireNotify", DBusError(name: BlueZ.Failure.notSupported, message: ""))
    let id = rig.ask(Self.subscription)
    let call = try await rig.daemon.held.next()
    await rig.pass(.seconds(3), step: .seconds(1))
    try call.reply()
    guard case .success = try await rig.answer(id) else {
      Issue.record("no success")
      return
    }
    rig.daemon.push([5])
    #expect(try await notified(rig) == Data([5]))
  }

  @Test("A descriptor that the daemon closes is no end of values: they come by another way")
  func closedDescriptor() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    _ = try await rig.answer(rig.ask(Self.subscription)).get()
    var end: DaemonEnd? = try await rig.daemon.notifyEnds.next()
    #expect(end?.send([1]) == .sent)
    #expect(try await notified(rig) == Data([1]))
    end = nil
    // The end of the descriptor is noticed by itself; what comes of it, within a second.
    while !rig.daemon.log.contains("StartNotify") { await rig.pass(.milliseconds(100)) }
    rig.daemon.push([2])
    #expect(try await notified(rig) == Data([2]))
  }

  @Test("Where there is no other way, a closed descriptor is the end of the link")
  func deaf() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    _ = try await rig.answer(rig.ask(Self.subscription)).get()
    rig.daemon.refuse("StartNotify", DBusError(name: BlueZ.Failure.failed, message: "no"))
    var end: DaemonEnd? = try await rig.daemon.notifyEnds.next()
    withExtendedLifetime(end) {}
    end = nil
    while !rig.daemon.log.contains("StartNotify") { await rig.pass(.milliseconds(100)) }
    #expect(try await rig.disconnection()?.code == .other)
  }

  @Test("A closed descriptor with the link is the end of the link alone")
  func closedWithLink() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    _ = try await rig.answer(rig.ask(Self.subscription)).get()
    var end: DaemonEnd? = try await rig.daemon.notifyEnds.next()
    withExtendedLifetime(end) {}
    end = nil
    rig.daemon.setConnected(false)
    #expect(try await rig.disconnection()?.code == .peerTerminated)
    await rig.pass(.seconds(2))
    #expect(!rig.daemon.log.contains("StartNotify"))
  }

  @Test(
    "Notifications that another program has are shared where the daemon does that, and else one sentence says so",
    arguments: [held, DBusError(name: BlueZ.Failure.inProgress, message: "In Progress")], [true, false])
  func inUse(_ refusal: DBusError, isShared: Bool) async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    rig.daemon.refuse("AcquireNotify", refusal)
    if !isShared { rig.daemon.refuse("StartNotify", Self.held) }
    let start = rig.clock.now
    let id = rig.ask(Self.subscription)
    // The daemon may have yet to notice that somebody let go of them.
    for _ in 0..<70 { await rig.pass(.milliseconds(100)) }
    let result = try await rig.answer(id)
    #expect(rig.clock.now - start <= .seconds(10))
    if isShared {
      _ = try result.get()
      rig.daemon.push([3])
      #expect(try await notified(rig) == Data([3]))
    } else {
      guard case .failure(.radio(let error)) = result else {
        Issue.record("another answer")
        return
      }
      #expect(error.code == .noResources && error.message.contains("in use by another program"))
    }
  }
}
