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
    /// Numbers wake-ups by queue; one that was overtaken by a change of schedule does nothing.
    var generation: UInt64 = 0
    /// A wake-up is on its way, and an activity held for it.
    var isPending = false
    /// Something happened while nothing was scheduled.
    var isWanted = false
    var handler: (@Sendable () -> Void)?
  }

  private let state = PosixMutex(State())
  private let clock: any RadioClock

  init(clock: any RadioClock) { self.clock = clock }

  deinit { if state.withLock({ $0.isPending }) { clock.endActivity() } }

  /// Sets what runs at each wake-up; once, before anything else.
  func setHandler(_ handler: @escaping @Sendable () -> Void) { state.withLock { $0.handler = handler } }

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
      defer { state = State(generation: state.generation &+ 1) }
      return (state.source, state.isPending)
    }
    source?.removeAll()
    if endsActivity { clock.endActivity() }
  }

  /// Changes the schedule; a wake-up on its way is sent again along the new one.
  private func reschedule(_ change: (inout State) -> Void) {
    let endsActivity = state.withLock { state in
      let wasPending = state.isPending
      change(&state)
      state.generation &+= 1
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
    state.generation &+= 1
    clock.beginActivity()
    if let queue = state.queue {
      queue.async { [weak self, generation = state.generation] in self?.fire(generation) }
    } else {
      source?.signal()
    }
  }

  /// Runs the handler for the wake-up of that number; nil: for one by run loop.
  private func fire(_ generation: UInt64?) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      let isCurrent = generation.map { $0 == state.generation } ?? (state.queue == nil)
      guard state.isPending, isCurrent else { return nil }
      state.isPending = false
      return state.handler ?? {}
    }
    guard let handler else { return }
    handler()
    clock.endActivity()
  }
}
