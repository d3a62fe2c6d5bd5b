public import Dispatch
internal import Synchronization

/// Real time, for a radio that simulates nothing: activities and watched queues mean nothing to it.
public final class WallClock: RadioClock {
  private let start = ContinuousClock.now

  /// Starts at zero.
  public init() {}

  public var now: Duration { ContinuousClock.now - start }

  public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> ScheduledWork {
    let isCancelled = Flag()
    DispatchQueue.global().asyncAfter(deadline: .now() + delay / .seconds(1)) {
      if !isCancelled.value.load(ordering: .acquiring) { work() }
    }
    return ScheduledWork { isCancelled.value.store(true, ordering: .releasing) }
  }

  private final class Flag: Sendable {
    let value = Atomic<Bool>(false)
  }

  public func beginActivity() {}
  public func endActivity() {}
  public func watch(_ queue: DispatchQueue) {}
  public func unwatch(_ queue: DispatchQueue) {}
}
