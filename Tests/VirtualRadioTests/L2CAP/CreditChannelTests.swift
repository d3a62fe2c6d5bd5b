import Foundation
import Testing

@testable import VirtualRadio

@Suite("Credit-based channel") struct CreditChannelTests {
  private typealias Limits = SignallingPDU.ChannelLimits

  private func channel(
    mps: Int = 247, peer: SignallingPDU.ChannelLimits
  ) -> CreditChannel {
    var channel = CreditChannel(psm: 0x80, localCID: 0x40, mps: mps)
    channel.open(remoteCID: 0x41, peer: peer)
    return channel
  }

  private func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }) }

  /// Takes all frames apart as a peer with these limits would.
  private func reassemble(_ channel: inout CreditChannel, _ peer: SignallingPDU.ChannelLimits) -> [Data] {
    var units: [Data] = []
    var rest = 0
    while let frame = channel.nextFrame() {
      var reader = ByteReader(frame, from: 4)
      #expect(L2CAPFrame.channel(of: frame) == 0x41)
      #expect(reader.remaining <= Int(peer.mps))
      if rest == 0 {
        rest = Int(reader.readUInt16() ?? 0)
        #expect(rest > 0 && rest <= Int(peer.mtu))
        units.append(Data())
      }
      let part = reader.readRest()
      #expect(part.count <= rest)
      rest -= part.count
      units[units.count - 1].append(contentsOf: part)
    }
    return units
  }

  @Test(arguments: [23, 24, 100, 1000, 65535] as [UInt16], [1, 20, 245, 246, 5000])
  func cutsWritesIntoUnitsThatThePeerTakes(_ mtu: UInt16, _ count: Int) {
    let peer = SignallingPDU.ChannelLimits(mtu: mtu, mps: 100, credits: 1000)
    var channel = channel(peer: peer)
    #expect(channel.write(bytes(count)) == count)
    let units = reassemble(&channel, peer)
    #expect(units.reduce(Data(), +) == bytes(count))
    #expect(channel.hasSentAll)
  }

  @Test func withoutCreditsItWaits() throws {
    var channel = channel(peer: Limits(mtu: 1000, mps: 247, credits: 0))
    #expect(channel.write(bytes(10_000)) == 10_000)
    #expect(channel.nextFrame() == nil)
    try channel.addCredits(1)
    #expect(channel.nextFrame() != nil)
    #expect(channel.nextFrame() == nil)
    try channel.addCredits(65535)
    while channel.nextFrame() != nil {}
    #expect(channel.hasSentAll)
  }

  @Test(arguments: [(0, 65535, true), (1, 65535, false), (65535, 1, false), (10, 65525, true)])
  func moreCreditsThanAllowedAreAViolation(_ first: Int, _ second: Int, _ isAllowed: Bool) throws {
    var channel = channel(peer: Limits(mtu: 1000, mps: 247, credits: 0))
    try channel.addCredits(first)
    if isAllowed {
      try channel.addCredits(second)
    } else {
      #expect(throws: CreditChannel.Violation.creditOverflow) { try channel.addCredits(second) }
    }
  }

  @Test func takesOnlyWhatFitsAndAnnouncesRoomOnce() {
    var channel = channel(peer: Limits(mtu: 65535, mps: 247, credits: 1000))
    #expect(channel.write(bytes(70_000)) == CreditChannel.bufferCapacity)
    #expect(!channel.hasSpace)
    #expect(channel.takeWritable() == false)
    while channel.nextFrame() != nil {}
    #expect(channel.takeWritable() == true)
    #expect(channel.takeWritable() == false)
    #expect(channel.hasSpace)
  }

  private func frame(_ payload: [UInt8]) -> [UInt8] {
    L2CAPFrame.make(cid: 0x40, capacity: payload.count) { $0 += payload }
  }

  @Test func violationsOfThePeerAreFound() throws {
    let peer = Limits(mtu: 1000, mps: 247, credits: 1)
    var noLength = channel(peer: peer)
    #expect(throws: CreditChannel.Violation.noLength) { try noLength.receive(frame([5])) }
    var exceeded = channel(peer: peer)
    #expect(throws: CreditChannel.Violation.lengthExceeded) { try exceeded.receive(frame([2, 0, 1, 2, 3])) }
    var later = channel(peer: peer)
    try later.receive(frame([4, 0, 1, 2, 3]))
    #expect(throws: CreditChannel.Violation.lengthExceeded) { try later.receive(frame([4, 5])) }
    var long = channel(mps: 23, peer: peer)
    #expect(throws: CreditChannel.Violation.frameTooLong) {
      try long.receive(frame([30, 0] + [UInt8](repeating: 1, count: 22)))
    }
  }

  /// The receiver's memory is bounded however the peer uses its credits, and the reader makes them come back.
  @Test(arguments: [23, 100, 247], [1, 7, 500])
  func creditsFollowTheReader(_ mps: Int, _ readSize: Int) throws {
    var channel = channel(mps: mps, peer: Limits(mtu: 65535, mps: 247, credits: 0))
    var credits = Int(channel.local.credits)
    var sent = 0
    var read = 0
    let full = [UInt8(truncatingIfNeeded: mps - 2), 0] + [UInt8](repeating: 7, count: mps - 2)
    while credits > 0 {
      try channel.receive(frame(full))
      sent += mps - 2
      credits += channel.takeGrant() - 1
      #expect(sent + credits * mps <= CreditChannel.bufferCapacity)
    }
    #expect(sent > CreditChannel.bufferCapacity - 2 * mps)
    #expect(throws: CreditChannel.Violation.noCredit) { try channel.receive(frame(full)) }
    while read < sent {
      let bytes = channel.read(upTo: readSize)
      #expect(!bytes.isEmpty)
      read += bytes.count
      credits += channel.takeGrant()
    }
    #expect(credits > 0)
    #expect(channel.receiveCredits == credits)
    #expect(credits <= CreditChannel.bufferCapacity / mps)
  }

  @Test func readableIsAnnouncedAfterAShortReadOnly() throws {
    var channel = channel(peer: Limits(mtu: 100, mps: 100, credits: 0))
    try channel.receive(frame([3, 0, 1, 2, 3]))
    #expect(channel.takeReadable() == true)
    try channel.receive(frame([3, 0, 4, 5, 6]))
    #expect(channel.takeReadable() == false)
    #expect(channel.read(upTo: 4) == Data([1, 2, 3, 4]))
    try channel.receive(frame([1, 0, 7]))
    #expect(channel.takeReadable() == false)
    #expect(channel.read(upTo: 10) == Data([5, 6, 7]))
    #expect(channel.takeReadable() == false)
    try channel.receive(frame([1, 0, 8]))
    #expect(channel.takeReadable() == true)
  }
}
