internal import Locking
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
  enum Direction: Sendable { case input, output }

  /// What the radio's events touch.
  ///
  /// An object of its own, so that an event never holds what owns the radio's channel: it might be the last to let go of it, under the radio's lock.
  private final class Signals: Sendable {
    let end = PosixMutex<End?>(nil)
  }

  let channel: any RadioChannel
  let clock: any RadioClock
  private let signals = Signals()
  private let closedDirections = PosixMutex<Set<Direction>>([])

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
  func close(_ direction: Direction) {
    let isLast = closedDirections.withLock { directions in
      let isNew = directions.insert(direction).inserted
      return isNew && directions.count == 2
    }
    if isLast { channel.close() }
  }

  /// Ends the channel once what was written has been sent.
  func close() { channel.close() }
}
