import ChildProcess
import Dispatch
import Foundation
import Glibc
import Locking
import Radio
import RealStack
import Testing

@testable import BlueZRadio

/// Channels of the kernel, from one adapter to another.
@Suite(
  "L2CAP: the kernel's sockets", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct KernelL2CAPTests {
  private static let near = DeviceAddress(Guest.address(of: 0), kind: .public)
  private static let far = DeviceAddress(Guest.address(of: 1), kind: .public)

  private let clock = WallClock()
  private let accepted = Inbox<L2CAPChannel>()

  /// Takes values from another thread.
  private final class Inbox<Value: Sendable>: Sendable {
    private let values = PosixMutex<[Value]>([])
    private let signal = DispatchSemaphore(value: 0)

    @Sendable func put(_ value: Value) {
      values.withLock { $0.append(value) }
      signal.signal()
    }

    func next() throws -> Value {
      try #require(signal.wait(timeout: .now() + 120) == .success, "nothing comes")
      return values.withLock { $0.removeFirst() }
    }
  }

  /// The two ends of a channel.
  private struct Link {
    let here: L2CAPChannel
    let there: L2CAPChannel
    let hereEvents = ChannelEvents()
    let thereEvents = ChannelEvents()

    init(_ here: L2CAPChannel, _ there: L2CAPChannel) {
      self.here = here
      self.there = there
      here.setSink(hereEvents.sink)
      there.setSink(thereEvents.sink)
    }

    func waitForBothEnds() -> Bool { hereEvents.waitForEnd() && thereEvents.waitForEnd() }
  }

  /// The far adapter can be connected to; the kernel makes the link as a channel is asked for.
  init() async throws {
    // What was on before the adapter was switched off is called on afterwards too, but nothing is on the air.
    try await Self.manage("advertising", "off")
    try await Self.manage("connectable", "on")
    try await Self.manage("advertising", "on")
  }

  /// btmgmt(1) does nothing without a terminal.
  private static func manage(_ words: String...) async throws {
    let line = "btmgmt --index 1 " + words.joined(separator: " ")
    try await Command("/usr/bin/script", ["-qec", line, "/dev/null"]).run()
  }

  private func listen(requiresEncryption: Bool = false) throws -> L2CAPListener {
    try L2CAPListener(
      adapter: try #require(Self.far), requiresEncryption: requiresEncryption, clock: clock
    ) { [accepted] _, channel in accepted.put(channel) }
  }

  private func open(_ psm: PSM, timeLimit: Duration = L2CAPConnector.timeLimit) throws -> Result<
    L2CAPChannel, RadioError
  > {
    let (near, far) = (try #require(Self.near), try #require(Self.far))
    let answers = Inbox<Result<L2CAPChannel, RadioError>>()
    L2CAPConnector(clock: clock, timeLimit: timeLimit).connect(
      to: far, from: near, psm: psm, peer: far.peer, completion: answers.put)
    return try answers.next()
  }

  private func link(_ listener: L2CAPListener) throws -> Link {
    let here = try open(listener.psm).get()
    return Link(here, try accepted.next())
  }

  private func octets(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
  }

  /// Writes on a thread of its own, as room comes.
  private func write(_ data: Data, _ channel: L2CAPChannel, _ events: ChannelEvents) {
    Thread.detachNewThread {
      var written = 0
      while written < data.count {
        written += channel.write(data.dropFirst(written))
        guard events.wait(until: { channel.hasSpace || events.end != nil }), events.end == nil else { return }
      }
    }
  }

  private func read(_ count: Int, _ channel: L2CAPChannel, _ events: ChannelEvents) -> Data {
    var data = Data()
    while data.count < count {
      let part = channel.read(upTo: count - data.count)
      data += part
      guard part.isEmpty else { continue }
      guard events.end == nil, events.wait(until: { channel.hasBytes || events.end != nil }) else { break }
    }
    return data
  }

  @Test("A megabyte arrives whole, in either direction")
  func carries() throws {
    let listener = try listen()
    let link = try link(listener)
    #expect(link.there.psm == listener.psm && link.there.peer == Self.near?.peer)
    let data = octets(1 << 20)
    write(data, link.here, link.hereEvents)
    #expect(read(data.count, link.there, link.thereEvents) == data)
    write(data, link.there, link.thereEvents)
    #expect(read(data.count, link.here, link.hereEvents) == data)
  }

  @Test("A reader that stalls holds the writer up, and loses nothing")
  func stalls() throws {
    let listener = try listen()
    let link = try link(listener)
    let data = octets(400_000)
    var written = 0
    while written < data.count {
      let taken = link.here.write(data.dropFirst(written))
      written += taken
      // As long as it goes on, it goes on within that time.
      if taken == 0, !link.hereEvents.waitBriefly(), !link.hereEvents.waitBriefly() { break }
    }
    // Two buffers of ours, and what the kernel keeps.
    #expect(written < 250_000)
    write(data.dropFirst(written), link.here, link.hereEvents)
    #expect(read(data.count, link.there, link.thereEvents) == data)
  }

  @Test("Closing sends what was written, and both ends hear of it in order", arguments: [false, true])
  func closes(_ acceptorCloses: Bool) throws {
    let listener = try listen()
    let link = try link(listener)
    let data = octets(50_000)
    let (closer, other) = acceptorCloses ? (link.there, link.here) : (link.here, link.there)
    #expect(closer.write(data) == data.count)
    closer.close()
    #expect(link.waitForBothEnds())
    #expect(link.hereEvents.end == .some(nil) && link.thereEvents.end == .some(nil))
    #expect(other.read(upTo: 100_000) == data)
    // The link goes on, and so does the PSM.
    _ = try self.link(listener)
  }

  @Test("Closing in the middle of what the other end writes is an end for both")
  func closesInTheMiddle() throws {
    let listener = try listen()
    let link = try link(listener)
    let data = octets(400_000)
    write(data, link.here, link.hereEvents)
    #expect(read(100_000, link.there, link.thereEvents) == data.prefix(100_000))
    link.there.close()
    #expect(link.waitForBothEnds())
    #expect(link.hereEvents.end == .some(nil) && link.thereEvents.end == .some(nil))
  }

  @Test("A PSM that nobody has is refused, also one that was withdrawn")
  func refuses() throws {
    let listener = try listen()
    let link = try link(listener)
    for psm in [listener.psm + 1, 0xFF] {
      guard case .failure(let error) = try open(psm) else { throw Unexpected() }
      #expect(error.code == .psmNotSupported)
    }
    let other = try listen()
    #expect(other.psm != listener.psm)
    listener.close()
    #expect(link.waitForBothEnds())
    guard case .failure(let error) = try open(listener.psm) else { throw Unexpected() }
    #expect(error.code == .psmNotSupported)
    _ = try self.link(other)
  }

  @Test("A channel that wants an encrypted link is not opened over one that nobody has encrypted")
  func wantsEncryption() throws {
    let listener = try listen(requiresEncryption: true)
    guard case .failure = try open(listener.psm, timeLimit: .seconds(3)) else { throw Unexpected() }
  }

  @Test("l2test(1) sends to a channel that was accepted")
  func tester() async throws {
    let listener = try listen()
    async let sender = Command(
      "/usr/bin/l2test",
      [
        "-s", "-i", "hci0", "-V", "le_public", "-P", "\(listener.psm)", "-b", "600", "-N", "200",
        Guest.address(of: 1),
      ]
    ).run()
    let channel = try accepted.next()
    let events = ChannelEvents()
    channel.setSink(events.sink)
    #expect(read(600 * 200 + 1, channel, events).count == 600 * 200)
    #expect(events.end == .some(nil))
    _ = try await sender
  }

  @Test("l2test(1) accepts a channel and sends")
  func testerListens() throws {
    let psm: PSM = 200
    let tester = try ChildProcess(
      "/usr/bin/l2test",
      ["-w", "-i", "hci1", "-V", "le_public", "-P", "\(psm)", "-b", "600", "-N", "200"])
    defer { tester.send(signal: SIGKILL) }
    // Refused until it listens.
    var answer = try open(psm)
    for _ in 0..<1_000 {
      guard case .failure(let error) = answer, error.code == .psmNotSupported else { break }
      answer = try open(psm)
    }
    let channel = try answer.get()
    let events = ChannelEvents()
    channel.setSink(events.sink)
    #expect(read(600 * 200 + 1, channel, events).count == 600 * 200)
    #expect(events.waitForEnd())
    #expect(events.end == .some(nil))
  }

  @Test("A lost link is no end in order, and what has arrived can be read")
  func losesLink() async throws {
    let listener = try listen()
    let link = try link(listener)
    let data = octets(40_000)
    write(data, link.here, link.hereEvents)
    #expect(read(10_000, link.there, link.thereEvents) == data.prefix(10_000))
    // bluetoothd does not know this link well enough to end it.
    let handles = #"s/.*handle \([0-9]*\) .*/\1/p"#
    let line = "hcitool -i hci1 ledc $(hcitool -i hci1 con | sed -n '\(handles)')"
    try await Command("/bin/sh", ["-c", line]).run()
    #expect(link.waitForBothEnds())
    for events in [link.hereEvents, link.thereEvents] {
      guard case .some(.some) = events.end else { throw Unexpected() }
    }
    let rest = read(data.count, link.there, link.thereEvents)
    #expect(rest == data.dropFirst(10_000).prefix(rest.count))
    #expect(link.here.write(Data([1])) == 0)
  }

  private struct Unexpected: Error {}
}
