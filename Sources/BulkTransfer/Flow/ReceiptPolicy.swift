/// Decides when a receiver sends a receipt.
///
/// A receipt is due when the agreed number of octets has arrived since the last one, when some octets have arrived and the last receipt is
/// old, and when the right edge has moved so far that the sender may have been waiting for it.
public struct ReceiptPolicy: Hashable, Sendable {
  /// Octets after which a receipt is due.
  public let interval: UInt64
  /// Movement of the right edge after which a receipt is due.
  public let edgeStep: UInt64
  /// Age of the last receipt from which on any progress makes one due.
  public let age: Duration
  private var reported: (received: UInt64, edge: UInt64, at: Duration) = (0, 0, .zero)

  /// Makes a policy.
  ///
  /// - Parameters:
  ///   - interval: octets, as offered by the sender.
  ///   - buffer: octets that the receiver can hold.
  ///   - age: time after which a slow link still gets its receipt.
  public init(interval: Int, buffer: Int, age: Duration) {
    self.interval = UInt64(max(interval, 1))
    edgeStep = UInt64(max(min(buffer / 2, 4 * interval), 1))
    self.age = age
  }

  /// Notes what the sender was told last.
  public mutating func sent(received: UInt64, edge: UInt64, now: Duration) {
    reported = (received, edge, now)
  }

  /// Whether a receipt is due.
  ///
  /// Where the buffer is full and about to be emptied the receipt waits for that: it could not make the sender send, and so one does
  /// for two.
  public func isDue(received: UInt64, edge: UInt64, isDraining: Bool, now: Duration) -> Bool {
    let room = edge > received ? edge - received : 0
    if isDraining, room < RightEdge.unit { return false }
    if received >= reported.received + interval { return true }
    // The sender stands at the edge that it knows, and that edge has moved.
    if edge > reported.edge, received + RightEdge.unit > reported.edge { return true }
    if edge >= reported.edge + edgeStep { return true }
    return received > reported.received && now - reported.at >= age
  }

  public static func == (left: Self, right: Self) -> Bool {
    left.interval == right.interval && left.edgeStep == right.edgeStep && left.age == right.age
      && left.reported == right.reported
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(interval)
    hasher.combine(edgeStep)
    hasher.combine(age)
    hasher.combine(reported.received)
    hasher.combine(reported.edge)
    hasher.combine(reported.at)
  }
}
