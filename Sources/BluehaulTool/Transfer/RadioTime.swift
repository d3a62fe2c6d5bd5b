public import BulkTransfer
public import Radio

/// The engine's clock on a radio's: timers and rates of a transfer run in the time of its link.
public final class RadioTime: TransferClock {
  private let clock: any RadioClock

  /// Makes a clock that tells the radio's time.
  public init(_ clock: any RadioClock) { self.clock = clock }

  public var now: Duration { clock.now }

  public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> TransferTimer {
    let scheduled = clock.schedule(after: delay, work)
    return TransferTimer { scheduled.cancel() }
  }

  public func beginActivity() { clock.beginActivity() }

  public func endActivity() { clock.endActivity() }
}
