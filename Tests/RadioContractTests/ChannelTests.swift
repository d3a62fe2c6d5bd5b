import BlockingTests
import Foundation
import Radio
import Testing

/// L2CAP credit-based channels as streams.
@Suite("Contract: channels", .blocking, .timeLimit(.minutes(30))) struct ChannelTests {
  private struct Opened {
    let world: any RadioWorld
    let phone: Phone
    let device: Device
    let peer: PeerID
    let psm: PSM
    let here: any RadioChannel
    let there: any RadioChannel
    let hereLog: ChannelLog
    let thereLog: ChannelLog
  }

  private func opened(_ kind: RadioUnderTest) throws -> Opened {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    let psm = try device.publishChannel()
    try phone.connect(peer)
    let here = try phone.open(psm, of: peer)
    let there = try device.acceptChannel()
    let (hereLog, thereLog) = (ChannelLog(world), ChannelLog(world))
    here.setSink(hereLog.sink)
    there.setSink(thereLog.sink)
    return Opened(
      world: world, phone: phone, device: device, peer: peer, psm: psm, here: here, there: there,
      hereLog: hereLog, thereLog: thereLog)
  }

  private func bytes(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 17 &+ $0 >> 8) })
  }

  /// Moves bytes from one end to the other, reading `readSize` at a time.
  private func transfer(
    _ data: Data, from sender: any RadioChannel, to receiver: any RadioChannel, _ readSize: Int,
    _ world: any RadioWorld
  ) -> Data {
    var written = 0
    var arrived = Data()
    while arrived.count < data.count {
      if written < data.count { written += sender.write(data.dropFirst(written)) }
      let before = arrived.count
      while true {
        let part = receiver.read(upTo: readSize)
        arrived += part
        if part.count < readSize { break }
      }
      guard arrived.count == before else { continue }
      let canGoOn = world.wait(within: Phone.patience) {
        receiver.hasBytes || (written < data.count && sender.hasSpace)
      }
      if !canGoOn { return arrived }
    }
    return arrived
  }

  @Test(arguments: RadioUnderTest.allCases, [1, 999, 5_000])
  func bytesArriveWholeBothWays(_ kind: RadioUnderTest, _ readSize: Int) throws {
    let link = try opened(kind)
    #expect(link.here.psm == link.psm && link.there.psm == link.psm)
    #expect(link.here.peer == link.peer)
    let data = bytes(20_000)
    #expect(transfer(data, from: link.here, to: link.there, readSize, link.world) == data)
    #expect(transfer(data, from: link.there, to: link.here, readSize, link.world) == data)
  }

  /// Whoever does not read holds the writer up; the writer is told once when there is room.
  @Test(arguments: RadioUnderTest.allCases)
  func buffersAreBounded(_ kind: RadioUnderTest) throws {
    let link = try opened(kind)
    let data = bytes(300_000)
    var (written, signals, isHeldUp) = (0, 0, false)
    while written < data.count, !isHeldUp {
      // Counted before each write: room that comes back late, after this has given up, is told of as well.
      signals = link.hereLog.count(of: .writable)
      let taken = link.here.write(data.dropFirst(written).prefix(50_000))
      written += taken
      if taken == 0 { isHeldUp = !link.world.wait(within: .milliseconds(200)) { link.here.hasSpace } }
    }
    #expect(isHeldUp)
    #expect(written < 250_000)
    #expect(transferRest(link, data, &written) == data)
    #expect(link.world.wait(within: Phone.patience) { link.hereLog.count(of: .writable) > signals })
  }

  private func transferRest(_ link: Opened, _ data: Data, _ written: inout Int) -> Data {
    var arrived = Data()
    while arrived.count < data.count {
      arrived += link.there.read(upTo: 10_000)
      if written < data.count { written += link.here.write(data.dropFirst(written)) }
      guard arrived.count < data.count else { break }
      // Room may have come back after the write found none, with nothing more on its way that could tell.
      let rest = data.count - written
      let canGoOn = link.world.wait(within: Phone.patience) {
        link.there.hasBytes || (rest > 0 && link.here.hasSpace)
      }
      if !canGoOn { break }
    }
    return arrived
  }

  @Test(arguments: RadioUnderTest.allCases)
  func readableIsToldWhereThereWasNothing(_ kind: RadioUnderTest) throws {
    let link = try opened(kind)
    #expect(!link.there.hasBytes)
    #expect(link.there.read(upTo: 10).isEmpty)
    #expect(link.here.write(bytes(10)) == 10)
    _ = link.world.wait(within: Phone.patience) { link.thereLog.count(of: .readable) == 1 }
    #expect(link.thereLog.log == [.readable])
    #expect(link.there.hasBytes)
    // A sink that comes later is told what it has missed.
    let late = ChannelLog(link.world)
    link.there.setSink(late.sink)
    #expect(late.log == [.readable])
    #expect(link.there.read(upTo: 100) == bytes(10))
  }

  @Test(arguments: RadioUnderTest.allCases)
  func closingSendsWhatWasWritten(_ kind: RadioUnderTest) throws {
    let link = try opened(kind)
    let data = bytes(30_000)
    #expect(link.here.write(data) == data.count)
    link.here.close()
    link.here.close()
    #expect(link.here.write(Data([1])) == 0)
    _ = link.world.wait(within: Phone.patience) { link.hereLog.end != nil && link.thereLog.end != nil }
    #expect(link.hereLog.end == .some(nil))
    #expect(link.thereLog.end == .some(nil))
    #expect(link.there.read(upTo: 100_000) == data)
    #expect(link.hereLog.log.filter { if case .closed = $0 { true } else { false } }.count == 1)
    // The link goes on, and so does the PSM.
    _ = try link.phone.open(link.psm, of: link.peer)
  }

  /// The receiver closes while the sender has much more to say.
  @Test(arguments: RadioUnderTest.allCases)
  func closingAtHalfIsAnEndForBoth(_ kind: RadioUnderTest) throws {
    let link = try opened(kind)
    let data = bytes(200_000)
    var (written, arrived) = (0, Data())
    while arrived.count < 100_000 {
      written += link.here.write(data.dropFirst(written))
      arrived += link.there.read(upTo: 10_000)
      guard link.world.wait(within: Phone.patience, until: { link.there.hasBytes || link.here.hasSpace })
      else { break }
    }
    link.there.close()
    _ = link.world.wait(within: Phone.patience) { link.hereLog.end != nil && link.thereLog.end != nil }
    #expect(link.hereLog.end == .some(nil))
    #expect(link.here.write(Data([1])) == 0)
    #expect(arrived == data.prefix(arrived.count))
  }

  @Test(arguments: RadioUnderTest.allCases)
  func releasingClosesTheChannel(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    let psm = try device.publishChannel()
    try phone.connect(peer)
    let log = ChannelLog(world)
    // The events hold channels too, so the one that is let go of belongs to a client without memory.
    let radio = phone.radio.makeCentral { _ in }
    radio.connect(peer)
    radio.openChannel(psm: psm, of: peer, id: RequestID(1))
    let there = try device.acceptChannel()
    there.setSink(log.sink)
    _ = world.wait(within: Phone.patience) { log.end != nil }
    #expect(log.end == .some(nil))
    withExtendedLifetime(radio) {}
  }

  @Test(arguments: RadioUnderTest.allCases, [0, 0x100, 0x81] as [PSM])
  func unknownPSMsAreRefused(_ kind: RadioUnderTest, _ psm: PSM) throws {
    let link = try opened(kind)
    try link.phone.central.openChannel(psm: psm, of: link.peer, id: RequestID(77_777))
    guard case .failure(.radio) = try link.phone.answer(RequestID(77_777)) else { throw Unexpected() }
    // The other channel does not mind.
    #expect(transfer(bytes(100), from: link.here, to: link.there, 50, link.world) == bytes(100))
  }

  @Test(arguments: RadioUnderTest.allCases)
  func unpublishingClosesAndRefuses(_ kind: RadioUnderTest) throws {
    let link = try opened(kind)
    try link.device.peripheral.unpublishChannel(link.psm)
    try link.device.expect("unpublished") { event in
      if case .channelUnpublished(link.psm, .success) = event { true } else { nil }
    }
    _ = link.world.wait(within: Phone.patience) { link.hereLog.end != nil }
    #expect(link.hereLog.end == .some(nil))
    try link.phone.central.openChannel(psm: link.psm, of: link.peer, id: RequestID(88_888))
    guard case .failure(.radio(let error)) = try link.phone.answer(RequestID(88_888)) else {
      throw Unexpected()
    }
    #expect(error.code == .psmNotSupported)
  }

  /// Several streams and commands at once share the link.
  @Test(arguments: RadioUnderTest.allCases)
  func severalChannelsAndCommandsAtOnce(_ kind: RadioUnderTest) throws {
    let link = try opened(kind)
    let start = link.device.log.count
    let second = try link.phone.open(link.psm, of: link.peer)
    let secondThere = try link.device.acceptChannel(after: start)
    let log = ChannelLog(link.world)
    secondThere.setSink(log.sink)
    let handle = try link.phone.discover(Device.service, Device.values, of: link.peer).handle
    let data = bytes(20_000)
    #expect(link.here.write(data) == data.count)
    #expect(second.write(data) == data.count)
    _ = try link.phone.write(Data([5]), to: handle, of: link.peer).get()
    #expect(link.device.stored == Data([5]))
    #expect(transfer(Data(), from: link.here, to: link.there, 1, link.world).isEmpty)
    var (first, other) = (Data(), Data())
    _ = link.world.wait(within: Phone.patience) {
      first += link.there.read(upTo: 100_000)
      other += secondThere.read(upTo: 100_000)
      return first.count >= data.count && other.count >= data.count
    }
    #expect(first == data)
    #expect(other == data)
  }
}
