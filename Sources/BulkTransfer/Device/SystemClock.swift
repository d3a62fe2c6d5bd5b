internal import Dispatch

/// The machine's monotonic time; activities mean nothing to it.
public final class SystemClock: TransferClock {
  private let start = ContinuousClock.now
  private let queue = DispatchQueue(label: "BulkTransfer.SystemClock")

  public init() {}

  public var now: Duration { start.duration(to: .now) }

  public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> TransferTimer {
    let item = DispatchWorkItem(block: work)
    let seconds =
      Double(delay.components.seconds) + Double(delay.components.attoseconds) / 1_000_000_000_000_000_000
    queue.asyncAfter(deadline: .now() + max(seconds, 0), execute: item)
    // Cancelling a work item is safe from any thread; the type is only not marked so.
    nonisolated(unsafe) let cancellable = item
    return TransferTimer { unsafe cancellable.cancel() }
  }

  public func beginActivity() {}
  public func endActivity() {}
}

extension TransferClock {
  /// Runs `block` on `queue` and keeps simulated time standing until it has returned.
  func async(on queue: DispatchQueue, _ block: @escaping @Sendable () -> Void) {
    beginActivity()
    queue.async {
      block()
      self.endActivity()
    }
  }
}
