internal import Foundation
internal import Radio

/// The bytes to send on a channel, as a Foundation stream.
///
/// What changes is in `outgoing`, behind a lock, so that it may be used from any thread.
final class ChannelOutputStream: OutputStream {
  let outgoing: OutgoingBytes

  init(_ core: ChannelCore) {
    outgoing = OutgoingBytes(core)
    super.init(toMemory: ())
    outgoing.direction.start(self)
  }

  required init(toMemory: ()) {
    preconditionFailure("Streams of a channel are made with it")
  }

  override var delegate: (any StreamDelegate)? {
    get { outgoing.direction.delegate }
    set { outgoing.direction.delegate = newValue }
  }

  override func open() { outgoing.direction.open() }

  override func close() { outgoing.direction.close() }

  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
    outgoing.direction.scheduler.add(aRunLoop, mode)
  }

  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
    outgoing.direction.scheduler.remove(aRunLoop, mode)
  }

  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

  override var streamStatus: Stream.Status { outgoing.direction.status }

  override var streamError: (any Error)? { outgoing.direction.error }

  override var hasSpaceAvailable: Bool { outgoing.direction.isReady }

  override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
    let count = min(max(len, 0), OutgoingBytes.largestWrite)
    return outgoing.put(unsafe Data(bytes: buffer, count: count)) ?? -1
  }
}

/// The bytes to send on a channel, for any thread.
final class OutgoingBytes: Sendable {
  /// How much of one write is looked at, so that a large one is not copied whole to be taken in part.
  static let largestWrite = 1 << 16

  let direction: ChannelDirection
  private let channel: any RadioChannel

  init(_ core: ChannelCore) {
    channel = core.channel
    direction = ChannelDirection(core, .output, ready: .hasSpaceAvailable) {
      core.end == nil && core.channel.hasSpace
    }
  }

  /// Takes a prefix of `bytes` and returns its length; 0: there is no room now. nil: the direction's error says why.
  func put(_ bytes: Data) -> Int? {
    direction.act(ofNoBytes: bytes.isEmpty) { end in
      guard end == nil else { return nil }
      return bytes.isEmpty ? 0 : channel.write(bytes.prefix(Self.largestWrite))
    }
  }
}
