import Radio
import Locking
import Synchronization
import Testing
import VirtualRadio

@_spi(Streams) @testable import CoreBluetooth

/// Programs on both sides of a simulated link.
@Suite(.timeLimit(.minutes(30))) struct VirtualLinkTests {
  /// Bytes that tell where they belong.
  private static func pattern(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
  }

  /// Writes pieces of a value as fast as the link takes them, without a pause of its own.
  private final class Uploader: Sendable {
    let peripheral: CBPeripheral
    let characteristic: CBCharacteristic
    let type: CBCharacteristicWriteType
    private let rest: PosixMutex<ArraySlice<Data>>
    private let readies = Atomic<Int>(0)

    var readyCount: Int { readies.load(ordering: .relaxed) }

    init(
      _ pieces: [Data], to characteristic: CBCharacteristic, of peripheral: CBPeripheral,
      type: CBCharacteristicWriteType
    ) {
      self.peripheral = peripheral
      self.characteristic = characteristic
      self.type = type
      rest = PosixMutex(pieces[...])
    }

    func handle(_ line: String) {
      if line == "ready" { readies.add(1, ordering: .relaxed) }
      if type == .withoutResponse ? line == "ready" : line.hasPrefix("wrote") { pump() }
    }

    func pump() {
      rest.withLock { rest in
        switch type {
        case .withResponse:
          if let piece = rest.popFirst() { peripheral.writeValue(piece, for: characteristic, type: type) }
        default:
          while peripheral.canSendWriteWithoutResponse, let piece = rest.popFirst() {
            peripheral.writeValue(piece, for: characteristic, type: type)
          }
        }
      }
    }
  }

  private static func cut(_ data: Data, into length: Int) -> [Data] {
    stride(from: 0, to: data.count, by: length).map { data[$0..<min($0 + length, data.count)] }
  }

  @Test(arguments: QueueKind.allCases, [CBCharacteristicWriteType.withoutResponse, .withResponse])
  func uploadsWholeByTheLimitOfTheMoment(kind: QueueKind, type: CBCharacteristicWriteType) throws {
    let rig = AirRig(kind)
    let (peripheral, data, _, _) = try rig.explored()
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 182)
    #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
    let image = Self.pattern(10_000)
    let pieces = Self.cut(image, into: peripheral.maximumWriteValueLength(for: type))
    let uploader = Uploader(pieces, to: data, of: peripheral, type: type)
    rig.phone.react { uploader.handle($0) }
    uploader.pump()
    try rig.run { rig.device.received.count == pieces.count }
    #expect(rig.device.received.reduce(Data(), +) == image)
    #expect(rig.phone.watch.isClean)
  }

  /// With response one write an interval at best; without, as many as the link carries.
  @Test(arguments: [1_040, 100_000])
  func bothKindsOfWritesLoseNothing(octets: Int) throws {
    var rates: [Double] = []
    for type in [CBCharacteristicWriteType.withResponse, .withoutResponse] {
      let rig = AirRig(
        link: LinkParameters(attMTU: 23, connectionInterval: .milliseconds(30), queueDepth: 30))
      let (peripheral, data, _, _) = try rig.explored()
      let pieces = Self.cut(Self.pattern(octets), into: 20)
      let uploader = Uploader(pieces, to: data, of: peripheral, type: type)
      rig.phone.react { uploader.handle($0) }
      let start = rig.clock.now
      uploader.pump()
      try rig.run(within: .seconds(3600)) { rig.device.received.count == pieces.count }
      #expect(rig.device.received == pieces)
      rates.append(Double(octets) / ((rig.clock.now - start) / .seconds(1)))
    }
    #expect(rates[0] <= 20 / 0.03 && rates[1] > 10 * rates[0], "\(rates)")
  }

  @Test func refusesOneByteTooManyAndGoesOn() throws {
    let rig = AirRig()
    let (peripheral, data, _, _) = try rig.explored()
    for (count, type) in [
      (182, CBCharacteristicWriteType.withoutResponse), (183, .withoutResponse), (512, .withResponse),
      (513, .withResponse), (1, .withResponse),
    ] { peripheral.writeValue(Self.pattern(count), for: data, type: type) }
    try rig.run { rig.phone.lines.all.count == 3 }
    #expect(rig.device.received.map(\.count) == [182, 512, 1])
    #expect(rig.device.received[1] == Self.pattern(512))
    #expect(
      rig.phone.lines.all == ["wrote \(data.uuid)", "wrote \(data.uuid) att error 13", "wrote \(data.uuid)"])
    #expect(rig.log.all.filter { $0.contains("at most 182 octets") }.count == 1)
    #expect(peripheral.state == .connected)
  }

  @Test func writesInOrderAtTheRateOfTheLink() throws {
    let link = LinkParameters(attMTU: 185, connectionInterval: .milliseconds(15), queueDepth: 20)
    let rig = AirRig(link: link)
    let (peripheral, data, _, _) = try rig.explored()
    let pieces = (0..<5000).map { i in Data([UInt8(i & 0xFF), UInt8(i >> 8)]) + Data(count: 18) }
    let uploader = Uploader(pieces, to: data, of: peripheral, type: .withoutResponse)
    rig.phone.react { uploader.handle($0) }
    let start = rig.clock.now
    uploader.pump()
    try rig.run { rig.device.received.count == 5000 }
    #expect(rig.device.received == pieces)
    #expect(uploader.readyCount > 0)
    let rate = 5000 * 20 / ((rig.clock.now - start) / .seconds(1))
    let ceiling = 20 * 20 / 0.015
    #expect(rate > 0.95 * min(ceiling, LinkCeiling(link).writesWithoutResponse(valueLength: 20).sustained))
    #expect(!rig.log.all.contains { $0.contains("no room") })
  }

  @Test func limitsChangeWithTheLink() throws {
    let rig = AirRig(link: LinkParameters(attMTU: 247, mtuExchangeDelay: .seconds(5)))
    let peripheral = try rig.connected()
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 20)
    try rig.clock.run(for: .seconds(6))
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 244)
    try rig.run { rig.device.manager.state == .poweredOn }
  }

  @Test func readsValuesOfAnyLength() throws {
    let rig = AirRig()
    let (peripheral, data, _, fixed) = try rig.explored()
    peripheral.readValue(for: fixed)
    try rig.run { fixed.value == Data("fixed".utf8) }
    for count in [0, 1, 183, 184, 185, 368, 512] {
      rig.device.setReadable(Self.pattern(count))
      _ = rig.phone.lines.take()
      peripheral.readValue(for: data)
      try rig.run { !rig.phone.lines.all.isEmpty }
      #expect(data.value == Self.pattern(count))
    }
    peripheral.writeValue(Data([1]), for: fixed, type: .withResponse)
    try rig.run { rig.phone.lines.all.last == "wrote \(fixed.uuid) att error 3" }
    peripheral.readRSSI()
    try rig.run { rig.phone.lines.all.last == "rssi -50" }
  }

  @Test func notifiesInOrderUnderBackPressure() throws {
    let rig = AirRig()
    let (peripheral, _, updates, _) = try rig.explored()
    peripheral.setNotifyValue(true, for: updates)
    try rig.run { updates.isNotifying }
    let central = try #require(rig.device.updates.subscribedCentrals?.first)
    #expect(central.maximumUpdateValueLength == 182)
    let got = PosixMutex<[Data]>([])
    rig.phone.react { line in
      if line.hasPrefix("value"), let value = updates.value { got.withLock { $0.append(value) } }
    }
    let next = PosixMutex(0)
    let isFull = Atomic<Int>(0)
    let pump: @Sendable () -> Void = { [manager = rig.device.manager, local = rig.device.updates] in
      next.withLock { next in
        while next < 1000 {
          let value = Data([UInt8(next & 0xFF), UInt8(next >> 8)]) + Data(count: 100)
          guard manager.updateValue(value, for: local, onSubscribedCentrals: nil) else {
            isFull.add(1, ordering: .relaxed)
            return
          }
          next += 1
        }
      }
    }
    rig.device.recorder.react { line in if line == "ready" { pump() } }
    pump()
    try rig.run { got.withLock { $0.count } == 1000 }
    #expect(got.withLock { $0.map { Int($0[0]) | Int($0[1]) << 8 } } == Array(0..<1000))
    let count = isFull.load(ordering: .relaxed)
    #expect(count > 0)
    peripheral.setNotifyValue(false, for: updates)
    try rig.run { rig.device.updates.subscribedCentrals == [] && !updates.isNotifying }
    // Longer than the link carries: cut for the subscriber.
    peripheral.setNotifyValue(true, for: updates)
    try rig.run { updates.isNotifying }
    #expect(
      rig.device.manager.updateValue(Data(count: 300), for: rig.device.updates, onSubscribedCentrals: nil))
    try rig.run { updates.value?.count == 182 }
  }

  @Test func losesTheLinkWithTheReason() throws {
    let rig = AirRig()
    let (peripheral, _, updates, _) = try rig.explored()
    peripheral.setNotifyValue(true, for: updates)
    try rig.run { updates.isNotifying }
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .disconnected }
    #expect(rig.phone.lines.all.last == "disconnected, disconnected link error 6")
    #expect(!updates.isNotifying)
    try rig.run { rig.device.updates.subscribedCentrals == [] }
    // There is no limit on the time that a connection may take.
    rig.central.connect(peripheral)
    try rig.clock.run(for: .seconds(3600))
    #expect(peripheral.state == .connecting)
    rig.air.setInReach(true, of: rig.deviceRadio)
    try rig.run { rig.device.manager.isAdvertising && peripheral.state == .connected }
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.run { rig.phone.lines.all.last == "disconnected, disconnected" }
  }

  @Test func losesThePower() throws {
    let rig = AirRig()
    let (peripheral, _, _, _) = try rig.explored()
    rig.air.setPower(.poweredOff, of: rig.phoneRadio)
    try rig.run { rig.central.state == .poweredOff }
    #expect(rig.phone.lines.all == ["state poweredOff"])
    #expect(peripheral.state == .disconnected)
    rig.air.setPower(.poweredOn, of: rig.phoneRadio)
    try rig.run { rig.central.state == .poweredOn }
    try rig.run { rig.device.manager.isAdvertising }
    rig.central.connect(peripheral)
    try rig.run { peripheral.state == .connected }
  }
}
