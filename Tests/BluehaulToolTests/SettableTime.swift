import Locking

/// A clock that stands still until it is moved.
final class SettableTime: Sendable {
  private let time = PosixMutex(Duration.zero)

  var now: Duration { time.withLock { $0 } }

  func advance(by duration: Duration) { time.withLock { $0 += duration } }
}
