internal import Locking
internal import Foundation
internal import Radio

/// What the two streams of a channel share: the radio's channel and how it ended.
///
/// The radio may post events with its own locks held. What they touch (the end, the schedulers) is therefore behind locks that are never held
/// while the radio is called; the streams' own locks may be.
final class ChannelCore: Sendable {
  /// How a channel ended.
  enum End: Sendable, Equatable {
    case inOrder
    case failed(RadioError)
  }

  /// A direction.
  enum Half: Sendable { case input, output }

  /// What the radio's events touch.
  ///
  /// An object of its own, so that an event never holds what owns the radio's channel: it might be the last to let go of it, under the radio's lock.
  private final class Signals: Sendable {
    let end = PosixMutex<End?>(nil)
  }

  let channel: any RadioChannel
  let clock: any RadioClock
  private let signals = Signals()
  private let closedHalves = PosixMutex<Set<Half>>([])

  init(_ channel: any RadioChannel, clock: any RadioClock) {
    self.channel = channel
    self.clock = clock
  }

  /// How the channel ended; bytes that arrived before can still be read.
  var end: End? { signals.end.withLock { $0 } }

  /// Listens to the channel on behalf of the streams.
  func start(input: StreamScheduler?, output: StreamScheduler?) {
    channel.setSink { [signals, weak input, weak output] event in
      switch event {
      case .readable: input?.wake()
      case .writable: output?.wake()
      case .closed(let error):
        signals.end.withLock { $0 = error.map { .failed($0) } ?? .inOrder }
        input?.wake()
        output?.wake()
      }
    }
  }

  /// Ends the channel once both streams are closed.
  func close(_ half: Half) {
    let isLast = closedHalves.withLock { halves in
      let isNew = halves.insert(half).inserted
      return isNew && halves.count == 2
    }
    if isLast { channel.close() }
  }

  /// Ends the channel once what was written has been sent.
  func close() { channel.close() }
}

/// A weak reference to a stream that the scheduler may follow on any thread.
///
/// Sendable though Foundation's streams are not: those of a channel lock what changes in them.
struct StreamReference<Wrapped: Stream>: @unchecked Sendable {
  weak var stream: Wrapped?
}

/// What a stream tells of itself, one event after the other.
///
/// Room and bytes are told once; again only after the program has acted on them, as long as there is more.
struct StreamProgress {
  private enum Life { case new, opened, closed }

  private var life = Life.new
  private var hasToldOpen = false
  private var hasToldEnd = false
  /// Told of bytes or room, and the program has not read or written since.
  private var waitsForProgram = false
  /// Events are being told; what happens meanwhile is looked at before that ends.
  private var isTelling = false

  var isOpen: Bool { life == .opened }

  /// Opens a stream that never was; false: it was.
  mutating func open() -> Bool {
    guard life == .new else { return false }
    life = .opened
    return true
  }

  /// Closes for good; false: it was closed.
  mutating func close() -> Bool {
    defer { life = .closed }
    return life != .closed
  }

  /// The program has read or written; true: somebody must be woken to tell what there is to tell.
  mutating func programActed() -> Bool {
    waitsForProgram = false
    return !isTelling
  }

  /// Starts telling; false: it is going on already.
  mutating func beginTelling() -> Bool {
    defer { isTelling = true }
    return !isTelling
  }

  /// Stops telling before there is nothing left to tell.
  mutating func endTelling() { isTelling = false }

  /// What to tell next, where `isReady` says that there are bytes or room, and `end` that there will be no more. nil ends the telling.
  mutating func next(isReady: Bool, end: ChannelCore.End?, ready: Stream.Event) -> Stream.Event? {
    let event = nextEvent(isReady: isReady, end: end, ready: ready)
    if event == nil { isTelling = false }
    return event
  }

  private mutating func nextEvent(isReady: Bool, end: ChannelCore.End?, ready: Stream.Event) -> Stream.Event?
  {
    guard life == .opened, !hasToldEnd else { return nil }
    if !hasToldOpen {
      hasToldOpen = true
      return .openCompleted
    }
    if isReady {
      guard !waitsForProgram else { return nil }
      waitsForProgram = true
      return ready
    }
    guard let end else { return nil }
    hasToldEnd = true
    return end == .inOrder ? .endEncountered : .errorOccurred
  }

  /// The status to show.
  func status(isReady: Bool, end: ChannelCore.End?) -> Stream.Status {
    switch life {
    case .new: return .notOpen
    case .closed: return .closed
    case .opened:
      guard !isReady, let end else { return .open }
      return end == .inOrder ? .atEnd : .error
    }
  }
}
