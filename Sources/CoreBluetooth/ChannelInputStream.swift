internal import Dispatch
internal import Foundation
internal import Radio
internal import Synchronization

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
  private let state = Mutex(State())

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
    let (bytes, mustWake) = state.withLock { state -> (Data?, Bool) in
      guard state.progress.isOpen else { return (nil, false) }
      let nobodyTells = state.progress.programActed()
      let bytes = fetch(max(0, len), &state)
      return (bytes, nobodyTells && (hasBytes(state) || end != nil))
    }
    guard let bytes else { return -1 }
    if mustWake { scheduler.wake() }
    if bytes.isEmpty, len > 0, case .failed = end { return -1 }
    unsafe bytes.copyBytes(to: buffer, count: bytes.count)
    return bytes.count
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
  /// A channel tells of new bytes only after a read that fell short. One that was filled to the last byte is therefore followed by one that either
  /// falls short, or whose bytes are kept for the next read.
  private func fetch(_ count: Int, _ state: inout State) -> Data {
    var bytes = Data(state.ahead.prefix(count))
    state.ahead = Data(state.ahead.dropFirst(bytes.count))
    if bytes.count < count {
      let more = core.channel.read(upTo: count - bytes.count)
      bytes = bytes.isEmpty ? more : bytes + more
    }
    if bytes.count == count, state.ahead.isEmpty {
      state.ahead = core.channel.read(upTo: Self.aheadCount)
    }
    return bytes
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
