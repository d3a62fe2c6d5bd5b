internal import Dispatch
internal import Locking
internal import Foundation
internal import Radio

/// Brings a stream's events to where the program wants them: run loops, or a dispatch queue.
///
/// While a wake-up is on its way and until its handler has returned, it holds an activity of the clock, so that simulated time stands still.
/// ``wake()`` may be called from any thread, with locks of the radio held.
final class StreamScheduler: Sendable {
  private struct State: Sendable {
    var queue: DispatchQueue?
    var source: RunLoopSource?
    /// Counts changes of the schedule; a wake-up that was overtaken by one does nothing.
    var turn = Turn()
    /// A wake-up is on its way, and an activity held for it.
    var isPending = false
    /// Something happened while nothing was scheduled.
    var isWanted = false
    var handler: (@Sendable (Turn) -> Void)?
  }

  /// The time between two changes of the schedule.
  struct Turn: Equatable, Sendable {
    private var number: UInt64 = 0

    mutating func end() { number &+= 1 }
  }

  private let state = PosixMutex(State())
  private let clock: any RadioClock

  init(clock: any RadioClock) { self.clock = clock }

  deinit { if state.withLock({ $0.isPending }) { clock.endActivity() } }

  /// Sets what runs at each wake-up; once, before anything else.
  func setHandler(_ handler: @escaping @Sendable (Turn) -> Void) { state.withLock { $0.handler = handler } }

  /// Whether events may still be told by a handler that was run in that turn.
  func isCurrent(_ turn: Turn) -> Bool { state.withLock { $0.turn == turn } }

  /// Runs the handler where the stream is scheduled; once for all calls until it starts.
  func wake() {
    state.withLock { state in
      if !state.isPending { send(&state) }
    }
  }

  /// Wants events on a run loop.
  func add(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
    let source = state.withLock { state in
      let source = state.source ?? RunLoopSource { [weak self] in self?.fire(nil) }
      state.source = source
      return source
    }
    source.add(to: runLoop, mode)
    reschedule { _ in }
  }

  /// Wants no more events on a run loop.
  func remove(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
    state.withLock { $0.source }?.remove(from: runLoop, mode)
    reschedule { _ in }
  }

  /// Wants events on a queue instead; nil: on run loops.
  func setQueue(_ queue: DispatchQueue?) { reschedule { $0.queue = queue } }

  /// Ends all delivery.
  func stop() {
    let (source, endsActivity) = state.withLock { state in
      let (source, isPending) = (state.source, state.isPending)
      state.turn.end()
      state = State(turn: state.turn)
      return (source, isPending)
    }
    source?.removeAll()
    if endsActivity { clock.endActivity() }
  }

  /// Changes the schedule; a wake-up on its way is sent again along the new one.
  private func reschedule(_ change: (inout State) -> Void) {
    let endsActivity = state.withLock { state in
      let wasPending = state.isPending
      change(&state)
      state.turn.end()
      state.isPending = false
      if wasPending || state.isWanted { send(&state) }
      return wasPending
    }
    if endsActivity { clock.endActivity() }
  }

  /// Sends a wake-up; with the lock held, which Dispatch and run loops do not mind.
  private func send(_ state: inout State) {
    let source = state.source.flatMap { $0.isScheduled ? $0 : nil }
    guard state.queue != nil || source != nil else {
      state.isWanted = true
      return
    }
    state.isWanted = false
    state.isPending = true
    clock.beginActivity()
    if let queue = state.queue {
      queue.async { [weak self, turn = state.turn] in self?.fire(turn) }
    } else {
      source?.signal()
    }
  }

  /// Runs the handler for a wake-up that was sent to a queue in that turn; nil: for one by run loop.
  private func fire(_ sent: Turn?) {
    let (handler, turn) = state.withLock { state -> ((@Sendable (Turn) -> Void)?, Turn) in
      let isCurrent = sent.map { $0 == state.turn } ?? (state.queue == nil)
      guard state.isPending, isCurrent else { return (nil, state.turn) }
      state.isPending = false
      return (state.handler ?? { _ in }, state.turn)
    }
    guard let handler else { return }
    handler(turn)
    clock.endActivity()
  }
}
