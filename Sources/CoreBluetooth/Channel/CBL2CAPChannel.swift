public import Dispatch
public import Foundation
internal import Radio

/// An L2CAP credit-based channel to a peer: a stream of bytes in each direction.
///
/// Hold the object as long as the channel is used: the channel ends when the object is released, or both streams are closed. The streams come
/// unopened; a program sets their delegate, schedules them on a run loop and opens them. SDU borders are not kept.
// Sendable: nothing of it changes, and the streams lock what changes in them.
open class CBL2CAPChannel: NSObject, @unchecked Sendable {
  let core: ChannelCore?
  let input: ChannelInputStream?
  let output: ChannelOutputStream?
  private let remote: CBPeer?

  /// Makes an object without a channel; programs get channels from a delegate.
  public override init() {
    core = nil
    remote = nil
    input = nil
    output = nil
    super.init()
  }

  init(_cb channel: any RadioChannel, peer: CBPeer, clock: any RadioClock) {
    let core = ChannelCore(channel, clock: clock)
    self.core = core
    remote = peer
    input = ChannelInputStream(core)
    output = ChannelOutputStream(core)
    super.init()
    core.start(input: input?.incoming.direction.scheduler, output: output?.outgoing.direction.scheduler)
  }

  deinit { core?.close() }

  /// The device at the other end: a ``CBPeripheral`` or a ``CBCentral``.
  open var peer: CBPeer! { remote }

  /// What the peer sends.
  ///
  /// `read` does not wait: it returns what is there; 0 where nothing is there now, or where the stream's status is `atEnd`; -1 where the channel has
  /// failed and everything that had arrived was read, or where the stream is not open. `streamError` then says why. What is not read stays with the
  /// radio, which lets the peer send no more than it has memory for.
  open var inputStream: InputStream! { input }

  /// What is sent to the peer.
  ///
  /// `write` does not wait: it takes what there is room for, 0 where there is none now; -1 after the end, or where the stream is not open. `streamError`
  /// then says why. What was taken is sent before the channel closes.
  open var outputStream: OutputStream! { output }

  /// The PSM that was connected to.
  open var psm: CBL2CAPPSM { core?.channel.psm ?? 0 }

  /// Delivers the events of both streams on `queue`, to `handler`, instead of to delegates on run loops; nil goes back to those.
  ///
  /// The counterpart of `CFReadStreamSetDispatchQueue`. The streams still have to be opened. Where the radio's time is simulated, it stands still
  /// from the moment an event happens until `handler` has returned. The handlers of one stream do not overlap, also where `queue` is concurrent.
  @_spi(Streams) public func setEventQueue(
    _ queue: DispatchQueue?, handler: (@Sendable (Stream, Stream.Event) -> Void)?
  ) {
    input?.incoming.direction.setEventQueue(queue, handler: handler)
    output?.outgoing.direction.setEventQueue(queue, handler: handler)
  }
}

// `let stream = channel.inputStream` has the type `InputStream?`, by the language's rule for implicitly unwrapped properties; programs for
// Apple's framework use it like a stream all the same.
extension Optional where Wrapped: Stream {
  public var delegate: (any StreamDelegate)? {
    get { self?.delegate }
    nonmutating set { self?.delegate = newValue }
  }

  public var streamStatus: Stream.Status { self?.streamStatus ?? .notOpen }

  public var streamError: (any Error)? { self?.streamError }

  public func open() { self?.open() }

  public func close() { self?.close() }

  public func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    self?.schedule(in: runLoop, forMode: mode)
  }

  public func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    self?.remove(from: runLoop, forMode: mode)
  }
}
