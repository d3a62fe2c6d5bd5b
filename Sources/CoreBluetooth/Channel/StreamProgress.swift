internal import Foundation
internal import Radio

/// What a stream tells of itself, one event after the other.
///
/// Room and bytes are told once; again only after the program has acted on them, as long as there is more.
struct StreamProgress: Sendable {
  private enum Life { case new, opened, closed }

  private var life = Life.new
  private var hasToldOpen = false
  private var hasToldEnd = false
  /// Told of bytes or room, and the program has not read or written since.
  private var waitsForProgram = false
  /// Events are being told; what happens meanwhile is looked at before that ends.
  private var isTelling = false
  /// How the channel had failed when the program closed the stream.
  private var failure: RadioError?
  /// Why the last read or write was refused, where the channel is not to blame.
  private var refusal: RadioError?

  var isOpen: Bool { life == .opened }

  /// Opens a stream that never was; false: it was.
  mutating func open() -> Bool {
    guard life == .new else { return false }
    life = .opened
    refusal = nil
    return true
  }

  /// Closes for good; false: it was closed.
  mutating func close(isReady: Bool, end: ChannelCore.End?) -> Bool {
    guard life != .closed else { return false }
    if status(isReady: isReady, end: end) == .error, case .failed(let error) = end { failure = error }
    life = .closed
    return true
  }

  /// The program has read or written; true: somebody must be woken to tell what there is to tell.
  mutating func programActed() -> Bool {
    waitsForProgram = false
    return !isTelling
  }

  /// A read or a write came to nothing but an error.
  mutating func refuse() {
    refusal =
      switch life {
      case .new: RadioError(.notConnected, "The stream is not open.")
      case .opened: RadioError(.peerTerminated, "The channel has been closed.")
      case .closed: RadioError(.cancelled, "The stream is closed.")
      }
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

  /// The error to show: how the channel has failed, else why the last read or write was refused.
  func error(isReady: Bool, end: ChannelCore.End?) -> RadioError? {
    if status(isReady: isReady, end: end) == .error, case .failed(let error) = end { return error }
    return failure ?? refusal
  }
}
