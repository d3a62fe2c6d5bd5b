import Dispatch
import Foundation
import Glibc
import Locking
import Radio
import RealStack
import Testing

@testable import BlueZRadio

/// Two adapters of the virtual machine, of which the far one can be connected to, and what tests of the kernel's channels do with them.
struct KernelRig {
  static let near = DeviceAddress(Guest.address(of: 0), kind: .public)
  static let far = DeviceAddress(Guest.address(of: 1), kind: .public)

  private let clock = WallClock()
  let accepted = Inbox<L2CAPChannel>()

  /// Takes values from another thread.
  final class Inbox<Value: Sendable>: Sendable {
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
  struct Link {
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

  func listen(requiresEncryption: Bool = false) throws -> L2CAPListener {
    try L2CAPListener(
      adapter: try #require(Self.far), requiresEncryption: requiresEncryption, clock: clock
    ) { [accepted] _, channel in accepted.put(channel) }
  }

  func open(_ psm: PSM, timeLimit: Duration = L2CAPConnector.timeLimit) throws -> Result<
    L2CAPChannel, RadioError
  > {
    let (near, far) = (try #require(Self.near), try #require(Self.far))
    let answers = Inbox<Result<L2CAPChannel, RadioError>>()
    L2CAPConnector(clock: clock, timeLimit: timeLimit).connect(
      to: far, from: near, psm: psm, peer: far.peer, completion: answers.put)
    return try answers.next()
  }

  func link(_ listener: L2CAPListener) throws -> Link {
    let here = try open(listener.psm).get()
    return Link(here, try accepted.next())
  }

  func octets(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
  }

  /// Writes on a thread of its own, as room comes.
  func write(_ data: Data, _ channel: L2CAPChannel, _ events: ChannelEvents) {
    Thread.detachNewThread {
      var written = 0
      while written < data.count {
        written += channel.write(data.dropFirst(written))
        guard events.wait(until: { channel.hasSpace || events.end != nil }), events.end == nil else { return }
      }
    }
  }

  func read(_ count: Int, _ channel: L2CAPChannel, _ events: ChannelEvents) -> Data {
    var data = Data()
    while data.count < count {
      // Bytes and the end may come at once.
      let hasEnded = events.end != nil
      let part = channel.read(upTo: count - data.count)
      data += part
      guard part.isEmpty else { continue }
      guard !hasEnded, events.wait(until: { channel.hasBytes || events.end != nil }) else { break }
    }
    return data
  }
}
