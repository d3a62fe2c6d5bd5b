public import Foundation

/// An open L2CAP credit-based channel as a stream of bytes in both directions (Core Vol 3 Part A 3.4.3, 10.1).
///
/// SDU borders are not kept. Memory is bounded both ways: ``write(_:)`` takes what fits the send buffer, and credits go to the
/// peer only as ``read(upTo:)`` frees the receive buffer. Releasing the object closes the channel.
public protocol RadioChannel: AnyObject, Sendable {
  /// The PSM that was connected to.
  var psm: PSM { get }

  /// The device at the other end.
  var peer: PeerID { get }

  /// Sets where events go; what happened before (bytes waiting, closed) is posted to the new sink first. nil drops events.
  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?)

  /// Takes up to `count` bytes that have arrived; empty: none are there now. After `readable` was posted, it comes again only
  /// once a read has returned fewer bytes than asked and more have arrived.
  func read(upTo count: Int) -> Data

  /// Whether ``read(upTo:)`` would return bytes.
  var hasBytes: Bool { get }

  /// Takes a prefix of `bytes` into the send buffer and returns its length; less than all: wait for `writable`, posted once.
  /// After the channel has closed: 0.
  func write(_ bytes: Data) -> Int

  /// Whether ``write(_:)`` would take at least one byte.
  ///
  /// Where it was read as false, ``ChannelEvent/writable`` is posted once when room is back, as after a short write: a write that was taken to the
  /// last byte may leave no room, and nobody can ask for it by another one.
  var hasSpace: Bool { get }

  /// Closes the channel once what was written has been sent; idempotent. Posts ``ChannelEvent/closed(_:)`` with nil.
  func close()
}

/// What a channel tells.
public enum ChannelEvent: Hashable, Sendable {
  /// Bytes have arrived where there were none.
  case readable
  /// Room is back after a short write, or after `hasSpace` was read as false.
  case writable
  /// The end: nil where either side closed it in order, else why. Bytes that arrived before can still be read.
  case closed(RadioError?)
}
