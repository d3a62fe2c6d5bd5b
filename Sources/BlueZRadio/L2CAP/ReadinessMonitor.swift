internal import CLinux
internal import DBus
internal import Dispatch
internal import Locking

/// Tells when sockets are readable or writable, on a queue: one epoll(7), watched by one dispatch source.
///
/// Sockets have no dispatch sources of their own. libdispatch on Linux (Swift 6.3) has one registration for all sources of a descriptor and drops it at
/// a hang-up; while channels came and went on a real kernel, its event loop was seen to crash.
final class ReadinessMonitor: Sendable {
  private struct Watched {
    let socket: UnixDescriptor
    let isWriting: Bool
    let handler: @Sendable () -> Void
    var interest = ReadinessSource.Interest.nothing
  }

  private struct State {
    var watched: [UInt64: Watched] = [:]
    var next: UInt64 = 0
    var source: (any DispatchSourceRead)?
  }

  /// Where handlers are called.
  let queue: DispatchQueue
  private let epoll: UnixDescriptor
  private let state = PosixMutex(State())

  /// Nil where the system has no descriptor left.
  init?(label: String) {
    let raw = clinux_epoll()
    guard raw >= 0 else { return nil }
    let epoll = UnixDescriptor(owning: raw)
    self.epoll = epoll
    queue = DispatchQueue(label: label)
    state.withLock { state in
      let source = DispatchSource.makeReadSource(fileDescriptor: raw, queue: queue)
      source.setEventHandler { [weak self] in self?.callHandlers() }
      source.setCancelHandler { withExtendedLifetime(epoll) {} }
      source.resume()
      state.source = source
    }
  }

  deinit { state.withLock { $0.source?.cancel() } }

  /// Adds a socket, switched off; nil where the system has no descriptor left.
  fileprivate func add(
    _ socket: UnixDescriptor, isWriting: Bool, _ handler: @escaping @Sendable () -> Void
  ) -> UInt64? {
    // One descriptor can be watched once only.
    guard let own = try? socket.duplicate() else { return nil }
    return state.withLock { state in
      state.next += 1
      state.watched[state.next] = Watched(socket: own, isWriting: isWriting, handler: handler)
      return state.next
    }
  }

  fileprivate func watch(_ interest: ReadinessSource.Interest, _ number: UInt64) {
    state.withLock { state in
      guard let watched = state.watched[number], watched.interest != interest else { return }
      state.watched[number]?.interest = interest
      if watched.interest != .nothing { _ = clinux_epoll_remove(epoll.raw, watched.socket.raw) }
      let event: Int
      switch interest {
      case .nothing: return
      case .hangUp: event = CLINUX_HANG_UP
      case .readiness: event = watched.isWriting ? CLINUX_WRITABLE : CLINUX_READABLE
      }
      _ = clinux_epoll_add(epoll.raw, watched.socket.raw, Int32(event), number)
    }
  }

  fileprivate func remove(_ number: UInt64) {
    watch(.nothing, number)
    // The handler may own anything, so it is released once the lock is open.
    let watched = state.withLock { $0.watched.removeValue(forKey: number) }
    withExtendedLifetime(watched) {}
  }

  /// On the queue. What is still ready afterwards makes the source fire again.
  private func callHandlers() {
    var numbers = [UInt64](repeating: 0, count: 16)
    let count = unsafe clinux_epoll_ready(epoll.raw, &numbers, Int32(numbers.count))
    for number in numbers.prefix(Int(max(count, 0))) {
      // One that was switched off meanwhile is not called.
      let handler = state.withLock { state in
        state.watched[number].flatMap { $0.interest == .nothing ? nil : $0.handler }
      }
      handler?()
    }
  }
}

/// A socket at a monitor, which can be switched on and off. It begins switched off.
struct ReadinessSource: Sendable {
  /// What its handler is called for, again and again as long as it is so.
  enum Interest: Sendable {
    /// Nothing, not even a hang-up.
    case nothing
    /// The other side has closed, or the connection is broken.
    case hangUp
    /// That, or there is something to read, or room for something to write.
    case readiness
  }

  private let monitor: ReadinessMonitor
  private let number: UInt64

  /// Nil where the system has no descriptor left.
  static func reading(
    _ socket: UnixDescriptor, _ monitor: ReadinessMonitor, _ handler: @escaping @Sendable () -> Void
  ) -> Self? {
    monitor.add(socket, isWriting: false, handler).map { Self(monitor: monitor, number: $0) }
  }

  /// Nil where the system has no descriptor left.
  static func writing(
    _ socket: UnixDescriptor, _ monitor: ReadinessMonitor, _ handler: @escaping @Sendable () -> Void
  ) -> Self? {
    monitor.add(socket, isWriting: true, handler).map { Self(monitor: monitor, number: $0) }
  }

  func watch(_ interest: Interest) { monitor.watch(interest, number) }

  /// Watches for readiness, or for nothing.
  func setEnabled(_ enabled: Bool) { watch(enabled ? .readiness : .nothing) }

  /// Ends it; its duplicate of the descriptor is closed. A call that has begun may still be running.
  func cancel() { monitor.remove(number) }
}
