internal import Locking

/// What an operation tells while it runs, in order, for one listener; it ends with the operation.
///
/// A listener may be as slow as it likes: nothing that has come out is lost to it, errors included. Only what is no more than a stand, such
/// as progress, is replaced by a newer stand of the same thing. As long as nobody listens, the newest ``unheardLimit`` events are kept.
public struct EventFeed<Event: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Event
  public typealias Failure = Never

  /// Events that are kept while nobody listens.
  public static var unheardLimit: Int { 1024 }

  private let core: Core

  /// - Parameter standing: says of which thing an event tells the stand; nil where it tells what has happened.
  init(standing: @escaping @Sendable (Event) -> EventStanding?) { core = Core(standing) }

  /// Adds an event.
  func yield(_ event: Event) { core.yield(event) }

  /// Nothing more comes: a listener that has taken all is at the end.
  func finish() { core.finish() }

  /// Events that wait for somebody who listens; 0 where nobody does.
  var owed: Int { core.owed }

  public func makeAsyncIterator() -> Iterator { Iterator(core) }

  /// Takes one event after the other. Where its task is cancelled it takes what is there already, and is at its end then.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    private let listener: Listener

    fileprivate init(_ core: Core) { listener = Listener(core) }

    public mutating func next() async -> Event? { await listener.core.next() }

    public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? {
      await listener.core.next()
    }
  }

  /// Somebody listens for as long as it lives.
  fileprivate final class Listener: Sendable {
    let core: Core

    init(_ core: Core) {
      self.core = core
      core.listeners(changeBy: 1)
    }

    deinit { core.listeners(changeBy: -1) }
  }

  private struct State {
    var events: [Event] = []
    /// The events before this place were taken.
    var taken = 0
    var listeners = 0
    var isFinished = false
    var waiters: [(id: UInt64, continuation: CheckedContinuation<Event?, Never>)] = []
    var lastWaiter: UInt64 = 0

    var waiting: Int { events.count - taken }

    mutating func take() -> Event? {
      guard taken < events.count else { return nil }
      defer {
        taken += 1
        // What was taken is let go of, seldom enough that it costs nothing.
        if taken * 2 >= events.count {
          events.removeFirst(taken)
          taken = 0
        }
      }
      return events[taken]
    }

    /// Adds an event in the place of the older stand of the same thing, if nothing has happened since that.
    mutating func add(_ event: Event, _ standing: (Event) -> EventStanding?) {
      if let new = standing(event) {
        var place = events.count
        while place > taken, let old = standing(events[place - 1]) {
          place -= 1
          guard old == new else { continue }
          events.remove(at: place)
          break
        }
      }
      if listeners == 0, waiting >= EventFeed.unheardLimit { _ = take() }
      events.append(event)
    }
  }

  fileprivate final class Core: Sendable {
    private let standing: @Sendable (Event) -> EventStanding?
    private let state = PosixMutex(State())

    init(_ standing: @escaping @Sendable (Event) -> EventStanding?) { self.standing = standing }

    var owed: Int { state.withLock { $0.listeners == 0 ? 0 : $0.waiting } }

    func listeners(changeBy change: Int) { state.withLock { $0.listeners += change } }

    func yield(_ event: Event) {
      let waiter: CheckedContinuation<Event?, Never>? = state.withLock { state in
        guard !state.isFinished else { return nil }
        guard state.waiters.isEmpty else { return state.waiters.removeFirst().continuation }
        state.add(event, standing)
        return nil
      }
      waiter?.resume(returning: event)
    }

    func finish() {
      let waiters = state.withLock { state in
        state.isFinished = true
        defer { state.waiters = [] }
        return state.waiters.map(\.continuation)
      }
      for waiter in waiters { waiter.resume(returning: nil) }
    }

    func next() async -> Event? {
      let id = state.withLock { state in
        state.lastWaiter += 1
        return state.lastWaiter
      }
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let (event, isAnswered): (Event?, Bool) = state.withLock { state in
            if let event = state.take() { return (event, true) }
            // A task is marked before its handler runs: whichever comes second under this lock sees the other.
            if state.isFinished || Task.isCancelled { return (nil, true) }
            state.waiters.append((id, continuation))
            return (nil, false)
          }
          if isAnswered { continuation.resume(returning: event) }
        }
      } onCancel: {
        let waiter: CheckedContinuation<Event?, Never>? = state.withLock { state in
          state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).continuation }
        }
        waiter?.resume(returning: nil)
      }
    }
  }
}

/// Of what an event tells the stand.
enum EventStanding: Hashable, Sendable {
  /// How far one phase of an object has come.
  case progress(object: Int, ProgressState.Phase, StreamCoding)
  /// How much of the object under way has arrived.
  case received
  /// Where its stream had to begin again.
  case lost
}
