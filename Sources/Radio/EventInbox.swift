public import Dispatch
internal import Locking

/// Carries events from a radio to a dispatch queue: in order, without waiting, one hop for all that wait.
///
/// What is posted while they are handled waits for the next hop: so other work of the queue has its turn however fast events come.
///
/// It takes all that it is given: who passes on what a peer can cause without end admits it first, as a manager does with what its
/// program has not handled yet.
///
/// Made to be a radio's event sink: ``post(_:)`` may be called with any lock held. While events wait or their handler runs, the
/// inbox holds an activity of the clock, so that simulated time stands still.
public final class EventInbox<Event: Sendable>: Sendable {
  private struct State {
    var waiting: [Event] = []
    var isDraining = false
    var isClosed = false
  }

  private let state = PosixMutex(State())
  private let queue: DispatchQueue
  private let clock: any RadioClock
  private let handler: @Sendable (Event) -> Void

  /// Makes an inbox whose `handler` runs on `queue`.
  ///
  /// Handlers never overlap, also when `queue` is concurrent.
  public init(queue: DispatchQueue, clock: any RadioClock, handler: @escaping @Sendable (Event) -> Void) {
    self.queue = queue
    self.clock = clock
    self.handler = handler
  }

  /// Appends an event; its handler runs later on the queue.
  public func post(_ event: Event) {
    let mustStart = state.withLock { state in
      guard !state.isClosed else { return false }
      state.waiting.append(event)
      defer { state.isDraining = true }
      return !state.isDraining
    }
    if mustStart {
      clock.beginActivity()
      queue.async { self.drain() }
    }
  }

  /// Drops what waits and everything posted from now on.
  public func close() {
    // What the events hold (a channel, say) is let go of outside the lock: its end may call a radio that is posting here.
    _ = state.withLock { state in
      state.isClosed = true
      defer { state.waiting = [] }
      return state.waiting
    }
  }

  /// Handles what waits now. The activity is held from the first hop to the last.
  private func drain() {
    let events = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for event in events where !state.withLock({ $0.isClosed }) { handler(event) }
    let isOver = state.withLock { state in
      state.isDraining = !state.waiting.isEmpty
      return !state.isDraining
    }
    if isOver { clock.endActivity() } else { queue.async { self.drain() } }
  }
}
