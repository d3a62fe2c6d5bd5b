import BlockingTests
import ChildProcess
import Foundation
import Radio
import RealStack
import Testing

@testable import BlueZRadio

/// Channels of the kernel, from one adapter to another.
@Suite(
  "L2CAP: the kernel's sockets", .serialized, .blocking, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct KernelL2CAPTests {
  private let rig: KernelRig

  init() async throws { rig = try await KernelRig() }

  @Test("A megabyte arrives whole, in either direction")
  func carries() throws {
    let listener = try rig.listen()
    let link = try rig.link(listener)
    #expect(link.there.psm == listener.psm && link.there.peer == KernelRig.near?.peer)
    let data = rig.octets(1 << 20)
    rig.write(data, link.here, link.hereEvents)
    #expect(rig.read(data.count, link.there, link.thereEvents) == data)
    rig.write(data, link.there, link.thereEvents)
    #expect(rig.read(data.count, link.here, link.hereEvents) == data)
  }

  @Test("A reader that stalls holds the writer up, and loses nothing")
  func stalls() throws {
    let listener = try rig.listen()
    let link = try rig.link(listener)
    let data = rig.octets(400_000)
    var written = 0
    while written < data.count {
      let taken = link.here.write(data.dropFirst(written))
      written += taken
      // As long as it goes on, it goes on within that time.
      if taken == 0, !link.hereEvents.waitBriefly(), !link.hereEvents.waitBriefly() { break }
    }
    // Two buffers of ours, and what the kernel keeps.
    #expect(written < 250_000)
    rig.write(data.dropFirst(written), link.here, link.hereEvents)
    #expect(rig.read(data.count, link.there, link.thereEvents) == data)
  }

  @Test("Closing sends what was written, and both ends hear of it in order", arguments: [false, true])
  func closes(_ acceptorCloses: Bool) throws {
    let listener = try rig.listen()
    let link = try rig.link(listener)
    let data = rig.octets(50_000)
    let (closer, other) = acceptorCloses ? (link.there, link.here) : (link.here, link.there)
    #expect(closer.write(data) == data.count)
    closer.close()
    #expect(link.waitForBothEnds())
    #expect(link.hereEvents.end == .some(nil) && link.thereEvents.end == .some(nil))
    #expect(other.read(upTo: 100_000) == data)
    // The link goes on, and so does the PSM.
    _ = try rig.link(listener)
  }

  @Test("Closing in the middle of what the other end writes is an end for both")
  func closesInTheMiddle() throws {
    let listener = try rig.listen()
    let link = try rig.link(listener)
    let data = rig.octets(400_000)
    rig.write(data, link.here, link.hereEvents)
    #expect(rig.read(100_000, link.there, link.thereEvents) == data.prefix(100_000))
    link.there.close()
    #expect(link.waitForBothEnds())
    #expect(link.hereEvents.end == .some(nil) && link.thereEvents.end == .some(nil))
  }

  @Test("A PSM that nobody has is refused, also one that was withdrawn")
  func refuses() throws {
    let listener = try rig.listen()
    let link = try rig.link(listener)
    for psm in [listener.psm + 1, 0xFF] {
      guard case .failure(let error) = try rig.open(psm) else { throw Unexpected() }
      #expect(error.code == .psmNotSupported)
    }
    let other = try rig.listen()
    #expect(other.psm != listener.psm)
    listener.close()
    #expect(link.waitForBothEnds())
    guard case .failure(let error) = try rig.open(listener.psm) else { throw Unexpected() }
    #expect(error.code == .psmNotSupported)
    _ = try rig.link(other)
  }

  @Test("l2test(1) sends to a channel that was accepted")
  func tester() async throws {
    let listener = try rig.listen()
    async let sender = Command(
      "/usr/bin/l2test",
      [
        "-s", "-i", "hci0", "-V", "le_public", "-P", "\(listener.psm)", "-b", "600", "-N", "200",
        Guest.address(of: 1),
      ]
    ).run()
    let channel = try rig.accepted.next()
    let events = ChannelEvents()
    channel.setSink(events.sink)
    #expect(rig.read(600 * 200 + 1, channel, events).count == 600 * 200)
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
    var answer = try rig.open(psm)
    for _ in 0..<1_000 {
      guard case .failure(let error) = answer, error.code == .psmNotSupported else { break }
      answer = try rig.open(psm)
    }
    let channel = try answer.get()
    let events = ChannelEvents()
    channel.setSink(events.sink)
    #expect(rig.read(600 * 200 + 1, channel, events).count == 600 * 200)
    #expect(events.waitForEnd())
    #expect(events.end == .some(nil))
  }

  @Test("A lost link is no end in order, and what has arrived can be read")
  func losesLink() async throws {
    let listener = try rig.listen()
    let link = try rig.link(listener)
    let data = rig.octets(40_000)
    rig.write(data, link.here, link.hereEvents)
    #expect(rig.read(10_000, link.there, link.thereEvents) == data.prefix(10_000))
    // bluetoothd does not know this link well enough to end it.
    let handles = #"s/.*handle \([0-9]*\) .*/\1/p"#
    let line = "hcitool -i hci1 ledc $(hcitool -i hci1 con | sed -n '\(handles)')"
    try await Command("/bin/sh", ["-c", line]).run()
    #expect(link.waitForBothEnds())
    for events in [link.hereEvents, link.thereEvents] {
      guard case .some(.some) = events.end else { throw Unexpected() }
    }
    let rest = rig.read(data.count, link.there, link.thereEvents)
    #expect(rest == data.dropFirst(10_000).prefix(rest.count))
    #expect(link.here.write(Data([1])) == 0)
  }
}

/// A boot of its own: a pairing that nobody answers leaves the adapters unable to link again.
@Suite(
  "L2CAP: the kernel's sockets, encrypted", .serialized, .blocking, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct EncryptedKernelL2CAPTests {
  @Test("A channel that wants an encrypted link is not opened over one that nobody has encrypted")
  func wantsEncryption() async throws {
    let rig = try await KernelRig()
    let listener = try rig.listen(requiresEncryption: true)
    guard case .failure = try rig.open(listener.psm, timeLimit: .seconds(3)) else { throw Unexpected() }
  }
}

private struct Unexpected: Error {}
