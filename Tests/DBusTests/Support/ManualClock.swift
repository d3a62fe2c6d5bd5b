import DBus
import Locking

/// Time that stands still until a test moves it.
final class ManualClock: DBusClock {
  private struct State {
    var now = Duration.zero
    var next = 0
    var timers: [Int: (due: Duration, work: @Sendable () -> Void)] = [:]
  }

  private let state = PosixMutex(State())
  private let scheduled = Inbox<Void>()

  var now: Duration { state.withLock { $0.now } }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> DBusTimer {
    let id = state.withLock { state in
      state.next += 1
      state.timers[state.next] = (state.now + delay, work)
      return state.next
    }
    scheduled.put(())
    return DBusTimer { [weak self] in
      self?.state.withLock { state in state.timers[id] = nil }
    }
  }

  /// Waits until a timer was made, or one more than was waited for before.
  func waitForTimer() async { _ = try? await scheduled.next() }

  func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now += duration
      let now = state.now
      let due = state.timers.filter { $0.value.due <= now }.sorted { $0.key < $1.key }
      for (id, _) in due { state.timers[id] = nil }
      return due.map(\.value.work)
    }
    for work in due { work() }
  }
}
