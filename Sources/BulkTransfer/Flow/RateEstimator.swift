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
  private var runningSince: Duration?
  /// Oldest first; at most one more than ``resolution`` within the window.
  private var samples: [Sample] = []
  private static let resolution = 32

  /// Makes an estimator that stands still.
  public init(window: Duration = .seconds(3)) { self.window = window }

  public var isRunning: Bool { runningSince != nil }

  /// Starts the clock; no effect while it runs.
  public mutating func start(now: Duration) {
    guard runningSince == nil else { return }
    runningSince = now
    if samples.isEmpty { samples = [Sample(time: elapsed, total: total)] }
  }

  /// Stops the clock; no effect while it stands.
  public mutating func stop(now: Duration) {
    guard let since = runningSince else { return }
    elapsed += max(.zero, now - since)
    runningSince = nil
  }

  /// Time during which the estimator ran.
  public func transferTime(now: Duration) -> Duration {
    elapsed + (runningSince.map { max(.zero, now - $0) } ?? .zero)
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
