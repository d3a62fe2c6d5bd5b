internal import Dispatch
internal import Locking
internal import Foundation
internal import Radio

/// The bytes that arrive on a channel.
///
/// What changes is behind `state` and in the scheduler, so that it may be used from any thread.
final class ChannelInputStream: InputStream {
  private struct State: Sendable {
    var progress = StreamProgress()
    var receiver = StreamReceiver()
    /// Bytes that were fetched ahead; see `fetch`.
    var ahead = Data()
  }

  /// How many bytes are fetched ahead at most.
  private static let aheadCount = 512

  let scheduler: StreamScheduler
  private let core: ChannelCore
  private let state = PosixMutex(State())

  init(_ core: ChannelCore) {
    self.core = core
    scheduler = StreamScheduler(clock: core.clock)
    super.init(data: Data())
    let reference = StreamReference(stream: self)
    scheduler.setHandler { reference.stream?.deliver() }
  }

  deinit { core.close(.input) }

  override var delegate: (any StreamDelegate)? {
    get { state.withLock { $0.receiver }.delegate }
    set {
      state.withLock { [new = StreamReceiver(delegate: newValue)] in $0.receiver.delegate = new.delegate }
    }
  }

  override func open() {
    if state.withLock({ $0.progress.open() }) { scheduler.wake() }
  }

  override func close() {
    guard state.withLock({ $0.progress.close() }) else { return }
    scheduler.stop()
    core.close(.input)
  }

  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { scheduler.add(aRunLoop, mode) }

  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
    scheduler.remove(aRunLoop, mode)
  }

  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

  override var streamStatus: Stream.Status {
    let end = core.end
    return state.withLock { $0.progress.status(isReady: hasBytes($0), end: end) }
  }

  override var streamError: (any Error)? {
    guard streamStatus == .error, case .failed(let error) = core.end else { return nil }
    return error.cbError
  }

  override var hasBytesAvailable: Bool { state.withLock { $0.progress.isOpen && hasBytes($0) } }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    // The end is looked at first: what is there after it was seen is all there will be.
    let end = core.end
    let (count, mustWake) = state.withLock { state -> (Int?, Bool) in
      guard state.progress.isOpen else { return (nil, false) }
      let nobodyTells = state.progress.programActed()
      let count = unsafe fetch(max(0, len), into: buffer, &state)
      return (count, nobodyTells && (hasBytes(state) || end != nil))
    }
    guard let count else { return -1 }
    if mustWake { scheduler.wake() }
    if count == 0, len > 0, case .failed = end { return -1 }
    return count
  }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  func setEventQueue(_ queue: DispatchQueue?, handler: (@Sendable (Stream, Stream.Event) -> Void)?) {
    state.withLock { $0.receiver.handler = handler }
    scheduler.setQueue(queue)
  }

  private func hasBytes(_ state: State) -> Bool { !state.ahead.isEmpty || core.channel.hasBytes }

  /// Takes up to `count` bytes.
  ///
  /// A channel tells of new bytes only after a read that fell short. One that took the last byte exactly is therefore followed by one that either falls
  /// short, or whose bytes are kept for the next read.
  private func fetch(_ count: Int, into buffer: UnsafeMutablePointer<UInt8>, _ state: inout State) -> Int {
    var got = min(count, state.ahead.count)
    if got > 0 {
      unsafe state.ahead.copyBytes(to: buffer, count: got)
      state.ahead = state.ahead.dropFirst(got)
    }
    if got < count {
      let bytes = core.channel.read(upTo: count - got)
      unsafe bytes.copyBytes(to: buffer + got, count: bytes.count)
      got += bytes.count
    }
    if got == count, state.ahead.isEmpty, !core.channel.hasBytes {
      state.ahead = core.channel.read(upTo: Self.aheadCount)
    }
    return got
  }

  private func deliver() {
    guard state.withLock({ $0.progress.beginTelling() }) else { return }
    for _ in 0..<StreamReceiver.eventsPerWake {
      let end = core.end
      let (event, receiver) = state.withLock { state in
        (state.progress.next(isReady: hasBytes(state), end: end, ready: .hasBytesAvailable), state.receiver)
      }
      guard let event else { return }
      receiver.tell(self, event)
    }
    state.withLock { $0.progress.endTelling() }
    scheduler.wake()
  }
}
