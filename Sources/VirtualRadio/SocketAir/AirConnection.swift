internal import Dispatch
internal import Locking
internal import Radio
internal import Readiness
internal import SystemCalls

/// A stream of ``AirMessage`` to and from another process. Sending never waits; what the other side does not read stays in a buffer.
///
/// Handlers run on the monitor's queue, never overlap, and none runs after `ended`, which comes once unless ``close()`` came first.
final class AirConnection: Sendable {
  enum Event: Sendable {
    case messages([AirMessage])
    /// The buffer was above ``highWater`` and is empty again.
    case drained
    /// The end: nil where the other side has closed, else what was wrong.
    case ended(String?)
  }

  private struct State {
    var outgoing: [UInt8] = []
    var sent = 0
    var isFlushScheduled = false
    var isWriteArmed = false
    var wasHigh = false
    var closesWhenSent = false
    /// More than may wait was sent: the end is on its way.
    var isOverfull = false
    var isClosed = false
    /// Itself, from ``closeWhenSent()`` to the end: who has said farewell lets go, and what waits is still to be sent.
    var keeper: AirConnection?
    var decoder = AirMessageDecoder()
    var reading: ReadinessSource?
    var writing: ReadinessSource?
  }

  /// Octets that wait to be sent, above which a sender should pause.
  static let highWater = 512 * 1024
  /// Octets that wait to be sent at most: beyond, the connection is ended.
  private static let mostWaiting = 16 * 1024 * 1024
  private static let unreadWords = "the other process does not read"
  /// How long the other side may take to read what was queued before ``closeWhenSent()``; in real time, as its process runs.
  static let longestFarewell = DispatchTimeInterval.seconds(30)

  private let socket: FileDescriptor
  private let monitor: ReadinessMonitor
  private var queue: DispatchQueue { monitor.queue }
  private let farewell: DispatchTimeInterval
  private let handler: @Sendable (Event) -> Void
  private let state = PosixMutex(State())

  /// Takes a connected socket; ``start()`` begins reading.
  init(
    _ socket: FileDescriptor, _ monitor: ReadinessMonitor,
    farewell: DispatchTimeInterval = longestFarewell,
    handler: @escaping @Sendable (Event) -> Void
  ) {
    self.socket = socket
    self.monitor = monitor
    self.farewell = farewell
    self.handler = handler
  }

  /// Begins reading; once.
  func start() {
    let isReading = state.withLock { state in
      guard !state.isClosed else { return true }
      state.reading = .reading(socket.raw, monitor) { [weak self] in self?.read() }
      state.reading?.setEnabled(true)
      return state.reading != nil
    }
    if !isReading { queue.async { self.end("no descriptor is left") } }
  }

  /// Whether the other side is behind with reading.
  var isCongested: Bool { state.withLock { $0.outgoing.count - $0.sent > Self.highWater } }

  /// Whether everything was handed to the system.
  var isIdle: Bool { state.withLock { $0.outgoing.isEmpty } }

  private enum Sending { case waits, flushes, isTooMuch }

  /// Queues a message; after the end it is dropped.
  func send(_ message: AirMessage) {
    let sending: Sending = state.withLock { state in
      guard !state.isClosed, !state.closesWhenSent, !state.isOverfull else { return .waits }
      // Asked here: a side that reads nothing at all is never written to again.
      guard state.outgoing.count - state.sent <= Self.mostWaiting else {
        state.isOverfull = true
        return .isTooMuch
      }
      message.encode(into: &state.outgoing)
      if state.outgoing.count - state.sent > Self.highWater { state.wasHigh = true }
      guard !state.isFlushScheduled, !state.isWriteArmed else { return .waits }
      state.isFlushScheduled = true
      return .flushes
    }
    switch sending {
    case .waits: break
    case .flushes: queue.async { self.flush() }
    case .isTooMuch: queue.async { self.end(Self.unreadWords) }
    }
  }

  /// Closes once everything that was queued is sent, or the time for it is over; no event comes any more.
  ///
  /// Until then the connection lives, whoever lets go of it.
  func closeWhenSent() {
    let isFirst = state.withLock { state in
      guard !state.isClosed, !state.closesWhenSent else { return false }
      state.closesWhenSent = true
      state.keeper = self
      return true
    }
    guard isFirst else { return }
    queue.async { self.flush() }
    queue.asyncAfter(deadline: .now() + farewell) { [weak self] in self?.close() }
  }

