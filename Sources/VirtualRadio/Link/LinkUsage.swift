/// What one direction of a link did with its time, and what it has carried; sums over all links between two radios.
///
/// The three times are the whole time: what is in none of them has not passed yet.
public struct LinkUsage: Hashable, Sendable {
  /// Connection events that carried data of this direction, from their first packet to their last, pauses and answers included.
  public var air: Duration = .zero
  /// Data waited for the next event: the one before had no more room for it, or it came to a link at rest.
  public var interval: Duration = .zero
  /// Nothing was queued: the link was at rest, or an event ran dry, and the rest of its interval with it.
  public var empty: Duration = .zero
  /// Packets with data on the air, repetitions included.
  public var packets = 0
  /// Those of them that had been on the air before.
  public var repetitions = 0
  /// Link layer payload of ``packets``, in octets.
  public var octets = 0

  /// No time and nothing carried.
  public init() {}

  /// The sum of two links' or of two times'.
  public static func + (left: Self, right: Self) -> Self { left.combined(with: right, +, +) }

  /// What has come since an earlier sum.
  public static func - (left: Self, right: Self) -> Self { left.combined(with: right, -, -) }

  private func combined(
    with other: Self, _ times: (Duration, Duration) -> Duration, _ counts: (Int, Int) -> Int
  ) -> Self {
    var result = Self()
    result.air = times(air, other.air)
    result.interval = times(interval, other.interval)
    result.empty = times(empty, other.empty)
    result.packets = counts(packets, other.packets)
    result.repetitions = counts(repetitions, other.repetitions)
    result.octets = counts(octets, other.octets)
    return result
  }
}

/// Accounts for one direction of a link. Instants are in nanoseconds and never go back.
struct UsageMeter: Sendable {
  private enum Phase: Equatable {
    case empty, waiting, onAir
    /// An event had nothing more to carry; what is queued before the next one begins comes too late for it.
    case dry(nextEvent: Int64)
  }

  private var usage = LinkUsage()
  private var phase = Phase.empty
  private var accounted: Int64

  /// Starts with nothing queued.
  init(now: Int64) { accounted = now }

  /// Data was queued.
  mutating func queued(now: Int64) {
    switch phase {
    case .empty: enter(.waiting, at: now)
    case .dry(let nextEvent) where now >= nextEvent: enter(.waiting, at: now)
    case .dry, .waiting, .onAir: break
    }
  }

  /// An event begins; `carriesData`: of this direction.
  mutating func eventBegan(at anchor: Int64, carriesData: Bool) {
    enter(carriesData ? .onAir : .empty, at: anchor)
  }

  /// The event is over; `hasMore`: data waits for the next one, which begins at `nextEvent`.
  mutating func eventEnded(at instant: Int64, hasMore: Bool, nextEvent: Int64) {
    enter(hasMore ? .waiting : phase == .onAir ? .dry(nextEvent: nextEvent) : .empty, at: instant)
  }

  /// A packet with data is on the air.
  mutating func sent(octets: Int, isRepetition: Bool) {
    usage.packets += 1
    usage.octets += octets
    if isRepetition { usage.repetitions += 1 }
  }

  /// The sums at an instant.
  func usage(at now: Int64) -> LinkUsage {
    var meter = self
    meter.enter(phase, at: now)
    return meter.usage
  }

  private mutating func enter(_ next: Phase, at now: Int64) {
    let passed = Duration.nanoseconds(max(0, now - accounted))
    switch phase {
    case .empty, .dry: usage.empty += passed
    case .waiting: usage.interval += passed
    case .onAir: usage.air += passed
    }
    accounted = max(accounted, now)
    phase = next
  }
}
