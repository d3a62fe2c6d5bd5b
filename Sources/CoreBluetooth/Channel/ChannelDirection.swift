internal import Dispatch
internal import Locking
internal import Foundation
internal import Radio

/// One direction of a channel as a Foundation stream has it: what both streams do alike.
///
/// A stream forwards to it and adds how bytes are read or written. May be used from any thread.
final class ChannelDirection: Sendable {
  private struct State: Sendable {
    var progress = StreamProgress()
    var receiver = StreamReceiver()
  }

  let scheduler: StreamScheduler
  private let core: ChannelCore
  private let direction: ChannelCore.Direction
  private let ready: Stream.Event
  private let hasMore: @Sendable () -> Bool
  private let state = PosixMutex(State())

  /// Makes a direction that tells `ready` where `isReady` says that there are bytes, or room.
  init(
    _ core: ChannelCore, _ direction: ChannelCore.Direction, ready: Stream.Event,
    isReady: @escaping @Sendable () -> Bool
  ) {
    self.core = core
    self.direction = direction
    self.ready = ready
    hasMore = isReady
    scheduler = StreamScheduler(clock: core.clock)
  }

  deinit { core.close(direction) }

  /// Tells events on behalf of `stream`; once, before anything else.
  func start(_ stream: Stream) {
    let reference = StreamReference(stream: stream)
    scheduler.setHandler { [weak self] turn in
      if let stream = reference.stream { self?.deliver(stream, turn) }
    }
  }

  var delegate: (any StreamDelegate)? {
    get { state.withLock { $0.receiver }.delegate }
    set {
      state.withLock { [new = StreamReceiver(delegate: newValue)] in $0.receiver.delegate = new.delegate }
    }
  }

  /// Sends events to `handler` on `queue`; nil: to the delegate on run loops.
  func setEventQueue(_ queue: DispatchQueue?, handler: StreamReceiver.Handler?) {
    replaceHandler(with: handler)
    scheduler.setQueue(queue)
  }

  func open() {
    if state.withLock({ $0.progress.open() }) { scheduler.wake() }
  }

  func close() {
    // The end is looked at first, here and below: what is there after it was seen is all there will be.
    let end = core.end
    guard state.withLock({ $0.progress.close(isReady: hasMore(), end: end) }) else { return }
    scheduler.stop()
    core.close(direction)
    // It may hold the channel, and will not be called any more.
    replaceHandler(with: nil)
  }

  private func replaceHandler(with new: StreamReceiver.Handler?) {
    // What the old one holds is let go of outside the lock: its end may come back here.
    _ = state.withLock { state in
      defer { state.receiver.handler = new }
      return state.receiver.handler
    }
  }

  var status: Stream.Status {
    let end = core.end
    return state.withLock { $0.progress.status(isReady: hasMore(), end: end) }
  }

  var error: (any Error)? {
    let end = core.end
    return state.withLock { $0.progress.error(isReady: hasMore(), end: end) }?.cbError
  }

  /// Whether the stream is open and has bytes, or room.
  var isReady: Bool { state.withLock { $0.progress.isOpen && hasMore() } }

  /// Reads or writes on behalf of the program.
  ///
  /// nil where that is refused: the stream is not open, or `action` has answered nil. One of no bytes is no answer to an event, or a program that has
  /// nothing to write would be told of room for ever.
  func act<Result: Sendable>(ofNoBytes isEmpty: Bool, _ action: (_ end: ChannelCore.End?) -> Result?)
    -> Result?
  {
    let end = core.end
    let (result, mustWake) = state.withLock { state -> (Result?, Bool) in
      guard state.progress.isOpen else {
        state.progress.refuse()
        return (nil, false)
      }
      let nobodyTells = !isEmpty && state.progress.programActed()
      let result = action(end)
      if result == nil { state.progress.refuse() }
      return (result, nobodyTells && (hasMore() || core.end != nil))
    }
    if mustWake { scheduler.wake() }
    return result
  }

  private func deliver(_ stream: Stream, _ turn: StreamScheduler.Turn) {
    guard state.withLock({ $0.progress.beginTelling() }) else { return }
    for _ in 0..<StreamReceiver.eventsPerWake {
      // A handler may have taken the stream off this run loop.
      guard scheduler.isCurrent(turn) else { break }
      let end = core.end
      let (event, receiver) = state.withLock { state in
        (state.progress.next(isReady: hasMore(), end: end, ready: ready), state.receiver)
      }
      guard let event else { return }
      receiver.tell(stream, event)
    }
    state.withLock { $0.progress.endTelling() }
    scheduler.wake()
  }
}

/// Whom a stream tells of its events.
///
/// Sendable though delegates are not: they are called only where the program has scheduled the stream.
struct StreamReceiver: @unchecked Sendable {
  /// How many events one wake-up tells, so that a fast peer does not keep other work of the run loop waiting.
  static let eventsPerWake = 16

  typealias Handler = @Sendable (Stream, Stream.Event) -> Void

  weak var delegate: (any StreamDelegate)?
  var handler: Handler?

  func tell(_ stream: Stream, _ event: Stream.Event) {
    if let handler { handler(stream, event) } else { delegate?.stream(stream, handle: event) }
  }
}

/// A weak reference to a stream that the scheduler may follow on any thread.
///
/// Sendable though Foundation's streams are not: those of a channel lock what changes in them.
private struct StreamReference: @unchecked Sendable {
  weak var stream: Stream?
}
