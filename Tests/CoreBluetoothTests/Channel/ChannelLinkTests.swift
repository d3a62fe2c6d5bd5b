import Dispatch
import Foundation
import Locking
import Radio
import Testing
import VirtualRadio

@_spi(Streams) @testable import CoreBluetooth

/// Channels over a simulated link, whole.
@Suite(.timeLimit(.minutes(30))) struct ChannelLinkTests {
  /// Lengths up to `limit`, the same for the same seed.
  private static func portions(_ limit: Int, seed: UInt64) -> @Sendable () -> Int {
    let generator = PosixMutex(SeededGenerator(seed: seed))
    return { generator.withLock { Int.random(in: 1...limit, using: &$0) } }
  }

  @Test(arguments: [true, false], [(16, 100), (2_000, 4_096), (20_000, 90_000)])
  func carryBothWays(byRunLoop: Bool, limits: (near: Int, far: Int)) async throws {
    let rig = AirRig()
    let (up, down) = (pattern(60_000), pattern(45_000))
    let thread = await RunLoopThread.start()
    let (nearEnd, farEnd) = try rig.openedChannel()
    let near = Pipe(nearEnd, sending: up, portion: Self.portions(limits.near, seed: 1))
    let far = Pipe(farEnd, sending: down, portion: Self.portions(limits.far, seed: 2))
    for pipe in [near, far] { pipe.open(in: byRunLoop ? thread.runLoop : nil) }
    try rig.run { far.received.count == up.count && near.received.count == down.count }
    #expect(far.received == up)
    #expect(near.received == down)
    near.close()
    try rig.run { far.endings.count == 2 }
    #expect(far.endings.sorted() == ["in end", "out end"])
    #expect(near.endings == [])
    #expect(far.channel.inputStream.streamStatus == .atEnd)
    await thread.stop()
  }

  @Test("what was written before closing arrives", arguments: [1, 500, 60_000], [true, false])
  func closeAfterTheLastByte(size: Int, isReadLate: Bool) throws {
    let rig = AirRig()
    let (near, far) = try rig.openedChannel()
    let (output, input) = (try #require(near.outputStream), try #require(far.inputStream))
    output.open()
    #expect(output.writeBytes(Array(pattern(size))) == size)
    output.close()
    near.inputStream.open()
    near.inputStream.close()
    if isReadLate { try rig.run(within: .seconds(60)) { far.core?.end != nil } }
    input.open()
    var got: [UInt8] = []
    try rig.run {
      while let bytes = input.readBytes(100), !bytes.isEmpty { got += bytes }
      return input.streamStatus == .atEnd
    }
    #expect(Data(got) == pattern(size))
    #expect(input.streamError == nil)
  }

  @Test(arguments: [true, false])
  func endWithTheLink(byRunLoop: Bool) async throws {
    let rig = AirRig()
    let up = pattern(200_000)
    let thread = await RunLoopThread.start()
    let (nearEnd, farEnd) = try rig.openedChannel()
    let near = Pipe(nearEnd, sending: up) { 4_096 }
    let far = Pipe(farEnd, sending: Data()) { 4_096 }
    for pipe in [near, far] { pipe.open(in: byRunLoop ? thread.runLoop : nil) }
    try rig.run { far.received.count >= up.count / 2 }
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { near.endings.count == 2 && far.endings.count == 2 }
    #expect(near.endings.sorted() == ["in error", "out error"])
    #expect(far.received == up.prefix(far.received.count))
    #expect(near.unsent > 0)
    #expect(near.channel.outputStream.streamStatus == .error)
    #expect((near.channel.outputStream.streamError as? CBError)?.code == .connectionTimeout)
    #expect(rig.phone.lines.all.last == "disconnected, disconnected link error 6")
    await thread.stop()
  }

  @Test("the channel alone may end; the link goes on")
  func endWithTheChannel() throws {
    let rig = AirRig()
    let (nearEnd, farEnd) = try rig.openedChannel()
    let near = Pipe(nearEnd, sending: pattern(500_000)) { 4_096 }
    let far = Pipe(farEnd, sending: Data()) { 4_096 }
    for pipe in [near, far] { pipe.open(in: nil) }
    try rig.run { far.received.count >= 250_000 }
    far.close()
    try rig.run { near.endings.count == 2 }
    #expect(near.endings.sorted() == ["in end", "out end"] && near.unsent > 0)
    #expect(rig.phone.peripherals.first?.state == .connected)
  }

  @Test("what had arrived can be read after the link was lost") func outliveTheLink() throws {
    let rig = AirRig()
    let (near, far) = try rig.openedChannel()
    let (output, input) = (try #require(near.outputStream), try #require(far.inputStream))
    output.open()
    input.open()
    #expect(output.writeBytes(Array(pattern(10_000))) == 10_000)
    try rig.run { input.hasBytesAvailable }
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { far.core?.end != nil }
    #expect(input.streamStatus == .open)
    var got: [UInt8] = []
    while let bytes = input.readBytes(77) {
      try #require(!bytes.isEmpty)
      got += bytes
    }
    #expect(!got.isEmpty)
    #expect(Data(got) == pattern(10_000).prefix(got.count))
    #expect(input.streamStatus == .error)
    #expect((input.streamError as? CBError)?.code == .connectionTimeout)
  }

  /// Nobody reads, so the credits run dry: what both ends hold does not grow.
  @Test func holdNoMoreThanTheirBuffers() throws {
    let rig = AirRig()
    let (near, far) = try rig.openedChannel()
    let (output, input) = (try #require(near.outputStream), try #require(far.inputStream))
    output.open()
    input.open()
    let all = Array(pattern(500_000))
    var written = 0
    func fill() {
      while written < all.count {
        let count = output.writeBytes(Array(all[written..<min(written + 3_000, all.count)]))
        guard count > 0 else { return }
        written += count
      }
    }
    for _ in 0..<120 {
      fill()
      try rig.clock.run(for: .seconds(1))
    }
    let held = written
    #expect((65_536...140_000).contains(held))
    #expect(output.writeBytes([0]) == 0)
    #expect(output.streamStatus == .open)
    // Credits come back as the program reads, and only so.
    var got = input.readBytes(20_000) ?? []
    for _ in 0..<10 {
      fill()
      try rig.clock.run(for: .seconds(1))
    }
    #expect(written > held)
    // But for what was on the air, and the rounding of credits to frames.
    #expect(written <= held + got.count + 1_000)
    try rig.run {
      fill()
      while let bytes = input.readBytes(1_234), !bytes.isEmpty { got += bytes }
      return got.count == all.count
    }
    #expect(got == all)
  }

  @Test(
    "what nobody has published is refused, and what is no PSM of LE",
    arguments: [
      (0, .invalidParameters), (0x25, .operationNotSupported), (0xFF, .operationNotSupported),
      (0x100, .invalidParameters),
    ]
      as [(CBL2CAPPSM, CBError.Code)])
  func areRefusedWithAnError(psm: CBL2CAPPSM, code: CBError.Code) throws {
    let rig = AirRig()
    let peripheral = try rig.connected()
    peripheral.openL2CAPChannel(psm)
    try rig.run(within: .seconds(5)) {
      rig.phone.lines.all.last == "channel nil link error \(code.rawValue)"
    }
    #expect(peripheral.state == .connected)
  }

  @Test func openTwiceOnOnePSM() throws {
    let rig = AirRig()
    let (firstNear, firstFar) = try rig.openedChannel()
    rig.phone.peripherals.first?.openL2CAPChannel(firstNear.psm)
    try rig.run { rig.phone.openChannels.count == 2 && rig.device.recorder.channels.count == 2 }
    let pipes = [
      Pipe(firstNear, sending: pattern(9_000)) { 700 },
      Pipe(try #require(rig.phone.openChannels.last), sending: Data(pattern(8_000).reversed())) { 500 },
      Pipe(firstFar, sending: Data()) { 600 },
      Pipe(try #require(rig.device.recorder.channels.last), sending: Data()) { 600 },
    ]
    for pipe in pipes { pipe.open(in: nil) }
    try rig.run { pipes[2].received.count == 9_000 && pipes[3].received.count == 8_000 }
    #expect(pipes[2].received == pattern(9_000))
    #expect(pipes[3].received == Data(pattern(8_000).reversed()))
    pipes[0].close()
    try rig.run { pipes[2].endings.count == 2 }
    #expect(pipes[3].endings == [])
    #expect(pipes[1].channel.outputStream.hasSpaceAvailable == true)
  }

  /// Both sides have published the same number: which end offers the channel counts, not the number.
  @Test(arguments: [true, false]) func endWhenUnpublished(byItsServer: Bool) throws {
    let rig = AirRig()
    let other = PeripheralRecorder()
    let phoneManager = CBPeripheralManager(
      delegate: other, queue: DispatchQueue(label: "phone as a peripheral"),
      options: [CBManagerOptionRadioKey: rig.phoneRadio])
    try rig.run { phoneManager.state == .poweredOn }
    phoneManager.publishL2CAPChannel(withEncryption: false)
    let (nearEnd, farEnd) = try rig.openedChannel()
    #expect(other.lines.all.contains("published \(nearEnd.psm)"))
    let (near, far) = (Pipe(nearEnd, sending: Data()) { 600 }, Pipe(farEnd, sending: Data()) { 600 })
    for pipe in [near, far] { pipe.open(in: nil) }
    let manager = byItsServer ? rig.device.manager : phoneManager
    let recorder = byItsServer ? rig.device.recorder : other
    manager.unpublishL2CAPChannel(nearEnd.psm)
    try rig.run { recorder.lines.all.last == "unpublished \(nearEnd.psm)" }
    try rig.clock.run(for: .seconds(2))
    #expect(near.endings.sorted() == (byItsServer ? ["in end", "out end"] : []))
    #expect(far.endings.sorted() == (byItsServer ? ["in end", "out end"] : []))
  }

  /// A request that the program still holds does not keep what its manager has published.
  @Test func areNotOfferedByAManagerThatIsGone() throws {
    let rig = try HeldRequestRig()
    rig.phone.peripherals.first?.openL2CAPChannel(rig.psm)
    try rig.run { !rig.phone.openChannels.isEmpty }
    rig.release()
    try rig.run { rig.phone.lines.all.contains("value nil att error 1") }
    let before = rig.phone.lines.all.count
    rig.phone.peripherals.first?.openL2CAPChannel(rig.psm)
    try rig.run { rig.phone.lines.all.count > before }
    #expect(rig.phone.lines.all.last == "channel nil link error 13")
    #expect(rig.phone.peripherals.first?.state == .connected)
    #expect(rig.recorder.requests.count == 1)
  }
}

/// A phone that waits for the answer to a read, and a device program that holds the request and may let go of its manager.
private final class HeldRequestRig {
  let clock = VirtualClock(.lockStep)
  let air: VirtualAir
  let phone = CentralRecorder()
  let recorder = PeripheralRecorder()
  let central: CBCentralManager
  private var manager: CBPeripheralManager?
  let psm: CBL2CAPPSM = 0x80

  init() throws {
    air = VirtualAir(clock: clock)
    let device = air.makeRadio(name: "device")
    central = CBCentralManager(
      delegate: phone, queue: DispatchQueue(label: "phone"),
      options: [CBManagerOptionRadioKey: air.makeRadio(name: "phone")])
    let manager = CBPeripheralManager(
      delegate: recorder, queue: DispatchQueue(label: "device"), options: [CBManagerOptionRadioKey: device])
    self.manager = manager
    try run { manager.state == .poweredOn && central.state == .poweredOn }
    manager.add(CBMutableService("1234", [CBMutableCharacteristic("AA01", .read)]))
    manager.publishL2CAPChannel(withEncryption: false)
    manager.startAdvertising(nil)
    try run { recorder.lines.all.contains("published \(psm)") && manager.isAdvertising }
    central.scanForPeripherals(withServices: nil)
    try run { !phone.peripherals.isEmpty }
    central.stopScan()
    let peripheral = try #require(phone.peripherals.first)
    peripheral.delegate = phone
    central.connect(peripheral)
    try run { peripheral.state == .connected }
    peripheral.discoverServices(nil)
    try run { peripheral.services != nil }
    let service = try #require(peripheral.services?.first)
    peripheral.discoverCharacteristics(nil, for: service)
    try run { service.characteristics != nil }
    peripheral.readValue(for: try #require(service.characteristics?.first))
    try run { !recorder.requests.isEmpty }
  }

  func release() { manager = nil }

  func run(until condition: () -> Bool) throws {
    try #require(try clock.run(until: condition, within: .seconds(20)))
  }
}
