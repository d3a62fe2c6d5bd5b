import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Channels of a link") struct ChannelTests {
  private static let psm: PSM = 0x80

  /// A pair with one open channel.
  private struct Opened {
    var pair: HostPair
    var central: UInt16
    var peripheral: UInt16
  }

  private func opened() throws -> Opened {
    var pair = HostPair(table: try SampleTable.make())
    pair.peripheral.acceptedPSMs = [Self.psm: false]
    pair.run()
    pair.central.openChannel(Self.psm, ClientRequest(client: 1, id: RequestID(1)), now: pair.now)
    pair.run()
    return Opened(
      pair: pair,
      central: try #require(
        pair.centralLog.compactMap { if case .channelConnected(_, _, let cid) = $0 { cid } else { nil } }
          .first),
      peripheral: try #require(
        pair.peripheralLog.compactMap { if case .channelAccepted(_, let cid) = $0 { cid } else { nil } }.first
      ))
  }

  private func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) }) }

  private func closed(_ log: [LinkHost.Output]) -> [RadioError?] {
    log.compactMap { if case .channelClosed(_, let reason, _) = $0 { .some(reason) } else { nil } }
  }

  @Test func bytesGoBothWaysWhileTheReaderReads() throws {
    var opened = try opened()
    let sent = bytes(300_000)
    var (written, arrived) = (0, Data())
    var (writtenBack, arrivedBack) = (0, Data())
    while arrived.count < sent.count || arrivedBack.count < sent.count {
      written += opened.pair.central.writeChannel(opened.central, sent.dropFirst(written), now: .zero)
      writtenBack += opened.pair.peripheral.writeChannel(
        opened.peripheral, sent.dropFirst(writtenBack), now: .zero)
      opened.pair.run()
      let before = arrived.count + arrivedBack.count
      arrived += opened.pair.peripheral.readChannel(opened.peripheral, upTo: 10_000)
      arrivedBack += opened.pair.central.readChannel(opened.central, upTo: 7_777)
      try #require(arrived.count + arrivedBack.count > before, "the stream stands still")
    }
    #expect(arrived == sent)
    #expect(arrivedBack == sent)
  }

  /// A reader that does not read holds the sender up; nothing is lost and nothing grows.
  @Test func aSlowReaderHoldsTheSenderUp() throws {
    var opened = try opened()
    let sent = bytes(300_000)
    var written = 0
    for _ in 0..<50 {
      written += opened.pair.central.writeChannel(opened.central, sent.dropFirst(written), now: .zero)
      opened.pair.run()
    }
    #expect(written <= 2 * CreditChannel.bufferCapacity)
    var arrived = Data()
    while arrived.count < sent.count {
      let bytes = opened.pair.peripheral.readChannel(opened.peripheral, upTo: 1000)
      try #require(!bytes.isEmpty)
      arrived += bytes
      written += opened.pair.central.writeChannel(opened.central, sent.dropFirst(written), now: .zero)
      opened.pair.run()
    }
    #expect(arrived == sent)
  }

  @Test func closingSendsWhatWasWritten() throws {
    var opened = try opened()
    #expect(opened.pair.central.writeChannel(opened.central, bytes(60_000), now: .zero) == 60_000)
    opened.pair.central.closeChannel(opened.central, now: .zero)
    opened.pair.central.closeChannel(opened.central, now: .zero)
    #expect(opened.pair.central.writeChannel(opened.central, bytes(1), now: .zero) == 0)
    opened.pair.run()
    #expect(closed(opened.pair.centralLog) == [nil])
    #expect(closed(opened.pair.peripheralLog) == [nil])
    var unread = try #require(
      opened.pair.peripheralLog.compactMap { output in
        if case .channelClosed(_, _, let unread) = output { unread } else { nil }
      }.first)
    #expect(unread.take(upTo: 100_000) == bytes(60_000))
  }

  /// Both sides have full buffers and close without reading: each drops what comes, so both get to their end.
  @Test func closingBothSidesAtOnceEnds() throws {
    var opened = try opened()
    for _ in 0..<10 {
      _ = opened.pair.central.writeChannel(opened.central, bytes(65_536), now: .zero)
      _ = opened.pair.peripheral.writeChannel(opened.peripheral, bytes(65_536), now: .zero)
      opened.pair.run()
    }
    opened.pair.central.closeChannel(opened.central, now: .zero)
    opened.pair.peripheral.closeChannel(opened.peripheral, now: .zero)
    opened.pair.run()
    #expect(closed(opened.pair.centralLog) == [nil])
    #expect(closed(opened.pair.peripheralLog) == [nil])
    #expect(opened.pair.central.channels.cids.isEmpty)
    #expect(opened.pair.peripheral.channels.cids.isEmpty)
  }

  @Test func theEndOfTheLinkClosesChannelsWithItsReason() throws {
    var opened = try opened()
    _ = opened.pair.central.writeChannel(opened.central, bytes(60_000), now: .zero)
    opened.pair.central.end(RadioError(.supervisionTimeout))
    opened.pair.collect()
    #expect(closed(opened.pair.centralLog).map { $0?.code } == [.supervisionTimeout])
  }

  @Test(
    arguments: [
      (0x80, RadioError.Code.insufficientSecurity), (0x81, .psmNotSupported), (0, .invalidParameters),
      (0x100, .invalidParameters),
    ] as [(PSM, RadioError.Code)])
  func refusalsSayWhy(_ psm: PSM, _ code: RadioError.Code) throws {
    var pair = HostPair()
    pair.peripheral.acceptedPSMs = [0x80: true]
    let id = ClientRequest(client: 1, id: RequestID(1))
    pair.central.openChannel(psm, id, now: .zero)
    pair.run()
    guard case .failure(.radio(let error)) = pair.answer(to: id) else { throw Unexpected() }
    #expect(error.code == code)
    #expect(pair.central.channels.cids.isEmpty)
  }

  @Test func channelsAreBounded() throws {
    var pair = HostPair()
    pair.peripheral.acceptedPSMs = [0x80: false]
    for number in 1...40 as ClosedRange<UInt64> {
      pair.central.openChannel(0x80, ClientRequest(client: 1, id: RequestID(number)), now: .zero)
      pair.run()
    }
    #expect(pair.central.channels.cids.count == ChannelTable.limit)
    guard case .failure(.radio(let error)) = pair.answer(to: ClientRequest(client: 1, id: RequestID(40)))
    else {
      throw Unexpected()
    }
    #expect(error.code == .noResources)
  }

  @Test func aSilentPeerEndsTheRequestAfter30Seconds() throws {
    var pair = HostPair()
    pair.run()
    pair.advance(by: GATTClient.quietTime)
    let id = ClientRequest(client: 1, id: RequestID(1))
    pair.central.openChannel(0x80, id, now: pair.now)
    pair.collect()
    pair.loseFrames()
    #expect(pair.central.nextDeadline() == pair.now + .seconds(30))
    pair.advance(by: .seconds(30))
    guard case .failure(.radio(let error)) = pair.answer(to: id) else { throw Unexpected() }
    #expect(error.code == .timeout)
  }

  // MARK: A peer by hand

  /// The central has a channel to a peer that the test plays with frames.
  private func openedByHand(_ limits: SignallingPDU.ChannelLimits) throws -> (HostPair, UInt16) {
    var pair = HostPair(queueDepth: 1000)
    pair.run()
    pair.central.openChannel(0x80, ClientRequest(client: 1, id: RequestID(1)), now: .zero)
    pair.collect()
    let request = try SignallingPDU(frame: try #require(pair.toPeripheral.last))
    guard case .connectionRequest(_, let cid, _) = request.command else { throw Unexpected() }
    pair.loseFrames()
    say(.connectionResponse(destination: 0x50, limits, .success), request.identifier, to: &pair)
    pair.collect()
    return (pair, cid)
  }

  private func say(_ command: SignallingPDU.Command, _ identifier: UInt8 = 77, to pair: inout HostPair) {
    pair.central.received(SignallingPDU(identifier: identifier, command: command).frame, now: pair.now)
  }

  /// K-frames on their way to the peer; they are taken off the port.
  private func takeFrames(_ pair: inout HostPair) -> [[UInt8]] {
    pair.collect()
    let frames = pair.toPeripheral.filter { L2CAPFrame.channel(of: $0) == 0x50 }
    let count = pair.toPeripheral.count
    pair.loseFrames()
    pair.central.completed(count, now: pair.now)
    return frames
  }

  @Test(arguments: [23, 1000] as [UInt16])
  func zeroCreditsWaitAndSmallUnitsAreKept(_ mtu: UInt16) throws {
    var (pair, cid) = try openedByHand(SignallingPDU.ChannelLimits(mtu: mtu, mps: 100, credits: 0))
    #expect(pair.central.writeChannel(cid, bytes(5_000), now: .zero) == 5_000)
    #expect(takeFrames(&pair).isEmpty)
    var arrived = Data()
    var rest = 0
    while arrived.count < 5_000 {
      say(.flowControlCredit(cid: 0x50, credits: 1), to: &pair)
      let frames = takeFrames(&pair)
      try #require(frames.count == 1)
      var reader = ByteReader(frames[0], from: 4)
      if rest == 0 {
        let length = reader.readUInt16()
        rest = Int(try #require(length))
        #expect(rest <= Int(mtu))
      }
      #expect(frames[0].count - 4 <= 100)
      let part = reader.readRest()
      rest -= part.count
      arrived.append(contentsOf: part)
    }
    #expect(arrived == bytes(5_000))
    #expect(closed(pair.centralLog).isEmpty)
    // The channel goes on.
    say(.flowControlCredit(cid: 0x50, credits: 65535), to: &pair)
    #expect(pair.central.writeChannel(cid, bytes(10), now: .zero) == 10)
    #expect(takeFrames(&pair).count > 0)
  }

  /// At most 65535 together, however they come; those that were used count no more (Core Vol 3 Part A 10.1).
  @Test(arguments: [[65535], [65534, 1], [40_000, 20_000, 5535], [1, 1, 65533]] as [[UInt16]])
  func tooManyCreditsCloseTheChannel(_ grants: [UInt16]) throws {
    var (pair, cid) = try openedByHand(SignallingPDU.ChannelLimits(mtu: 100, mps: 100, credits: 1))
    for grant in grants.dropLast() { say(.flowControlCredit(cid: 0x50, credits: grant), to: &pair) }
    pair.collect()
    #expect(closed(pair.centralLog).isEmpty)
    say(.flowControlCredit(cid: 0x50, credits: try #require(grants.last)), to: &pair)
    pair.collect()
    #expect(closed(pair.centralLog).map { $0?.code } == [.other])
    let last = try SignallingPDU(frame: try #require(pair.toPeripheral.last))
    #expect(last.command == .disconnectionRequest(destination: 0x50, source: cid))
    // The peer's agreement is not a second end.
    say(.disconnectionResponse(destination: 0x50, source: cid), last.identifier, to: &pair)
    pair.collect()
    #expect(closed(pair.centralLog).count == 1)
    #expect(pair.central.channels.cids.isEmpty)
  }

  @Test(
    arguments: [
      [3, 0, 1, 2, 3, 4], [1],
    ] as [[UInt8]])
  func framesAgainstTheRulesCloseTheChannel(_ payload: [UInt8]) throws {
    var (pair, cid) = try openedByHand(SignallingPDU.ChannelLimits(mtu: 100, mps: 100, credits: 1))
    let frame = L2CAPFrame.make(cid: cid, capacity: payload.count) { $0 += payload }
    pair.central.received(frame, now: .zero)
    pair.collect()
    #expect(closed(pair.centralLog).map { $0?.code } == [.other])
  }

  @Test func aPeerThatDoesNotKnowChannelsIsAFailure() throws {
    var pair = HostPair()
    pair.run()
    let id = ClientRequest(client: 1, id: RequestID(1))
    pair.central.openChannel(0x80, id, now: .zero)
    pair.collect()
    let request = try SignallingPDU(frame: try #require(pair.toPeripheral.last))
    say(.reject(.notUnderstood), request.identifier, to: &pair)
    pair.collect()
    guard case .failure(.radio(let error)) = pair.answer(to: id) else { throw Unexpected() }
    #expect(error.code == .notSupported)
  }

  /// Commands and a stream share the queue: neither starves the other.
  @Test func commandsAndStreamsShareTheQueue() throws {
    var opened = try opened()
    let handle = try opened.pair.characteristic(SampleTable.values).handle
    let plenty = Data(count: 65_536)
    var (commands, streamed) = (0, 0)
    for _ in 0..<400 {
      _ = opened.pair.central.writeChannel(opened.central, plenty, now: .zero)
      while opened.pair.central.writeWithoutResponse(Data(count: 182), to: handle) == .accepted {}
      opened.pair.collect()
      for frame in opened.pair.toPeripheral {
        if L2CAPFrame.channel(of: frame) == ChannelIdentifier.attributeProtocol {
          commands += 1
        } else {
          streamed += 1
        }
      }
      opened.pair.step()
      _ = opened.pair.peripheral.readChannel(opened.peripheral, upTo: 100_000)
    }
    #expect(commands > 400)
    #expect(streamed > 400)
  }
}