  /// Closes at once; no event comes any more but those that are being handled.
  func close() {
    // Let go of outside the lock, which the end of the connection takes.
    _ = state.withLock { state -> AirConnection? in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      UnixSocket.shutDown(socket)
      state.outgoing = []
      state.sent = 0
      state.reading = nil
      state.writing = nil
      defer { state.keeper = nil }
      return state.keeper
    }
  }

  private func end(_ reason: String?) {
    let (isFirst, isSilent) = state.withLock { (!$0.isClosed, $0.closesWhenSent) }
    guard isFirst else { return }
    close()
    if !isSilent { handler(.ended(reason)) }
  }

  // MARK: Reading, on the queue

  private func read() {
    var buffer = [UInt8](repeating: 0, count: 65536)
    // Bounded, so that one busy connection does not starve the others.
    for _ in 0..<4 {
      guard let count = readOnce(&buffer), count == buffer.count, !state.withLock(\.isClosed) else { return }
    }
  }

  /// Reads what the other side has said before it went, its farewell above all, and ends.
  private func readRest(_ reason: String) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    // Bounded: one that has only shut down its reading could go on writing for ever.
    for _ in 0..<Self.mostWaiting / buffer.count {
      guard !state.withLock(\.isClosed), readOnce(&buffer) != nil else { break }
    }
    end(reason)
  }

  /// Returns how much there was; nil: nothing now, or the end, which was told.
  private func readOnce(_ buffer: inout [UInt8]) -> Int? {
    let count: Int?
    do throws(SystemError) {
      count = try UnixSocket.receive(into: &buffer, from: socket)
    } catch {
      end(error.isReset ? nil : "\(error)")
      return nil
    }
    guard let count else { return nil }
    guard count > 0 else {
      end(nil)
      return nil
    }
    var messages: [AirMessage] = []
    var failure: AirProtocolError?
    state.withLock { state in
      state.decoder.append(buffer[..<count])
      do throws(AirProtocolError) {
        while let message = try state.decoder.next() { messages.append(message) }
      } catch {
        failure = error
      }
    }
    if !messages.isEmpty, !state.withLock({ $0.isClosed || $0.closesWhenSent }) {
      handler(.messages(messages))
    }
    if let failure {
      end(failure.description)
      return nil
    }
    return count
  }

  // MARK: Writing, on the queue

  private enum FlushResult {
    case done(wasHigh: Bool)
    case blocked
    case close
    /// The other side does not do its part.
    case failed(String)
    /// The other side takes nothing any more.
    case lost(String)
  }

  private func flush() {
    let result = state.withLock { state -> FlushResult in
      state.isFlushScheduled = false
      guard !state.isClosed else { return .done(wasHigh: false) }
      while state.sent < state.outgoing.count {
        let count: Int?
        do throws(SystemError) {
          count = try UnixSocket.send(state.outgoing[state.sent...], to: socket)
        } catch {
          return .lost("\(error)")
        }
        guard let count else { return block(&state) }
        state.sent += count
      }
      state.outgoing.removeAll(keepingCapacity: state.outgoing.capacity <= Self.highWater)
      state.sent = 0
      if state.isWriteArmed {
        state.writing?.setEnabled(false)
        state.isWriteArmed = false
      }
      defer { state.wasHigh = false }
      return state.closesWhenSent ? .close : .done(wasHigh: state.wasHigh)
    }
    switch result {
    case .done(let wasHigh): if wasHigh { handler(.drained) }
    case .blocked: break
    case .close: close()
    case .failed(let reason): end(reason)
    case .lost(let reason): readRest(reason)
    }
  }

  /// Waits until the socket takes more.
  private func block(_ state: inout State) -> FlushResult {
    if state.sent > Self.highWater {
      state.outgoing.removeFirst(state.sent)
      state.sent = 0
    }
    guard state.outgoing.count <= Self.mostWaiting else {
      return .failed(Self.unreadWords)
    }
    if state.writing == nil {
      state.writing = .writing(socket.raw, monitor) { [weak self] in self?.flush() }
    }
    guard let writing = state.writing else { return .failed("no descriptor is left") }
    writing.setEnabled(true)
    state.isWriteArmed = true
    return .blocked
  }
}
