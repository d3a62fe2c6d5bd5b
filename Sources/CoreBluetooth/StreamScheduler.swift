internal import Dispatch
internal import Foundation
internal import Radio
internal import Synchronization

/// Brings a stream's events to where the program wants them: run loops, or a dispatch queue.
///
/// While a wake-up is on its way and until its handler has returned, it holds an activity of the clock, so that simulated time stands still.
/// ``wake()`` may be called from any thread, with locks of the radio held.
final class StreamScheduler: Sendable {
  /// A run loop with the modes in which events are wanted.
  ///
  /// Sendable: only `add(_:forMode:)` is called from other threads, which Core Foundation guards.
  private struct Loop: @unchecked Sendable {
    var runLoop: RunLoop
    var modes: [RunLoop.Mode]
  }

  private struct State: Sendable {
    var loops: [Loop] = []
    var queue: DispatchQueue?
    /// Numbers wake-ups; one that was overtaken by a change of schedule does nothing.
    var generation: UInt64 = 0
    /// A wake-up is on its way, and an activity held for it.
    var isPending = false
    /// Something happened while nothing was scheduled.
    var isWanted = false
    var handler: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())
  private let clock: any RadioClock

  init(clock: any RadioClock) { self.clock = clock }

  deinit { if state.withLock({ $0.isPending }) { clock.endActivity() } }

  /// Sets what runs at each wake-up; once, before anything else.
  func setHandler(_ handler: @escaping @Sendable () -> Void) { state.withLock { $0.handler = handler } }

  /// Runs the handler where the stream is scheduled; once for all calls until it starts.
  func wake() {
    state.withLock { state in
      guard !state.isPending else { return }
      send(&state)
    }
  }

  func add(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
    let loop = Loop(runLoop: runLoop, modes: [mode])
    reschedule { state in
      if let i = state.loops.firstIndex(where: { $0.runLoop === loop.runLoop }) {
        if !state.loops[i].modes.contains(mode) { state.loops[i].modes.append(mode) }
      } else {
        state.loops.append(loop)
      }
    }
  }

  func remove(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
    let loop = Loop(runLoop: runLoop, modes: [mode])
    reschedule { state in
      guard let i = state.loops.firstIndex(where: { $0.runLoop === loop.runLoop }) else { return }
      state.loops[i].modes.removeAll { $0 == mode }
      if state.loops[i].modes.isEmpty { state.loops.remove(at: i) }
    }
  }

  func setQueue(_ queue: DispatchQueue?) { reschedule { $0.queue = queue } }

  /// Ends all delivery.
  func stop() {
    let endsActivity = state.withLock { state in
      defer { state = State(generation: state.generation &+ 1) }
      return state.isPending
    }
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

  /// Sends a wake-up; with the lock held, which Dispatch and the run loop do not mind.
  private func send(_ state: inout State) {
    guard state.queue != nil || !state.loops.isEmpty else {
      state.isWanted = true
      return
    }
    state.isWanted = false
    state.isPending = true
    state.generation &+= 1
    clock.beginActivity()
    let generation = state.generation
    if let queue = state.queue {
      queue.async { [weak self] in self?.fire(generation) }
      return
    }
    for loop in state.loops {
      let timer = Timer(fire: Date(), interval: 0, repeats: false) { [weak self] _ in self?.fire(generation) }
      for mode in loop.modes { loop.runLoop.add(timer, forMode: mode) }
    }
  }

  private func fire(_ generation: UInt64) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.isPending, state.generation == generation else { return nil }
      state.isPending = false
      return state.handler ?? {}
    }
    guard let handler else { return }
    handler()
    clock.endActivity()
  }
}
