/// How many octets a sender lets be in flight: a window that grows while receipts come in and is halved at a loss.
///
/// It doubles per round trip at first (slow start), later it grows by one step per window. It does not grow while it is not used, nor
/// while round trips say that a queue has formed between sender and receiver: more in flight would only make that queue longer.
public struct SendWindow: Hashable, Sendable {
  /// What holds the sender back.
  public enum Bound: Hashable, Sendable {
    /// The window: receipts of what is in flight will open it.
    case window
    /// The receiver's right edge.
    case rightEdge
  }

  /// Octets that may be in flight.
  public private(set) var size: Int
  public let minimum: Int
  public let maximum: Int
  /// Growth per window of confirmed octets after slow start.
  public let step: Int
  public private(set) var isInSlowStart = true
  private var confirmedSinceStep = 0

  /// Makes a window. `minimum` wins where the values contradict each other.
  public init(initial: Int, minimum: Int, maximum: Int, step: Int) {
    self.minimum = max(minimum, 1)
    self.maximum = max(maximum, self.minimum)
    self.step = max(step, 1)
    size = min(max(initial, self.minimum), self.maximum)
  }

  /// Octets that may be sent now, and what bounds them.
  public func allowance(sent: UInt64, received: UInt64, rightEdge: UInt64) -> (octets: Int, bound: Bound) {
    let windowEdge = received + UInt64(size)
    let edge = min(windowEdge, rightEdge)
    let octets = edge > sent ? Int(clamping: edge - sent) : 0
    return (octets, windowEdge < rightEdge ? .window : .rightEdge)
  }

  /// Notes that the receiver has confirmed `octets` more.
  ///
  /// - Parameters:
  ///   - wasUsed: whether the window held the sender back.
  ///   - isQueueing: whether round trips show that a queue has formed.
  public mutating func confirmed(_ octets: Int, wasUsed: Bool, isQueueing: Bool) {
    if isQueueing { isInSlowStart = false }
    guard wasUsed, !isQueueing, octets > 0 else { return }
    if isInSlowStart {
      size = min(maximum, size + min(octets, size))
      return
    }
    confirmedSinceStep += octets
    if confirmedSinceStep >= size {
      confirmedSinceStep = 0
      size = min(maximum, size + step)
    }
  }

  /// Notes a loss.
  public mutating func lost() {
    isInSlowStart = false
    confirmedSinceStep = 0
    size = max(minimum, size / 2)
  }
}
