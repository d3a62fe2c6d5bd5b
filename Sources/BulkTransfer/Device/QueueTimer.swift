internal import Dispatch

/// One timer of an object that lives on a queue: it fires there, and at most once for each time it is set.
///
/// Setting a later time than the one that is armed costs nothing: the timer fires early then, and its owner, who must bear that,
/// sets it anew.
// Sendable: everything is touched on the queue only.
final class QueueTimer: @unchecked Sendable {
  private let clock: any TransferClock
  private let queue: DispatchQueue
  private let action: @Sendable () -> Void
  private var armed: (at: Duration, timer: TransferTimer, number: UInt64)?
  private var count: UInt64 = 0

  /// Makes a timer whose `action` runs on `queue`.
  init(clock: any TransferClock, queue: DispatchQueue, action: @escaping @Sendable () -> Void) {
    self.clock = clock
    self.queue = queue
    self.action = action
  }

  deinit { armed?.timer.cancel() }

  /// Arms the timer for `instant` or earlier; nil disarms it.
  func set(to instant: Duration?) {
    guard let instant else { return cancel() }
    if let armed, armed.at <= instant { return }
    armed?.timer.cancel()
    count += 1
    let number = count
    let delay = max(instant - clock.now, .zero)
    let timer = clock.schedule(after: delay) { [weak self, clock, queue] in
      clock.async(on: queue) { [weak self] in self?.fire(number) }
    }
    armed = (instant, timer, number)
  }

  /// Disarms the timer.
  func cancel() {
    armed?.timer.cancel()
    armed = nil
  }

  private func fire(_ number: UInt64) {
    guard armed?.number == number else { return }
    armed = nil
    action()
  }
}
