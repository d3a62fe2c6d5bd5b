import Dispatch
import Locking
import Radio

/// A clock that counts what is asked of it.
final class FakeClock: RadioClock {
  struct Counts: Equatable, Sendable {
    var activities = 0
    var activitiesBegun = 0
    var watches = 0
  }

  private let state = PosixMutex((counts: Counts(), now: Duration.seconds(100)))

  var counts: Counts { state.withLock { $0.counts } }

  var now: Duration {
    get { state.withLock { $0.now } }
    set { state.withLock { $0.now = newValue } }
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> ScheduledWork {
    ScheduledWork {}
  }

  func beginActivity() {
    state.withLock {
      $0.counts.activities += 1
      $0.counts.activitiesBegun += 1
    }
  }

  func endActivity() { state.withLock { $0.counts.activities -= 1 } }
  func watch(_ queue: DispatchQueue) { state.withLock { $0.counts.watches += 1 } }
  func unwatch(_ queue: DispatchQueue) { state.withLock { $0.counts.watches -= 1 } }
}
