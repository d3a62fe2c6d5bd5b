import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("The order of requests and writes without response")
struct WriteOrderTests {
  @Test("values leave up to the first request that the daemon has not got")
  func order() {
    var order = WriteOrder()
    let before = order.addValue()
    let request = order.addRequest()
    let between = order.addValue()
    let other = order.addRequest()
    let after = order.addValue()
    #expect(before < request && request < between)
    #expect([before, between, after].map(order.mayLeave) == [true, false, false])
    order.pass(request)
    #expect([before, between, after].map(order.mayLeave) == [true, true, false])
    order.pass(request)
    order.pass(other)
    #expect([before, between, after].map(order.mayLeave) == [true, true, true])
  }

  @Test("a request that is dropped holds nothing up, whenever it is")
  func dropped() {
    var order = WriteOrder()
    let first = order.addRequest()
    let second = order.addRequest()
    let value = order.addValue()
    order.pass(second)
    #expect(!order.mayLeave(value))
    order.pass(first)
    #expect(order.mayLeave(value))
  }
}

@Suite("Requests behind writes without response, at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct HeldBackTests {
  private static let requests: [GATTRequest] = [
    .read(FakeDevice.Characteristic.values.handle),
    .write(FakeDevice.Characteristic.values.handle, Data([7])),
    .setNotify(FakeDevice.Characteristic.pushes.remote, .notify),
  ]

  /// Whether the daemon has been asked for what a request comes to.
  private func isAsked(_ rig: CentralRig) -> Bool {
    rig.daemon.log.contains { ["ReadValue", "WriteValue", "AcquireNotify"].contains($0) }
  }

  @Test(
    "A request waits until the daemon has fetched what was written before it, and overtakes nothing",
    arguments: requests)
  func order(_ request: GATTRequest) async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    for number in 0..<3 as Range<UInt8> { #expect(rig.command(number) == .accepted) }
    let end = try await rig.daemon.writeEnds.next()
    let id = rig.ask(request)
    #expect(rig.command(9) == .accepted)
    for number in 0..<3 as Range<UInt8> {
      await rig.settle()
      #expect(!isAsked(rig))
      #expect(await end.take() == .value(Data([number])))
    }
    guard case .success = try await rig.answer(id) else {
      Issue.record("no success")
      return
    }
    #expect(isAsked(rig))
    #expect(await end.take() == .value(Data([9])))
  }

  @Test("Requests and values between them keep their places")
  func alternating() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    #expect(rig.command(0) == .accepted)
    let end = try await rig.daemon.writeEnds.next()
    var ids: [RequestID] = []
    for number in 1...5 as ClosedRange<UInt8> {
      ids.append(rig.ask(.read(FakeDevice.Characteristic.values.handle)))
      #expect(rig.command(number) == .accepted)
    }
    for number in 0...5 as ClosedRange<UInt8> {
      await rig.settle()
      #expect(rig.daemon.log.filter { $0 == "ReadValue" }.count == Int(number))
      #expect(await end.take() == .value(Data([number])))
      if number < 5 { _ = try await rig.answer(ids[Int(number)]).get() }
    }
  }

  @Test("A daemon that does not fetch values is given up, and so is the link")
  func limit() async throws {
    let rig = try await CentralRig()
    try await rig.connect()
    #expect(rig.command(1) == .accepted)
    let end = try await rig.daemon.writeEnds.next()
    _ = rig.ask(.read(FakeDevice.Characteristic.values.handle))
    await rig.settle()
    await rig.pass(.seconds(29), step: .seconds(1))
    #expect(rig.command(2) == .accepted)
    await rig.pass(.seconds(1), step: .seconds(1))
    #expect(try await rig.disconnection()?.code == .timeout)
    #expect(!isAsked(rig))
    #expect(rig.command(3) == .notConnected)
    withExtendedLifetime(end) {}
  }

  @Test("What a client leaves behind holds nobody up")
  func leaving() async throws {
    let rig = try await CentralRig()
    let events = Arrivals<CentralEvent>()
    let other = BlueZCentral(rig.host) { events.put($0) }
    try await events.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
    try await rig.connect()
    other.connect(FakeDevice.peer)
    try await events.first { if case .connected = $0 { () } else { nil } }
    #expect(rig.command(1) == .accepted)
    let end = try await rig.daemon.writeEnds.next()
    // One that runs, one that waits, and one that comes too late.
    let values = FakeDevice.Characteristic.values.handle
    _ = rig.ask(.read(values))
    _ = rig.ask(.read(values))
    rig.central.cancelConnection(FakeDevice.peer)
    _ = rig.ask(.read(values))
    await rig.settle()
    #expect(
      other.writeWithoutResponse(
        Data([2]), to: FakeDevice.Characteristic.commands.handle, of: FakeDevice.peer) == .accepted)
    #expect(await end.take() == .value(Data([1])))
    #expect(await end.take() == .value(Data([2])))
  }
}
