internal import BulkTransfer
internal import Radio

/// The engine's clock on a radio's: timers and rates of a transfer run in the time of its link.
final class RadioTime: TransferClock {
  private let clock: any RadioClock

  init(_ clock: any RadioClock) { self.clock = clock }

  var now: Duration { clock.now }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> TransferTimer {
    let scheduled = clock.schedule(after: delay, work)
    return TransferTimer { scheduled.cancel() }
  }

  func beginActivity() { clock.beginActivity() }

  func endActivity() { clock.endActivity() }
}
