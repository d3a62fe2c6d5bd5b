import BlockingTests
import Foundation
import Glibc
import Radio
import Readiness
import Testing

@testable import VirtualRadio

/// One end of a connection between processes; the other end is played by hand.
@Suite("Connections between processes", .blocking, .timeLimit(.minutes(30))) struct AirConnectionTests {
  private static let frame = AirMessage.frame([UInt8](repeating: 7, count: 200))
  /// More than a socket takes at once.
  private static let many = 10_000

  private static func pair() throws -> (near: FileDescriptor, far: FileDescriptor) {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    try #require(unsafe socketpair(AF_UNIX, type, 0, &ends) == 0)
    return (FileDescriptor(owning: ends[0]), FileDescriptor(owning: ends[1]))
  }

  /// Says more than the other side has read, and farewell, and lets go.
  private func sayFarewell(
    _ socket: FileDescriptor, _ monitor: ReadinessMonitor,
    within farewell: DispatchTimeInterval = AirConnection.longestFarewell
  ) -> Weak {
    let connection = AirConnection(socket, monitor, farewell: farewell) { _ in }
    connection.start()
    for _ in 0..<Self.many { connection.send(Self.frame) }
    connection.send(.ended(.terminated(by: .peripheral)))
    connection.closeWhenSent()
    return Weak(connection: connection)
  }

  private struct Weak { weak var connection: AirConnection? }

  @Test("a farewell arrives after everything before it, also where nobody holds the connection any more")
  func farewell() throws {
    let (near, far) = try Self.pair()
    let queue = DispatchQueue(label: "air")
    let monitor = try #require(ReadinessMonitor(queue: queue))
    let left = sayFarewell(near, monitor)
    // What fits has been sent; the rest waits for a reader.
    queue.sync {}
    let reader = RawVisitor(accepted: far)
    var frames = 0
    let end = try reader.receive { message -> LinkEnd? in
      switch message {
      case Self.frame: frames += 1
      case .ended(let reason): return reason
      default: Issue.record("\(message)")
      }
      return nil
    }
    #expect(end == .terminated(by: .peripheral))
    #expect(frames == Self.many)
    try reader.waitForEnd()
    queue.sync {}
    #expect(left.connection == nil)
  }

  @Test("a farewell that nobody reads ends with its time")
  func unread() throws {
    let (near, far) = try Self.pair()
    let queue = DispatchQueue(label: "air")
    let monitor = try #require(ReadinessMonitor(queue: queue))
    let left = sayFarewell(near, monitor, within: .milliseconds(20))
    // POLLHUP, which is always waited for.
    var poll = pollfd(fd: far.raw, events: 0, revents: 0)
    #expect(unsafe Glibc.poll(&poll, 1, 600_000) == 1)
    queue.sync {}
    #expect(left.connection == nil)
  }

  @Test("what waits for a side that reads nothing has a bound, and then it is the end")
  func neverReads() throws {
    let (near, far) = try Self.pair()
    let queue = DispatchQueue(label: "air")
    let monitor = try #require(ReadinessMonitor(queue: queue))
    let log = NewsLog<AirConnection.Event>()
    let connection = AirConnection(near, monitor) { log.append($0) }
    connection.start()
    for _ in 0..<Self.many { connection.send(Self.frame) }
    // Now the socket is full, and nobody will ever say that it is not.
    queue.sync {}
    for _ in 0..<10 * Self.many { connection.send(Self.frame) }
    queue.sync {}
    let ends = log.all.compactMap { event -> String? in
      if case .ended(let reason) = event { reason } else { nil }
    }
    #expect(ends == ["the other process does not read"])
    #expect(connection.isIdle, "nothing is held any more")
    withExtendedLifetime(far) {}
  }

  /// What is sent to a side that has gone.
  enum Sent: CaseIterable, Sendable {
    case nothing, oneMessage
    /// The buffer is full when the other side goes, so that the write fails first.
    case more
  }

  @Test(
    "one that goes is heard to its last word and its end, whatever could not be sent to it",
    arguments: Sent.allCases)
  func lastWords(sent: Sent) throws {
    let queue = DispatchQueue(label: "air")
    let monitor = try #require(ReadinessMonitor(queue: queue))
    let log = NewsLog<AirConnection.Event>()
    let connection = try {
      let (near, far) = try Self.pair()
      let connection = AirConnection(near, monitor) { log.append($0) }
      if sent == .more {
        for _ in 0..<Self.many { connection.send(Self.frame) }
        queue.sync {}
      }
      let visitor = RawVisitor(accepted: far)
      for _ in 0..<50 { visitor.send(Self.frame) }
      visitor.send(.terminate)
      return connection
    }()
    if sent != .nothing { connection.send(Self.frame) }
    connection.start()
    try log.expect("the end") { event in if case .ended = event { () } else { nil } }
    connection.send(Self.frame)
    queue.sync {}
    var heard: [AirMessage] = []
    var ends: [String?] = []
    for event in log.all {
      switch event {
      case .messages(let messages): heard += messages
      case .ended(let reason): ends.append(reason)
      case .drained: Issue.record("nothing has been read")
      }
    }
    #expect(heard == [AirMessage](repeating: Self.frame, count: 50) + [.terminate])
    #expect(ends == [nil])
  }
}
