/// The time in which a transfer runs: timers and rates, real or simulated in lock-step with a link.
///
/// Sans-I/O parts of the engine never see a clock: they are given `now` with each input. The shells around them use this one, so that a
/// test can run an hour of air in a second. While a shell does work that does not run on its Core Bluetooth queue, it holds an activity.
public protocol TransferClock: AnyObject, Sendable {
  /// Time since an arbitrary start, monotonic.
  var now: Duration { get }

  /// Runs `work` once, `delay` from now, on a thread of the clock; returns what cancels it.
  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> TransferTimer

  /// Keeps simulated time from advancing until the matching ``endActivity()``.
  func beginActivity()

  /// Ends what ``beginActivity()`` began.
  func endActivity()
}

/// A timer that has not fired; cancelling is idempotent and does not wait for a running block.
public final class TransferTimer: Sendable {
  private let onCancel: @Sendable () -> Void

  /// Makes a handle whose ``cancel()`` calls `onCancel`.
  public init(onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

  /// Prevents the work from being started, if it was not yet.
  public func cancel() { onCancel() }
}
