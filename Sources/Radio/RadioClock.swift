public import Dispatch

/// The time of a radio: real, or simulated in lock-step with the link.
///
/// In simulated time the clock stands still until everything that was woken has come to rest: no activity is held and every
/// watched queue is empty. Then the next event in order of time happens. Code that leaves the watched queues (a task, a thread, a
/// run loop) must hold an activity while it works, or simulated time may pass it by. With a real clock, activities cost nothing.
public protocol RadioClock: AnyObject, Sendable {
  /// Time since an arbitrary start, monotonic.
  var now: Duration { get }

  /// Runs `work` once, `delay` from now. `work` runs on a thread of the clock: it must hop to its own queue.
  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> ScheduledWork

  /// Keeps simulated time from advancing until the matching ``endActivity()``.
  func beginActivity()

  /// Ends what ``beginActivity()`` began.
  func endActivity()

  /// Lets simulated time wait until blocks on `queue` have run; balanced by ``unwatch(_:)``.
  func watch(_ queue: DispatchQueue)

  /// Ends what ``watch(_:)`` began.
  func unwatch(_ queue: DispatchQueue)
}

extension RadioClock {
  /// Runs `block` on `queue` and keeps simulated time standing until it has returned.
  public func async(on queue: DispatchQueue, _ block: @escaping @Sendable () -> Void) {
    beginActivity()
    queue.async {
      block()
      self.endActivity()
    }
  }
}

/// A timer that has not fired; cancelling is idempotent and does not wait for a running block.
public final class ScheduledWork: Sendable {
  private let onCancel: @Sendable () -> Void

  /// Makes a handle whose ``cancel()`` calls `onCancel`.
  public init(onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

  /// Prevents the work from being started, if it was not yet.
  public func cancel() { onCancel() }
}
