/// Round trips as measured: a smoothed one, and the shortest of the last seconds.
///
/// The shortest one is kept over two periods, so that a link whose connection interval grows does not look congested for ever.
public struct RoundTripEstimator: Hashable, Sendable {
  /// Moving average with a weight of one eighth for the newest (RFC 6298, section 2).
  public private(set) var smoothed: Duration?
  /// The newest sample.
  private var latest: Duration?
  private var shortestNow: Duration?
  private var shortestBefore: Duration?
  private var periodStart: Duration = .zero
  private let period: Duration

  /// Makes an estimator that forgets the shortest round trip after one to two periods.
  public init(period: Duration = .seconds(10)) { self.period = period }

  /// The shortest round trip of this period and the one before.
  public var shortest: Duration? {
    switch (shortestNow, shortestBefore) {
    case (let now?, let before?): min(now, before)
    case (let one, nil): one
    case (nil, let one): one
    }
  }

  /// Notes a round trip that ended at `now`.
  public mutating func add(_ sample: Duration, now: Duration) {
    guard sample >= .zero else { return }
    latest = sample
    smoothed = smoothed.map { ($0 * 7 + sample) / 8 } ?? sample
    if now - periodStart >= period {
      shortestBefore = now - periodStart >= period * 2 ? nil : shortestNow
      shortestNow = nil
      periodStart = now
    }
    shortestNow = min(shortestNow ?? sample, sample)
  }

  /// Whether the newest round trip is so long that something queues on the way: twice the shortest and a margin for the rhythm of
  /// connection events.
  public var isQueueing: Bool {
    guard let shortest, let latest else { return false }
    return latest > shortest * 2 + .milliseconds(50)
  }

  /// How long to wait for a sign of life before asking: four round trips, at least `floor`.
  public func patience(atLeast floor: Duration) -> Duration {
    max(floor, (smoothed ?? .zero) * 4)
  }
}
