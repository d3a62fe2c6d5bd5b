import DBus
import Dispatch
import Foundation
import Glibc
import Locking
import Radio
import Testing

@testable import BlueZRadio

/// Two connected sockets that behave as those of a channel do: packets, EAGAIN, an end. One is for a channel, the other is the peer's.
struct PacketPair {
  let near: UnixDescriptor
  let far: FarEnd

  init(sendBuffer: Int32? = nil) throws {
    var raw: [Int32] = [0, 0]
    let result = unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &raw)
    try #require(result == 0)
    near = UnixDescriptor(owning: raw[0])
    far = FarEnd(UnixDescriptor(owning: raw[1]))
    if var size = sendBuffer {
      for socket in raw {
        let result = unsafe setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(4))
        try #require(result == 0)
      }
    }
  }
}

/// The peer, which does as it is told.
struct FarEnd: Sendable {
  /// Waiting is bounded so that a failure ends.
  private static let patience: Int32 = 120_000

  let socket: UnixDescriptor

  init(_ socket: UnixDescriptor) { self.socket = socket }

  private func wait(for events: Int32, _ limit: Int32 = patience) -> Bool {
    var entry = pollfd(fd: socket.raw, events: Int16(events), revents: 0)
    return unsafe poll(&entry, 1, limit) > 0
  }

  /// The next packet, or nil at the end.
  func receive() throws -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 70_000)
    try #require(wait(for: POLLIN), "nothing comes")
    let count = unsafe recv(socket.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    if count < 0, errno == ECONNRESET { return nil }
    try #require(count >= 0)
    return count == 0 ? nil : Array(buffer[..<count])
  }

  /// Packets until so many octets have come, or the end.
  func receive(octets: Int) throws -> [[UInt8]] {
    var (packets, count) = ([[UInt8]](), 0)
    while count < octets, let packet = try receive() {
      packets.append(packet)
      count += packet.count
    }
    return packets
  }

  private func trySend(_ packet: [UInt8]) -> Int {
    unsafe Glibc.send(socket.raw, packet, packet.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
  }

  func send(_ packet: [UInt8]) throws {
    while trySend(packet) < 0 {
      try #require(errno == EAGAIN)
      try #require(wait(for: POLLOUT), "nobody reads")
    }
  }

  /// Sends packets as long as the other side takes them; how many that were.
  func send(_ packet: [UInt8], atMost limit: Int) -> Int {
    for count in 0..<limit {
      while trySend(packet) < 0 {
        guard errno == EAGAIN, wait(for: POLLOUT, 300) else { return count }
      }
    }
    return limit
  }

  func close() { if let raw = socket.take() { Glibc.close(raw) } }
}

/// Takes events and lets the threads of a test wait for them.
final class ChannelEvents: Sendable {
  private struct State {
    var log: [ChannelEvent] = []
    var waiting: [UInt64: DispatchSemaphore] = [:]
    var next: UInt64 = 0
  }

  private let state = PosixMutex(State())

  @Sendable func sink(_ event: ChannelEvent) {
    let waiting = state.withLock { state in
      state.log.append(event)
      return Array(state.waiting.values)
    }
    for signal in waiting { signal.signal() }
  }

  var all: [ChannelEvent] { state.withLock(\.log) }

  /// Why the channel has closed; nil: it has not.
  var end: RadioError?? {
    for case .closed(let reason) in all { return .some(reason) }
    return nil
  }

  private func withSignal<Result>(_ body: (DispatchSemaphore) -> Result) -> Result {
    let signal = DispatchSemaphore(value: 0)
    let id = state.withLock { state in
      state.next += 1
      state.waiting[state.next] = signal
      return state.next
    }
    defer { state.withLock { $0.waiting[id] = nil } }
    return body(signal)
  }

  /// Waits for an event after which `condition` holds; false: it does not come.
  func wait(until condition: () -> Bool) -> Bool {
    withSignal { signal in
      while !condition() {
        guard signal.wait(timeout: .now() + 120) == .success else { return condition() }
      }
      return true
    }
  }

  /// Whether an event comes soon. Nothing may depend on one that does not.
  func waitBriefly() -> Bool { withSignal { $0.wait(timeout: .now() + 0.3) == .success } }

  /// Waits for the end.
  func waitForEnd() -> Bool { wait { self.end != nil } }
}

/// A clock that a test moves.
final class HandClock: RadioClock {
  private struct Work {
    var due: Duration
    var block: @Sendable () -> Void
  }

  private struct State {
    var now = Duration.zero
    var pending: [Int: Work] = [:]
    var next = 0
  }

  private let state = PosixMutex(State())
  private let changed = DispatchSemaphore(value: 0)

  var now: Duration { state.withLock(\.now) }

  /// How many timers there are.
  var pendingCount: Int { state.withLock { $0.pending.count } }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> ScheduledWork {
    let id = state.withLock { state in
      state.next += 1
      state.pending[state.next] = Work(due: state.now + delay, block: work)
      return state.next
    }
    changed.signal()
    return ScheduledWork { [weak self] in self?.state.withLock { $0.pending[id] = nil } }
  }

  /// Waits until a timer is set that is due within `limit` from now.
  func waitForTimer(within limit: Duration) -> Bool {
    while !state.withLock({ state in state.pending.values.contains { $0.due <= state.now + limit } }) {
      guard changed.wait(timeout: .now() + 120) == .success else { return false }
    }
    return true
  }

  func advance(by step: Duration) {
    let due = state.withLock { state in
      state.now += step
      let due = state.pending.filter { $0.value.due <= state.now }
      for id in due.keys { state.pending[id] = nil }
      return due.values.sorted { $0.due < $1.due }
    }
    for work in due { work.block() }
  }

  func beginActivity() {}
  func endActivity() {}
  func watch(_ queue: DispatchQueue) {}
  func unwatch(_ queue: DispatchQueue) {}
}
