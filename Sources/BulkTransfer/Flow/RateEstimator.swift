/// Octets per second, over a window of the recent past and over the whole transfer time.
///
/// Time counts only while the estimator runs: setup, pauses, erasing and the offset at which a transfer resumes are no part of it.
public struct RateEstimator: Hashable, Sendable {
  private struct Sample: Hashable, Sendable {
    /// On the clock that stands still while the estimator does not run.
    var time: Duration
    var total: UInt64
  }

  /// Octets counted.
  public private(set) var total: UInt64 = 0
  private let window: Duration
  private var elapsed: Duration = .zero
  /// Since when the clock runs, and when it stops or has stopped.
  private var since: Duration?
  private var until: Duration?
  /// Oldest first; at most one more than ``resolution`` within the window.
  private var samples: [Sample] = []
  private static let resolution = 32

  /// Makes an estimator that stands still.
  public init(window: Duration = .seconds(3)) { self.window = window }

  /// Whether the clock runs and is not about to stop.
  public var isRunning: Bool { since != nil && until == nil }

  /// Starts the clock; no effect while it runs.
  public mutating func start(now: Duration) {
    guard !isRunning else { return }
    elapsed = transferTime(now: now)
    since = now
    until = nil
    if samples.isEmpty { samples = [Sample(time: elapsed, total: total)] }
  }

  /// Stops the clock at a time, which may lie ahead: what is in flight at a pause still takes its time. No effect while it stands.
  public mutating func stop(at time: Duration) {
    guard since != nil else { return }
    until = min(until ?? time, time)
  }

  /// Time during which the estimator ran.
  public func transferTime(now: Duration) -> Duration {
    guard let since else { return elapsed }
    return elapsed + max(.zero, min(now, until ?? now) - since)
  }

  /// Counts octets that were confirmed at `now`.
  public mutating func add(_ octets: UInt64, now: Duration) {
    guard octets > 0 else { return }
    total += octets
    let time = transferTime(now: now)
    let grain = window / Self.resolution
    if samples.count > 1, time - samples[samples.count - 2].time < grain {
      samples[samples.count - 1] = Sample(time: time, total: total)
    } else {
      samples.append(Sample(time: time, total: total))
    }
    // One sample at or before the window's start stays, so that the window is covered.
    while samples.count > 2, time - samples[1].time >= window { samples.removeFirst() }
  }

  /// Octets per second over the window; nil before anything could be measured.
  public func windowRate(now: Duration) -> Double? {
    guard let first = samples.first else { return nil }
    return Self.rate(total - first.total, transferTime(now: now) - first.time)
  }

  /// Octets per second over the whole transfer time; nil before anything could be measured.
  public func averageRate(now: Duration) -> Double? {
    Self.rate(total, transferTime(now: now))
  }

  private static func rate(_ octets: UInt64, _ time: Duration) -> Double? {
    let seconds = time / .seconds(1)
    guard octets > 0, seconds > 0 else { return nil }
    return Double(octets) / seconds
  }
}
