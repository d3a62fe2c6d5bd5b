import BlockingTests
import Dispatch
import Foundation
import Radio
import Readiness
import Testing

@testable import BlueZRadio

/// Channels on sockets that behave as the kernel's.
@Suite("L2CAP: channels on sockets", .blocking, .timeLimit(.minutes(30))) struct L2CAPChannelTests {
  private static let capacity = 4_096

  private struct Rig: Sendable {
    let queue: DispatchQueue
    let channel: L2CAPChannel
    let far: FarEnd
    let events = ChannelEvents()
    let clock = HandClock()

    init(_ pair: PacketPair, mtu: Int = 512) throws {
      far = pair.far
      let monitor = try #require(ReadinessMonitor(queue: DispatchQueue(label: "test")))
      queue = monitor.queue
      let core = L2CAPChannelCore(
        pair.near, SDUStream.Limits(sendMTU: mtu, receiveMTU: 512, capacity: L2CAPChannelTests.capacity),
        monitor: monitor, clock: clock)
      channel = L2CAPChannel(psm: 0x80, peer: PeerID(UUID()), core: core)
      channel.setSink(events.sink)
      core.start()
    }

    /// Writes all of it, as room comes.
    func write(_ bytes: [UInt8]) -> Int {
      var written = 0
      while written < bytes.count {
        written += channel.write(Data(bytes[written...]))
        guard written < bytes.count, events.wait(until: { channel.hasSpace || events.end != nil }),
          events.end == nil
        else { break }
      }
      return written
    }

    /// Reads so much, `readSize` at a time, or what there is until the end.
    func read(_ count: Int, _ readSize: Int = 1_000) -> [UInt8] {
      var bytes: [UInt8] = []
      while bytes.count < count {
        // Bytes and the end may come at once.
        let hasEnded = events.end != nil
        let part = channel.read(upTo: min(readSize, count - bytes.count))
        bytes += part
        guard part.isEmpty else { continue }
        guard !hasEnded, events.wait(until: { channel.hasBytes || events.end != nil }) else { break }
      }
      return bytes
    }
  }

  private func octets(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  @Test(
    "What is written comes as SDUs no longer than the peer takes", arguments: [23, 512], [1, 300, 20_000])
  func writes(_ mtu: Int, _ count: Int) throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096), mtu: mtu)
    let bytes = octets(count)
    DispatchQueue.global().async { _ = rig.write(bytes) }
    let packets = try rig.far.receive(octets: count)
    #expect(packets.flatMap { $0 } == bytes)
    #expect(packets.allSatisfy { $0.count <= mtu })
  }

  @Test("What comes as SDUs is read as bytes", arguments: [1, 7, 512, 5_000])
  func reads(_ readSize: Int) throws {
    let rig = try Rig(PacketPair())
    let bytes = octets(3_000)
    var sent = 0
    for length in [1, 512, 87, 400, 512, 512, 512, 464] {
      try rig.far.send(Array(bytes[sent..<sent + length]))
      sent += length
    }
    #expect(rig.read(3_000, readSize) == bytes)
    #expect(!rig.channel.hasBytes && rig.channel.read(upTo: 10).isEmpty)
  }

  @Test("Both directions at once, in pieces of any size", arguments: [1 as UInt64, 2, 3])
  func both(_ seed: UInt64) throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096))
    let bytes = octets(200_000)
    let group = DispatchGroup()
    let far = rig.far
    DispatchQueue.global().async(group: group) {
      var random = SplitMix(seed)
      var written = 0
      while written < bytes.count {
        let end = min(bytes.count, written + Int.random(in: 1...3_000, using: &random))
        guard rig.write(Array(bytes[written..<end])) == end - written else { return }
        written = end
      }
    }
    DispatchQueue.global().async(group: group) {
      var random = SplitMix(seed + 100)
      var sent = 0
      while sent < bytes.count {
        let end = min(bytes.count, sent + Int.random(in: 1...512, using: &random))
        guard (try? far.send(Array(bytes[sent..<end]))) != nil else { return }
        sent = end
      }
    }
    let arrived = DispatchQueue(label: "far").sync { try? far.receive(octets: bytes.count).flatMap { $0 } }
    var read = Data()
    while read.count < bytes.count {
      let part = rig.channel.read(upTo: 700)
      read += part
      if part.isEmpty, !rig.events.wait(until: { rig.channel.hasBytes || rig.events.end != nil }) { break }
    }
    #expect(group.wait(timeout: .now() + 240) == .success)
    #expect(arrived == bytes)
    #expect(Array(read) == bytes)
  }

  @Test("A peer that does not read stops the writer, who is told when there is room, and loses nothing")
  func stalledPeer() throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096))
    let bytes = octets(400_000)
    var (written, told) = (0, 0)
    // The socket takes some in its own time; what it does not take fills the buffer.
    while written < bytes.count {
      // Counted before each write: room that comes back late, after this has given up, is told of as well.
      told = rig.events.all.count { $0 == .writable }
      let taken = rig.channel.write(Data(bytes[written...]))
      written += taken
      if taken == 0, !rig.events.waitBriefly() { break }
    }
    #expect(written < bytes.count)
    let packets = try rig.far.receive(octets: written)
    #expect(packets.flatMap { $0 } == Array(bytes[..<written]))
    // Everything that had gathered came in SDUs of full length.
    #expect(packets.dropLast().suffix(5).allSatisfy { $0.count == 512 })
    #expect(rig.events.wait { rig.events.all.count { $0 == .writable } > told })
    #expect(rig.channel.hasSpace)
  }

  @Test("Who does not read holds the peer back, and loses nothing")
  func stalledReader() throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096))
    let packet = octets(500)
    let sent = rig.far.send(packet, atMost: 1_000)
    #expect(sent < 1_000)
    let bytes = rig.read(sent * packet.count)
    #expect(bytes == Array((0..<sent).map { _ in packet }.joined()))
    // The peer can go on.
    try rig.far.send([7])
    #expect(rig.read(1) == [7])
  }

  @Test("Empty SDUs are no end", arguments: [1, 7, 8, 100])
  func emptySDUs(_ count: Int) throws {
    let rig = try Rig(PacketPair())
    for _ in 0..<count { try rig.far.send([]) }
    try rig.far.send([1, 2, 3])
    #expect(rig.read(3) == [1, 2, 3])
    #expect(rig.events.end == nil)
  }

  @Test("Closing sends what was written, and ends once the peer has let go", arguments: [0, 1, 4_096])
  func closing(_ count: Int) throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096))
    let bytes = octets(count)
    #expect(rig.channel.write(Data(bytes)) == count)
    rig.channel.close()
    rig.channel.close()
    #expect(rig.channel.write(Data([1])) == 0)
    #expect(try rig.far.receive(octets: count + 1).flatMap { $0 } == bytes)
    #expect(rig.events.end == nil)
    rig.far.close()
    #expect(rig.events.waitForEnd())
    #expect(rig.events.end == .some(nil))
    #expect(rig.events.all.count { if case .closed = $0 { true } else { false } } == 1)
    #expect(rig.clock.pendingCount == 0)
  }

  @Test("Releasing a channel sends what was written and closes it")
  func releasing() throws {
    let pair = try PacketPair(sendBuffer: 4_096)
    do {
      let rig = try Rig(pair)
      #expect(rig.channel.write(Data(octets(4_000))) == 4_000)
    }
    #expect(try pair.far.receive(octets: 4_001).flatMap { $0 } == octets(4_000))
  }

  @Test("Closing does not wait for ever for a peer that takes nothing")
  func closingStalled() throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096))
    while rig.channel.write(Data(octets(4_096))) > 0 || rig.events.waitBriefly() {}
    rig.channel.close()
    // As long as it takes something it has time.
    for _ in 0..<10 where rig.events.end == nil {
      #expect(rig.clock.waitForTimer(within: .seconds(30)))
      rig.clock.advance(by: .seconds(30))
      rig.queue.sync {}
    }
    guard case .some(.some(let error)) = rig.events.end else { throw Unexpected() }
    #expect(error.code == .timeout)
    // The peer gets what had been sent, and the end.
    while try rig.far.receive() != nil {}
  }

  @Test("A peer that does not answer the disconnection gets all the same, and the channel ends in order")
  func closingUnanswered() throws {
    let rig = try Rig(PacketPair())
    #expect(rig.channel.write(Data(octets(100))) == 100)
    rig.channel.close()
    #expect(try rig.far.receive(octets: 101).flatMap { $0 } == octets(100))
    #expect(rig.clock.waitForTimer(within: .seconds(5)))
    rig.clock.advance(by: .seconds(5))
    #expect(rig.events.waitForEnd())
    #expect(rig.events.end == .some(nil))
  }

  @Test("What a peer sent before it closed can be read", arguments: [0, 1, 3_000, 60_000])
  func peerCloses(_ count: Int) throws {
    let rig = try Rig(PacketPair())
    let bytes = octets(count)
    for start in stride(from: 0, to: count, by: 512) {
      try rig.far.send(Array(bytes[start..<min(count, start + 512)]))
    }
    rig.far.close()
    // What the buffer does not hold has stayed in the socket.
    #expect(rig.read(count) == bytes)
    #expect(rig.events.waitForEnd())
    #expect(rig.events.end == .some(nil))
    #expect(rig.channel.write(Data([1])) == 0)
    #expect(!rig.channel.hasSpace)
  }

  @Test("Who does not read hears of the end all the same, and can read everything then")
  func peerClosesUnread() throws {
    let rig = try Rig(PacketPair())
    let packet = octets(512)
    // More than the buffer takes.
    for _ in 0..<40 { try rig.far.send(packet) }
    #expect(rig.events.wait { rig.channel.hasBytes })
    _ = rig.events.waitBriefly()
    rig.far.close()
    #expect(rig.events.waitForEnd())
    #expect(rig.events.end == .some(nil))
    #expect(rig.channel.read(upTo: 100_000) == Data((0..<40).flatMap { _ in packet }))
    #expect(!rig.channel.hasBytes)
  }

  @Test("A writer whose peer closes in the middle is told so")
  func peerClosesWhileWriting() throws {
    let rig = try Rig(PacketPair(sendBuffer: 4_096))
    let bytes = octets(100_000)
    DispatchQueue.global().async { _ = rig.write(bytes) }
    _ = try rig.far.receive(octets: 10_000)
    rig.far.close()
    #expect(rig.events.waitForEnd())
    #expect(rig.events.end == .some(nil))
  }

  @Test("A sink that comes late is told what it has missed, and an old one nothing more")
  func lateSink() throws {
    let rig = try Rig(PacketPair())
    try rig.far.send([1])
    #expect(rig.events.wait { rig.events.all == [.readable] })
    let late = ChannelEvents()
    rig.channel.setSink(late.sink)
    #expect(late.all == [.readable])
    rig.far.close()
    #expect(late.waitForEnd())
    #expect(rig.events.all == [.readable])
    let later = ChannelEvents()
    rig.channel.setSink(later.sink)
    #expect(later.all == [.readable, .closed(nil)])
  }

  @Test("When the link has gone, the channel ends for that reason, and what has arrived can be read")
  func linkEnds() throws {
    let rig = try Rig(PacketPair())
    let bytes = octets(20_000)
    for start in stride(from: 0, to: bytes.count, by: 500) {
      try rig.far.send(Array(bytes[start..<start + 500]))
    }
    let reason = RadioError(.supervisionTimeout, "gone")
    rig.channel.linkEnded(reason)
    rig.channel.linkEnded(nil)
    #expect(rig.events.end == .some(reason))
    #expect(rig.read(bytes.count, 777) == bytes)
    #expect(!rig.channel.hasBytes)
    #expect(rig.channel.write(Data([1])) == 0)
    rig.channel.close()
    #expect(rig.events.all.count { if case .closed = $0 { true } else { false } } == 1)
  }
}

private struct Unexpected: Error {}

/// Numbers that are the same in every run.
struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
