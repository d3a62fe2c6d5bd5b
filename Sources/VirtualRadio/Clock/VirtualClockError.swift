/// Why simulated time could not be driven: always a mistake of the program that drives it.
public struct VirtualClockError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of mistake.
  public enum Code: Hashable, Sendable {
    /// The clock is not a lock-step clock.
    case notLockStep
    /// Another thread drives the clock already.
    case alreadyDriven
    /// Called on a queue that the clock would have to wait for.
    case calledOnWatchedQueue
    /// An activity was held for too long in real time.
    case noRest
    /// Too many events without an end.
    case livelock
  }

  /// The kind.
  public var code: Code
  /// What happened and what to do.
  public var message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { message }
}
