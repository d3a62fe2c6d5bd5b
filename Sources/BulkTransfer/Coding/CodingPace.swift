/// Lowers the level of an encoder whose work would hold up the link, and raises it again.
///
/// A segment is coded while the octets of the one before it are on their way or wait at the carrier. So what matters is how long coding
/// takes, held against the time in which the carrier takes what was coded: where it is more than a quarter of that, a faster level costs
/// less than the octets that it saves less. Times are those of the transfer's clock: in simulated time, which stands still meanwhile, coding
/// takes none and the level is the best, on a machine of any speed.
struct CodingPace: Sendable {
  /// Coding that is judged at the earliest.
  private static let leastCoding = Duration.milliseconds(250)
  /// Sending after which a better level is tried.
  private static let leastSending = Duration.seconds(4)

  /// Steps below the best level.
  private(set) var reduction = 0
  private var coding: Duration = .zero
  private var sending: Duration = .zero
  /// How long the last segment took, and when that was over.
  private var last: (took: Duration, at: Duration)?

  /// Notes that a segment was coded, by an encoder that has `steps` levels below the best.
  mutating func coded(from start: Duration, to end: Duration, steps: Int) {
    if let last {
      coding += last.took
      sending += max(start - last.at, .zero)
      judge(steps)
    }
    last = (max(end - start, .zero), end)
  }

  /// Forgets when the last segment was coded: what follows is another object or link.
  mutating func interrupted() { last = nil }

  private mutating func judge(_ steps: Int) {
    if coding >= Self.leastCoding, coding * 4 > sending {
      reduction = min(reduction + 1, steps)
    } else if sending >= Self.leastSending {
      if coding * 32 < sending { reduction = max(reduction - 1, 0) }
    } else {
      return
    }
    (coding, sending) = (.zero, .zero)
  }
}
