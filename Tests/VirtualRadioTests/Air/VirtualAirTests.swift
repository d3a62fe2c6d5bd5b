import Foundation
import Radio
import TestSupport
import Testing

@testable import VirtualRadio

@Suite("Air in process") struct VirtualAirTests {
  private func numbered(_ count: Int, _ length: Int) -> [Data] {
    (0..<count).map { number in
      Data([UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)])
        + Data(count: length - 2)
    }
  }

  // MARK: Cost

  @Test func aLinkAtRestCostsNothing() throws {
    let rig = AirRig()
    let values = try rig.connectAndFind()
    try rig.runToRest()
    let rest = rig.clock.now
    // The world is idle: simulated time does not move by itself, and a day passes at once.
    #expect(rest < .seconds(5))
    try rig.clock.run(for: .seconds(86_400))
    #expect(rig.disconnection == nil)
    try rig.ask(.write(values.handle, Data([1])))
    #expect(rig.clock.now < rest + .seconds(86_401))
  }

  @Test func nobodyListensNobodyAdvertises() throws {
    let rig = AirRig()
    try rig.runToRest()
    #expect(rig.clock.now == .zero)
    rig.central.startScan(ScanFilter(services: [BluetoothUUID(UInt16(0x1234))]))
    try rig.runToRest()
    #expect(rig.clock.now == .zero)
    rig.central.startScan(ScanFilter(services: [AirRig.service]))
    try rig.runToRest()
    #expect(rig.clock.now > .zero && rig.clock.now < .milliseconds(120))
    rig.central.startScan(ScanFilter(allowDuplicates: true))
    try rig.clock.run(for: .seconds(10))
    let sightings = rig.count { if case .discovered = $0 { true } else { false } }
    #expect((92...102).contains(sightings))
  }

  @Test func aSilentLinkIsLostAfterTheSupervisionTimeout() throws {
    let rig = AirRig(LinkParameters(supervisionTimeout: .seconds(4)))
    try rig.connect()
    try rig.runToRest()
    let start = rig.clock.now
    rig.air.setInReach(false, of: rig.device)
    try rig.run { rig.disconnection != nil }
    let end = try #require(rig.disconnection)
    #expect(end.error?.code == .supervisionTimeout)
    #expect(end.at - start <= .seconds(4) && end.at - start > .milliseconds(3_900))
  }

  /// The same seed gives the same run, to the nanosecond.
  @Test func runsAreReproducible() throws {
    func run(_ seed: UInt64) throws -> (Duration, [Data]) {
      let rig = AirRig(LinkParameters(packetErrorRate: 0.2), seed: seed)
      let values = try rig.connectAndFind()
      try rig.pour(numbered(200, 100), to: values.handle)
      try rig.runToRest()
      return (rig.clock.now, rig.commands)
    }
    let (one, again, other) = (try run(1), try run(1), try run(2))
    #expect(one.0 == again.0)
    #expect(one.1 == again.1)
    #expect(one.0 != other.0)
    #expect(one.1 == numbered(200, 100))
  }

  // MARK: Throughput

  @Test(arguments: [
    LinkParameters(attMTU: 247, connectionInterval: .milliseconds(30)),
    LinkParameters(attMTU: 498, connectionInterval: .milliseconds(15)),
    LinkParameters(phy: .le1M, dataLength: 27, attMTU: 23, connectionInterval: .microseconds(7500)),
    LinkParameters(phy: .codedS8, attMTU: 247, connectionInterval: .milliseconds(100)),
    LinkParameters(attMTU: 247, connectionInterval: .milliseconds(50), packetsPerEvent: 6),
  ])
  func commandsReachTheCeiling(_ link: LinkParameters) throws {
    let rig = AirRig(link)
    let values = try rig.connectAndFind()
    try rig.run { rig.central.attMTU(of: rig.peer) == link.attMTU }
    try rig.runToRest()
    let length = link.attMTU - 3
    let ceiling = LinkCeiling(link).writesWithoutResponse().sustained
    // Two seconds' worth: the first event may be an interval away and the last one only partly used.
    let count = Int(2 * ceiling) / length
    let start = rig.clock.now
    try rig.pour(numbered(count, length), to: values.handle)
    try rig.run { rig.commands.count == count }
    let expected = Double(count * length) / ceiling
    let taken = (rig.clock.now - start) / .seconds(1)
    let interval = link.connectionInterval / .seconds(1)
    #expect(taken >= expected - interval)
    #expect(taken <= expected + 2 * interval)
  }

  @Test func streamsReachTheCeiling() throws {
    let link = LinkParameters(attMTU: 247, connectionInterval: .milliseconds(30))
    let rig = AirRig(link)
    rig.peripheral.publishChannel(requiresEncryption: false)
    try rig.connect()
    try rig.runToRest()
    let psm = try #require(
      rig.peripheralEvents.all.compactMap { event in
        if case .channelPublished(.success(let psm)) = event { psm } else { nil }
      }.first)
    rig.central.openChannel(psm: psm, of: rig.peer, id: RequestID(500))
    try rig.runToRest()
    let here = try #require(
      rig.centralEvents.all.compactMap { event in
        if case .completed(_, _, .success(.channel(let channel))) = event { channel } else { nil }
      }.first)
    let there = try #require(
      rig.peripheralEvents.all.compactMap { event in
        if case .channelOpened(_, _, let channel) = event { channel } else { nil }
      }.first)
    here.setSink { _ in }
    there.setSink { _ in }
    let data = Data((0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 11) })
    var (written, arrived) = (0, Data())
    let start = rig.clock.now
    try rig.run {
      arrived += there.read(upTo: 100_000)
      written += here.write(data.dropFirst(written))
      return arrived.count == data.count
    }
    #expect(arrived == data)
    let rate = Double(data.count) / ((rig.clock.now - start) / .seconds(1))
    #expect(rate >= 0.97 * LinkCeiling(link).channel(sdu: 65_535, mps: 247).sustained)
  }

  /// A queue of 30 and an interval of 30 ms lose nothing in either mode, and commands are faster by what the air allows.
  @Test(arguments: [1_040, 20_000])
  func bothKindsOfWritesLoseNothing(_ octets: Int) throws {
    let rig = AirRig(LinkParameters(attMTU: 23, connectionInterval: .milliseconds(30), queueDepth: 30))
    let values = try rig.connectAndFind()
    try rig.runToRest()
    let parts = numbered(octets / 20, 20)
    var start = rig.clock.now
    for part in parts { try rig.ask(.write(values.handle, part)) }
    let withResponse = rig.clock.now - start
    let stored = rig.peripheralEvents.all.compactMap { event in
      if case .write(_, _, let writes, true) = event { writes.first?.value } else { nil }
    }
    #expect(stored == parts)
    start = rig.clock.now
    try rig.pour(parts, to: values.handle)
    try rig.run { rig.commands.count == parts.count }
    let withoutResponse = rig.clock.now - start
    #expect(rig.commands == parts)
    // A request and its answer take at least one event each; 30 commands at most fit an interval here.
    #expect(withResponse >= .milliseconds(30) * parts.count)
    #expect(withResponse > withoutResponse * 10)
  }

  // MARK: Shared links

  @Test func clientsOfOneAdapterShareALink() throws {
    let rig = AirRig()
    let pushes = try rig.connectAndFind(0xFFF2)
    try rig.ask(.setNotify(pushes, .notify))
    let second = AirLog<CentralEvent>()
    let other = rig.phone.makeCentral { second.take($0) }
    other.connect(rig.peer)
    #expect(second.all.contains { if case .connected = $0 { true } else { false } })
    other.request(.setNotify(pushes, .notify), of: rig.peer, id: RequestID(1))
    try rig.runToRest()
    #expect(rig.peripheral.notify(Data([1]), of: AirRig.pushes, to: nil))
    try rig.runToRest()
    let values = { (log: AirLog<CentralEvent>) in
      log.all.compactMap { if case .notified(_, _, let value) = $0 { value } else { nil } }
    }
    #expect(values(second) == [Data([1])])
    #expect(values(rig.centralEvents) == [Data([1])])
    // One leaves: the link and the other's subscription stay.
    rig.central.cancelConnection(rig.peer)
    #expect(rig.peripheral.notify(Data([2]), of: AirRig.pushes, to: nil))
    try rig.runToRest()
    #expect(values(second) == [Data([1]), Data([2])])
    #expect(values(rig.centralEvents) == [Data([1])])
    #expect(rig.disconnection?.error == nil)
    other.cancelConnection(rig.peer)
    try rig.runToRest()
    let subscriptions = rig.peripheralEvents.all.compactMap { event in
      switch event {
      case .subscribed: "on"
      case .unsubscribed: "off"
      default: nil
      }
    }
    #expect(subscriptions == ["on", "off"])
  }

  @Test func theLastUnsubscriberUnsubscribes() throws {
    let rig = AirRig()
    let pushes = try rig.connectAndFind(0xFFF2)
    let second = AirLog<CentralEvent>()
    let other = rig.phone.makeCentral { second.take($0) }
    other.connect(rig.peer)
    try rig.ask(.setNotify(pushes, .notify))
    rig.central.cancelConnection(rig.peer)
    try rig.runToRest()
    #expect(
      rig.peripheralEvents.all.contains { if case .unsubscribed = $0 { true } else { false } })
    #expect(other.attMTU(of: rig.peer) == 247)
  }

  @Test func aShorterIntervalMakesAnswersPrompter() throws {
    let rig = AirRig(LinkParameters(connectionInterval: .milliseconds(200)))
    let values = try rig.connectAndFind()
    try rig.runToRest()
    func duration() throws -> Duration {
      let start = rig.clock.now
      try rig.ask(.write(values.handle, Data([1])))
      return rig.clock.now - start
    }
    let slow = try duration()
    rig.peripheral.requestLatency(.low, for: rig.phone.peerID)
    try rig.runToRest()
    #expect(try duration() * 5 < slow)
  }

  /// A program asks for one thing after the other: the host subscribes to Service Changed once that is over.
  @Test func theHostAsksNothingBetweenTheRequestsOfAProgram() throws {
    let rig = AirRig(LinkParameters(connectionInterval: .milliseconds(30)))
    let values = try rig.connectAndFind()
    let start = rig.clock.now
    for number: UInt8 in 0..<10 { try rig.ask(.write(values.handle, Data([number]))) }
    #expect(rig.clock.now - start <= .milliseconds(30) * 21)
    let before = rig.air.usage(from: rig.phone, to: rig.device).packets
    try rig.runToRest()
    #expect(rig.air.usage(from: rig.phone, to: rig.device).packets >= before + 4)
  }

  @Test func adaptersHaveLastingIdentifiers() {
    let (one, two) = (AirRig(), AirRig())
    #expect(one.device.peerID == two.device.peerID)
    #expect(one.device.peerID != one.phone.peerID)
    #expect(one.air.makeRadio(name: "device").peerID != one.device.peerID)
  }

  @Test func capturesHoldEveryFrame() throws {
    let folder = TemporaryFolder()
    let writer = try BTSnoopWriter(path: folder.path("link.btsnoop"), epoch: 0)
    let rig = AirRig(capture: writer)
    let values = try rig.connectAndFind()
    let mark = Data("a value to be found in the capture".utf8)
    try rig.ask(.write(values.handle, mark))
    rig.central.cancelConnection(rig.peer)
    try rig.runToRest()
    writer.close()
    let bytes = try #require(folder.contents("link.btsnoop"))
    #expect(bytes.range(of: mark) != nil)
    #expect(bytes.range(of: Data([0x13, 0x00]), in: bytes.count - 20..<bytes.count) == nil)
    #expect(writer.failure == nil)
  }
}
