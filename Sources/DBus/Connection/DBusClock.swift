internal import Dispatch

/// The time that limits of calls are measured by: real, or that of a test.
public protocol DBusClock: AnyObject, Sendable {
  /// Time since an arbitrary start, monotonic.
  var now: Duration { get }

  /// Runs `work` once, `delay` from now, on any thread; it hops to its own queue.
  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> DBusTimer
}

/// A timer that has not fired; cancelling is idempotent and does not wait for running work.
public final class DBusTimer: Sendable {
  private let onCancel: @Sendable () -> Void

  /// Makes a handle whose ``cancel()`` calls `onCancel`.
  public init(onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

  /// Prevents the work from being started, if it was not yet.
  public func cancel() { onCancel() }
}

/// Real time: timers are dispatch sources.
public final class SystemDBusClock: DBusClock {
  private let queue = DispatchQueue(label: "DBus.clock")
  private let start = ContinuousClock.now

  public init() {}

  public var now: Duration { ContinuousClock.now - start }

  public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> DBusTimer {
    let source = TimerSource(queue)
    let (seconds, attoseconds) = delay.components
    // A limit of many years is none; its sum would overflow.
    let bounded = min(max(seconds, 0), 1 << 32)
    let nanoseconds = max(0, attoseconds / 1_000_000_000)
    source.start(.now() + .seconds(Int(bounded)) + .nanoseconds(Int(nanoseconds)), work)
    return DBusTimer { source.cancel() }
  }
}

// Dispatch sources can be used from all threads; this one is set up before it is shared.
private final class TimerSource: @unchecked Sendable {
  private let source: any DispatchSourceTimer

  init(_ queue: DispatchQueue) { source = DispatchSource.makeTimerSource(queue: queue) }

  /// To be called once. The source lives until the work has run or was cancelled.
  func start(_ deadline: DispatchTime, _ work: @escaping @Sendable () -> Void) {
    source.schedule(deadline: deadline)
    source.setEventHandler {
      work()
      self.cancel()
    }
    source.resume()
  }

  func cancel() { source.cancel() }
}
