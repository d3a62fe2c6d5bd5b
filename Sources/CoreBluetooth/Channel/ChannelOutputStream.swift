internal import Dispatch
internal import Locking
internal import Foundation
internal import Radio

/// The bytes to send on a channel.
///
/// What changes is behind `state` and in the scheduler, so that it may be used from any thread.
final class ChannelOutputStream: OutputStream {
  private struct State: Sendable {
    var progress = StreamProgress()
    var receiver = StreamReceiver()
  }

  /// How much of one write is looked at, so that a large one is not copied whole to be taken in part.
  private static let largestWrite = 1 << 16

  let scheduler: StreamScheduler
  private let core: ChannelCore
  private let state = PosixMutex(State())

  init(_ core: ChannelCore) {
    self.core = core
    scheduler = StreamScheduler(clock: core.clock)
    super.init(toMemory: ())
    let reference = StreamReference(stream: self)
    scheduler.setHandler { reference.stream?.deliver() }
  }

  required init(toMemory: ()) {
    preconditionFailure("Streams of a channel are made with it")
  }

  deinit { core.close(.output) }

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
    core.close(.output)
  }

  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { scheduler.add(aRunLoop, mode) }

  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
    scheduler.remove(aRunLoop, mode)
  }

  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

  override var streamStatus: Stream.Status {
    let end = core.end
    return state.withLock { $0.progress.status(isReady: false, end: end) }
  }

  override var streamError: (any Error)? {
    guard streamStatus == .error, case .failed(let error) = core.end else { return nil }
    return error.cbError
  }

  override var hasSpaceAvailable: Bool { state.withLock { $0.progress.isOpen } && hasSpace }

  override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
    guard state.withLock({ $0.progress.isOpen }), core.end == nil else { return -1 }
    guard len > 0 else { return 0 }
    let count = core.channel.write(unsafe Data(bytes: buffer, count: min(len, Self.largestWrite)))
    let mustWake = state.withLock { $0.progress.programActed() && (hasSpace || core.end != nil) }
    if mustWake { scheduler.wake() }
    return count
  }

  func setEventQueue(_ queue: DispatchQueue?, handler: (@Sendable (Stream, Stream.Event) -> Void)?) {
    state.withLock { $0.receiver.handler = handler }
    scheduler.setQueue(queue)
  }

  private var hasSpace: Bool { core.end == nil && core.channel.hasSpace }

  private func deliver() {
    guard state.withLock({ $0.progress.beginTelling() }) else { return }
    for _ in 0..<StreamReceiver.eventsPerWake {
      let (event, receiver) = state.withLock { state in
        let isReady = hasSpace
        return (
          state.progress.next(isReady: isReady, end: core.end, ready: .hasSpaceAvailable), state.receiver
        )
      }
      guard let event else { return }
      receiver.tell(self, event)
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

  weak var delegate: (any StreamDelegate)?
  var handler: (@Sendable (Stream, Stream.Event) -> Void)?

  func tell(_ stream: Stream, _ event: Stream.Event) {
    if let handler { handler(stream, event) } else { delegate?.stream(stream, handle: event) }
  }
}
