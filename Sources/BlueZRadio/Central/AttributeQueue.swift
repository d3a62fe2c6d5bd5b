internal import Radio

/// Operations on the attributes of one peer: one at a time, first in, first out (Core Vol 3 Part F 3.3.2), and again where the daemon is busy with
/// the same attribute for somebody else.
struct AttributeQueue<Operation: Sendable>: Sendable {
  private static var firstPause: Duration { .milliseconds(5) }
  private static var longestPause: Duration { .milliseconds(500) }

  private var waiting: [Operation] = []
  private(set) var running: Operation?
  private var since: Duration = .zero
  private var attempts = 0

  mutating func append(_ operation: Operation) { waiting.append(operation) }

  /// The next operation to begin, if none runs.
  mutating func next(now: Duration) -> Operation? {
    guard running == nil, !waiting.isEmpty else { return nil }
    let operation = waiting.removeFirst()
    running = operation
    since = now
    attempts = 0
    return operation
  }

  /// The running operation is over.
  mutating func finish() { running = nil }

  /// The daemon is busy: how long to wait before another attempt, or nil where the operation has waited for longer than `limit`.
  mutating func pause(now: Duration, limit: Duration) -> Duration? {
    guard now - since < limit else { return nil }
    attempts += 1
    return min(Self.firstPause * (1 << min(attempts - 1, 8)), Self.longestPause)
  }

  /// Whether an operation of a kind runs or waits.
  func contains(where test: (Operation) -> Bool) -> Bool {
    running.map(test) == true || waiting.contains(where: test)
  }

  /// Drops what waits of somebody who has left, and returns it; what runs goes on.
  @discardableResult
  mutating func remove(where test: (Operation) -> Bool) -> [Operation] {
    defer { waiting.removeAll(where: test) }
    return waiting.filter(test)
  }
}
