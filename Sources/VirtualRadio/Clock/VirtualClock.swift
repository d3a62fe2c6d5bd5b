public import Dispatch
public import Radio

/// The time of a simulated link and of the programs at its ends.
///
/// - ``Mode/realTime``: air and timers follow the machine's monotonic clock.
/// - ``Mode/unpaced``: timers follow the machine's clock, the air does not wait: its events run one after the other as soon as there are
///   any, in order of air time. ``airNow`` is the air's own time line.
/// - ``Mode/lockStep``: air and timers share one simulated time line that stands still until everything has come to rest.
///
/// ## Rest, in lock-step
/// Before each step the clock waits until no activity is held (``beginActivity()``), then runs a barrier through every watched queue
/// (``watch(_:)``), and does both again. Only if no activity began between the first wait and the end of the second round does time move
/// on. So a block that a watched queue runs is waited for, also if it puts a block on another watched queue, once. Longer chains
/// from queue to queue, tasks, threads and run loops must hold an activity; `RadioClock.async(on:_:)` and `EventInbox` do.
/// Work that must not be passed by is never to block on simulated time, nor the main thread if the main queue is watched. One instant's events happen in the order in which they were
/// scheduled; blocks on different queues run in parallel, so a run is the same on every machine if they do not race with each other.
///
/// ## Driving lock-step time
/// Either step by step from a thread that is on no watched queue (``run(until:within:)``, ``run(for:)``), or by a thread of the clock between
/// ``start(onFailure:)`` and ``stop()``. In the other modes the clock has a thread of its own from the first timer on.
public final class VirtualClock: RadioClock {
  /// How time passes.
  public enum Mode: Hashable, Sendable, CaseIterable {
    case realTime
    case unpaced
    case lockStep
  }

  /// How time passes here.
  public let mode: Mode

  let core: ClockCore

  /// Makes a clock that starts at zero.
  public init(_ mode: Mode) {
    self.mode = mode
    core = ClockCore(mode: mode)
  }

  deinit { core.shutDown() }

  /// Time of timers and programs since the clock was made.
  public var now: Duration { .nanoseconds(core.now) }

  /// Time of the air: the same as ``now``, but for unpaced clocks, where it is the instant of the latest air event.
  public var airNow: Duration { .nanoseconds(core.airNow) }

  public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> ScheduledWork {
    let token = core.schedule(after: max(delay.inNanosecondsRoundedUp, 0), work)
    return ScheduledWork { [weak core] in core?.cancel(token) }
  }

  /// Makes a timer on the air's time line.
  ///
  /// `handler` runs on a thread of the clock with no lock held, gets the time of the air, and says whether it may have woken
  /// anyone. It may run once more right after the timer was set anew by another thread, so it checks what is due.
  func makeAirTimer(_ handler: @escaping @Sendable (_ airNow: Duration) -> AirEffect) -> AirTimer {
    AirTimer(core: core, handler: handler)
  }

  public func beginActivity() { if mode == .lockStep { core.beginActivity() } }

  public func endActivity() { if mode == .lockStep { core.endActivity() } }

  public func watch(_ queue: DispatchQueue) { if mode == .lockStep { core.watch(queue) } }

  public func unwatch(_ queue: DispatchQueue) { if mode == .lockStep { core.unwatch(queue) } }
}

/// Whether an air event may have woken a program, so that lock-step time must wait for rest.
enum AirEffect: Hashable, Sendable {
  /// Nothing left the air: no event was posted, no timer of a program ran.
  case silent
  case audible
}

/// One event on the air's time line that can be set again and again; made for a link that knows when it must be looked at next.
///
/// In unpaced time a timer that always sets itself again never lets the clock's thread sleep: what recurs without anyone's doing, such as
/// advertising, belongs on `schedule(after:_:)`.
final class AirTimer: Sendable {
  private let core: ClockCore
  private let identity: UInt64
  private let handler: @Sendable (Duration) -> AirEffect

  fileprivate init(core: ClockCore, handler: @escaping @Sendable (Duration) -> AirEffect) {
    self.core = core
    self.handler = handler
    identity = core.makeIdentity()
  }

  deinit { core.disarm(identity) }

  /// Replaces the instant at which the handler runs; what has passed means at once, nil means never.
  func set(at instant: Duration?) {
    if let instant {
      core.arm(identity, at: instant.inNanosecondsRoundedUp, handler)
    } else {
      core.disarm(identity)
    }
  }
}
