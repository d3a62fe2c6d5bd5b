import Foundation
import Radio
import Testing

@testable import BlueZRadio

/// Cutting and joining SDUs, and what is told when.
@Suite("L2CAP: SDUs and bytes") struct SDUStreamTests {
  private func stream(mtu: Int = 100, receiveMTU: Int = 64, capacity: Int = 1_000) -> SDUStream {
    SDUStream(SDUStream.Limits(sendMTU: mtu, receiveMTU: receiveMTU, capacity: capacity))
  }

  private func octets(_ count: Int, from start: Int = 0) -> [UInt8] {
    (start..<start + count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  /// Sends all that goes; the SDUs.
  private func sendAll(_ stream: inout SDUStream) -> [[UInt8]] {
    var sdus: [[UInt8]] = []
    while let length = stream.nextLength {
      sdus.append(Array(stream.nextSDU(length)))
      stream.sent(length)
    }
    return sdus
  }

  @Test("Bytes are cut into SDUs of full length", arguments: [1, 23, 99, 512], [1, 100, 512, 900])
  func cuts(_ mtu: Int, _ count: Int) {
    var stream = stream(mtu: mtu)
    let bytes = octets(count)
    #expect(stream.write(Data(bytes)) == count)
    let sdus = sendAll(&stream)
    #expect(sdus.flatMap { $0 } == bytes)
    #expect(sdus.dropLast().allSatisfy { $0.count == mtu })
    #expect(sdus.last.map { $0.count <= mtu } == true)
    #expect(stream.sentCount == count && stream.hasSentAll)
  }

  @Test("Bytes that are written while nothing goes share an SDU")
  func coalesces() {
    var stream = stream()
    #expect(stream.write(Data([1])) == 1)
    #expect(stream.nextLength == 1)
    #expect(stream.refused(now: .zero) == true)
    for octet in 2...60 as ClosedRange<UInt8> { #expect(stream.write(Data([octet])) == 1) }
    #expect(stream.nextLength == nil)
    stream.unblock(now: .zero)
    #expect(sendAll(&stream) == [Array(1...60)])
  }

  @Test("A full buffer takes a part, and room is told once, when there is enough of it")
  func tellsRoom() {
    var stream = stream()
    #expect(stream.write(Data(octets(600))) == 600)
    #expect(stream.takeEvents().isEmpty)
    #expect(stream.write(Data(octets(600))) == 400)
    #expect(!stream.hasSpace)
    stream.sent(100)
    #expect(stream.hasSpace)
    // A little room is not worth an event.
    #expect(stream.takeEvents().isEmpty)
    stream.sent(200)
    #expect(stream.takeEvents() == [.writable])
    #expect(stream.takeEvents().isEmpty)
    // A write that fills it to the last byte asks as well.
    #expect(stream.write(Data(octets(300))) == 300)
    #expect(!stream.hasSpace)
    stream.sent(900)
    #expect(stream.takeEvents() == [.writable])
  }

  @Test("SDUs are joined, whatever is read at a time", arguments: [1, 7, 63, 1_000])
  func joins(_ readSize: Int) {
    var stream = stream()
    var (sent, read) = (0, [UInt8]())
    for length in [1, 64, 0, 63, 17, 64, 2] {
      #expect(stream.canReceive)
      stream.received(octets(length, from: sent)[...])
      sent += length
      read += stream.read(upTo: readSize)
    }
    while stream.hasBytes { read += stream.read(upTo: readSize) }
    #expect(read == octets(sent))
  }

  @Test("An SDU is taken only where the longest has room, so that the peer gets no credits for more")
  func holdsBack() {
    var stream = stream(receiveMTU: 400)
    stream.received(octets(400)[...])
    #expect(stream.canReceive)
    stream.received(octets(300)[...])
    #expect(!stream.canReceive)
    #expect(stream.read(upTo: 99).count == 99)
    #expect(!stream.canReceive)
    #expect(stream.read(upTo: 1).count == 1)
    #expect(stream.canReceive)
  }

  @Test("A buffer that is smaller than the longest SDU grows to hold one")
  func holdsOne() {
    var stream = stream(receiveMTU: 5_000)
    #expect(stream.canReceive)
    stream.received(octets(5_000)[...])
    #expect(!stream.canReceive)
    #expect(Array(stream.read(upTo: 10_000)) == octets(5_000))
  }

  @Test("Arrival is told once, and again only after a read has found less than it asked for")
  func tellsArrival() {
    var stream = stream()
    stream.received(octets(10)[...])
    #expect(stream.takeEvents() == [.readable])
    stream.received(octets(10)[...])
    #expect(stream.takeEvents().isEmpty)
    #expect(stream.read(upTo: 20).count == 20)
    stream.received(octets(10)[...])
    #expect(stream.takeEvents().isEmpty)
    #expect(stream.read(upTo: 20).count == 10)
    stream.received(octets(10)[...])
    #expect(stream.takeEvents() == [.readable])
    // Empty SDUs bring nothing to read.
    #expect(stream.read(upTo: 20).count == 10)
    stream.received([])
    #expect(stream.takeEvents().isEmpty)
  }

  @Test("A sink that comes late is told what there is")
  func tellsAgain() {
    var stream = stream()
    stream.received(octets(10)[...])
    stream.finish(nil)
    #expect(stream.takeEvents() == [.readable, .closed(nil)])
    #expect(stream.takeEvents().isEmpty)
    #expect(stream.takeEvents(again: true) == [.readable, .closed(nil)])
    #expect(stream.read(upTo: 100).count == 10)
    #expect(stream.takeEvents().isEmpty)
    #expect(stream.takeEvents(again: true) == [.closed(nil)])
  }

  @Test("Closing sends what was written, takes nothing more, and forgets what has come")
  func closes() {
    var stream = stream()
    #expect(stream.write(Data(octets(250))) == 250)
    stream.received(octets(10)[...])
    stream.close()
    #expect(stream.phase == .draining)
    #expect(stream.write(Data([1])) == 0)
    #expect(!stream.hasSpace && !stream.hasBytes)
    #expect(sendAll(&stream).map(\.count) == [100, 100, 50])
    // The peer is not held up by what nobody reads.
    for _ in 0..<100 {
      #expect(stream.canReceive)
      stream.received(octets(64)[...])
    }
    #expect(!stream.hasBytes)
    #expect(stream.takeEvents().isEmpty)
    stream.disconnecting()
    #expect(stream.phase == .disconnecting)
    stream.finish(nil)
    #expect(stream.takeEvents() == [.closed(nil)])
  }

  @Test("The first end counts, and after it only reading goes on")
  func endsOnce() {
    var stream = stream()
    #expect(stream.write(Data(octets(1_001))) == 1_000)
    stream.received(octets(10)[...])
    let reason = RadioError(.supervisionTimeout, "gone")
    stream.finish(reason)
    stream.finish(nil)
    #expect(stream.takeEvents() == [.readable, .closed(reason)])
    #expect(stream.nextLength == nil)
    #expect(stream.write(Data([1])) == 0)
    #expect(!stream.hasSpace)
    #expect(Array(stream.read(upTo: 100)) == octets(10))
  }

  @Test("A socket that calls itself writable and takes nothing is offered less, and given up in the end")
  func shortens() {
    var stream = stream(mtu: 400)
    #expect(stream.write(Data(octets(1_000))) == 1_000)
    #expect(stream.refused(now: .zero) == true)
    // So far it has promised nothing.
    stream.unblock(now: .zero)
    #expect(stream.nextLength == 400)
    #expect(stream.refused(now: .zero) == true)
    stream.unblock(now: .zero)
    #expect(stream.nextLength == 200)
    stream.sent(200)
    // What it has once taken it is offered again.
    #expect(stream.refused(now: .zero) == true)
    stream.unblock(now: .zero)
    #expect(stream.nextLength == 200)
    var attempts = 0
    while stream.refused(now: .zero) {
      stream.unblock(now: .zero)
      attempts += 1
      guard attempts < 1_000 else { break }
    }
    #expect((1..<1_000).contains(attempts))
    stream.unblock(now: .zero)
    #expect(stream.nextLength.map { $0 >= SDUStream.minimumMTU } == true)
  }

  /// How long SDUs get where each takes so long for 1000 octets, and besides.
  private func settledLength(_ perThousand: Duration, besides: Duration = .zero, mtu: Int) -> Int {
    var stream = stream(mtu: mtu, capacity: 64 * 1024)
    var now = Duration.zero
    var lengths: [Int] = []
    for _ in 0..<20 {
      _ = stream.write(Data(octets(64 * 1024)))
      guard let length = stream.nextLength else { break }
      lengths.append(length)
      stream.sent(length)
      #expect(stream.refused(now: now) == true)
      now += perThousand * length / 1_000 + besides
      stream.unblock(now: now)
    }
    #expect(lengths.first == min(mtu, SDUStream.firstSDU))
    return lengths.last ?? 0
  }

  @Test("SDUs are as long as the kernel has buffers for, unless the link is slow")
  func adapts() {
    #expect(settledLength(.milliseconds(1), mtu: 65_535) == SDUStream.longestSDU)
    #expect(settledLength(.milliseconds(1), mtu: 3_000) == 3_000)
    #expect(settledLength(.seconds(100), mtu: 65_535) == SDUStream.shortestSDU)
    #expect(settledLength(.seconds(100), mtu: 100) == 100)
  }

  @Test("A busy host that is slow to go on is no slow link: SDUs become long")
  func busyHost() {
    #expect(settledLength(.milliseconds(1), besides: .milliseconds(60), mtu: 65_535) == SDUStream.longestSDU)
    #expect(settledLength(.milliseconds(1), besides: .milliseconds(100), mtu: 65_535) == SDUStream.longestSDU)
  }

  @Test("An SDU takes a fraction of a second", arguments: [10, 30, 100, 400])
  func keepsPace(_ perThousand: Int) {
    let length = settledLength(.milliseconds(perThousand), mtu: 65_535)
    let time = Duration.milliseconds(perThousand) * length / 1_000
    #expect(SDUStream.pace.contains(time))
  }
}
