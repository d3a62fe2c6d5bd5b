internal import Locking
internal import Foundation
internal import Radio

/// The bytes that arrive on a channel, as a Foundation stream.
///
/// What changes is in `incoming`, behind locks, so that it may be used from any thread.
final class ChannelInputStream: InputStream {
  let incoming: IncomingBytes

  init(_ core: ChannelCore) {
    incoming = IncomingBytes(core)
    super.init(data: Data())
    incoming.direction.start(self)
  }

  override var delegate: (any StreamDelegate)? {
    get { incoming.direction.delegate }
    set { incoming.direction.delegate = newValue }
  }

  override func open() { incoming.direction.open() }

  override func close() { incoming.direction.close() }

  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
    incoming.direction.scheduler.add(aRunLoop, mode)
  }

  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
    incoming.direction.scheduler.remove(aRunLoop, mode)
  }

  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

  override var streamStatus: Stream.Status { incoming.direction.status }

  override var streamError: (any Error)? { incoming.direction.error }

  override var hasBytesAvailable: Bool { incoming.direction.isReady }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    guard let bytes = incoming.take(upTo: len) else { return -1 }
    unsafe bytes.copyBytes(to: buffer, count: bytes.count)
    return bytes.count
  }

  /// There is no buffer to lend: bytes that have arrived belong to the radio until they are read.
  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }
}

/// The bytes that arrive on a channel, for any thread.
final class IncomingBytes: Sendable {
  let direction: ChannelDirection
  private let arrived: ArrivedBytes

  init(_ core: ChannelCore) {
    let arrived = ArrivedBytes(core.channel)
    self.arrived = arrived
    direction = ChannelDirection(core, .input, ready: .hasBytesAvailable) { arrived.isThere }
  }

  /// Takes up to `count` bytes; empty: none are there now, or after the end in order. nil: the direction's error says why.
  func take(upTo count: Int) -> Data? {
    direction.act(ofNoBytes: count <= 0) { end in
      let taken = arrived.take(upTo: max(count, 0))
      if taken.isEmpty, count > 0, case .failed = end { return nil }
      return taken
    }
  }
}

/// The bytes of a radio's channel, taken so that the radio always tells of new ones.
///
/// A radio's channel tells of new bytes only after a read that fell short. One that took the last byte exactly is therefore followed by one that
/// either falls short, or whose bytes are kept for the next read.
private final class ArrivedBytes: Sendable {
  /// How many bytes are fetched ahead at most.
  private static let aheadCount = 512

  private let channel: any RadioChannel
  private let ahead = PosixMutex(Data())

  init(_ channel: any RadioChannel) { self.channel = channel }

  var isThere: Bool { ahead.withLock { !$0.isEmpty } || channel.hasBytes }

  func take(upTo count: Int) -> Data {
    ahead.withLock { ahead in
      var taken = Data(ahead.prefix(count))
      ahead = ahead.dropFirst(taken.count)
      if taken.count < count {
        let arrived = channel.read(upTo: count - taken.count)
        if taken.isEmpty { taken = arrived } else { taken += arrived }
      }
      if taken.count == count, ahead.isEmpty, !channel.hasBytes {
        ahead = channel.read(upTo: Self.aheadCount)
      }
      return taken
    }
  }
}
