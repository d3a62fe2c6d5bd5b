internal import CLinux
package import Dispatch
internal import Glibc
internal import Locking

/// Tells when descriptors are readable or writable, on a queue: one epoll(7), watched by one dispatch source.
///
/// Sockets have no dispatch sources of their own. libdispatch on Linux (Swift 6.3) drops its registration of a descriptor at the first hang-up: whoever then
/// takes what was said and not the end as well never hears of the end. It has one registration for all sources of a descriptor, too, which one that is
/// made with the same number soon afterwards can inherit; and its event loop was seen to crash while sockets came and went.
package final class ReadinessMonitor: Sendable {
  private struct Watched {
    let descriptor: OwnDescriptor
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
  package let queue: DispatchQueue
  private let epoll: OwnDescriptor
  private let state = PosixMutex(State())

  /// Nil where the system has no descriptor left.
  package init?(queue: DispatchQueue) {
    guard let epoll = OwnDescriptor(clinux_epoll()) else { return nil }
    self.epoll = epoll
    self.queue = queue
    state.withLock { state in
      let source = DispatchSource.makeReadSource(fileDescriptor: epoll.raw, queue: queue)
      source.setEventHandler { [weak self] in self?.callHandlers() }
      source.setCancelHandler { withExtendedLifetime(epoll) {} }
      source.resume()
      state.source = source
    }
  }

  deinit { state.withLock { $0.source?.cancel() } }

  /// Adds a duplicate of a descriptor, switched off; nil where the system has no descriptor left.
  fileprivate func add(
    _ descriptor: Int32, isWriting: Bool, _ handler: @escaping @Sendable () -> Void
  ) -> UInt64? {
    // One descriptor can be watched once only.
    guard let own = OwnDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) else { return nil }
    return state.withLock { state in
      state.next += 1
      state.watched[state.next] = Watched(descriptor: own, isWriting: isWriting, handler: handler)
      return state.next
    }
  }

  fileprivate func watch(_ interest: ReadinessSource.Interest, _ number: UInt64) {
    state.withLock { state in
      guard let watched = state.watched[number], watched.interest != interest else { return }
      state.watched[number]?.interest = interest
      if watched.interest != .nothing { _ = clinux_epoll_remove(epoll.raw, watched.descriptor.raw) }
      let event: Int
      switch interest {
      case .nothing: return
      case .hangUp: event = CLINUX_HANG_UP
      case .readiness: event = watched.isWriting ? CLINUX_WRITABLE : CLINUX_READABLE
      case .reads: event = CLINUX_WRITABLE_EDGE
      }
      _ = clinux_epoll_add(epoll.raw, watched.descriptor.raw, Int32(event), number)
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

/// A descriptor at a monitor, which can be switched on and off. It begins switched off, and ends with its last reference.
package final class ReadinessSource: Sendable {
  /// What its handler is called for, again and again as long as it is so.
  package enum Interest: Sendable {
    /// Nothing, not even a hang-up.
    case nothing
    /// The other side has closed, or the connection is broken.
    case hangUp
    /// That, or there is something to read, or room for something to write.
    case readiness
    /// Called at first, and then at each packet that the other side reads, as long as at most a quarter of the buffer is taken; for sockets of unix(7).
    ///
    /// The kernel wakes who waits for room at every packet that was read while the socket counts as writable, which is up to a quarter; an edge-triggered
    /// epoll(7) makes an event of that.
    case reads
  }

  private let monitor: ReadinessMonitor
  private let number: UInt64

  private init(_ monitor: ReadinessMonitor, _ number: UInt64) {
    (self.monitor, self.number) = (monitor, number)
  }

  /// Nil where the system has no descriptor left.
  package static func reading(
    _ descriptor: Int32, _ monitor: ReadinessMonitor, _ handler: @escaping @Sendable () -> Void
  ) -> ReadinessSource? {
    monitor.add(descriptor, isWriting: false, handler).map { ReadinessSource(monitor, $0) }
  }

  /// Nil where the system has no descriptor left.
  package static func writing(
    _ descriptor: Int32, _ monitor: ReadinessMonitor, _ handler: @escaping @Sendable () -> Void
  ) -> ReadinessSource? {
    monitor.add(descriptor, isWriting: true, handler).map { ReadinessSource(monitor, $0) }
  }

  deinit { cancel() }

  package func watch(_ interest: Interest) { monitor.watch(interest, number) }

  /// Watches for readiness, or for nothing.
  package func setEnabled(_ enabled: Bool) { watch(enabled ? .readiness : .nothing) }

  /// Ends it; its duplicate of the descriptor is closed. A call that has begun may still be running.
  package func cancel() { monitor.remove(number) }
}

/// Closes a descriptor at its end.
private final class OwnDescriptor: Sendable {
  let raw: Int32

  /// Nil for what a failed call returns.
  init?(_ raw: Int32) {
    guard raw >= 0 else { return nil }
    self.raw = raw
  }

  deinit { close(raw) }
}
