public import Foundation

/// What a receiver is asked to keep: identity, size and the name that came over the air.
public struct ReceivedObject: Hashable, Sendable {
  /// SHA-256 of the whole object; identifies it across connections and restarts.
  public var sha256: SHA256Digest
  /// Size in bytes.
  public var size: UInt64
  /// The name as the sender gave it, not trusted; each storage states which names it takes.
  public var name: String

  public init(sha256: SHA256Digest, size: UInt64, name: String) {
    self.sha256 = sha256
    self.size = size
    self.name = name
  }
}

/// What a storage can take at this moment.
public struct StorageLimits: Hashable, Sendable {
  /// The largest object that is ever taken, in bytes.
  public var largestObject: UInt64
  /// Bytes that can be stored now.
  public var freeSpace: UInt64

  public init(largestObject: UInt64, freeSpace: UInt64) {
    self.largestObject = largestObject
    self.freeSpace = freeSpace
  }
}

/// The answer to an object that is offered.
public enum StorageOpening: Sendable {
  /// The very object is there already, complete: its contents were read and hashed just now. The string says where.
  case complete(location: String)
  /// It is to be received from ``ReceiverPart/durableOffset`` on; `busy` is the time for which the medium works before the first write.
  case part(any ReceiverPart, busy: Duration)
}

/// Where received objects are kept, on both sides of a power cut.
///
/// The contract, for every storage:
/// - An object is found again by its SHA-256. A part survives disconnects, a crash of the process and a power cut, up to its durable
///   offset; it ends by ``ReceiverPart/commit(verified:)`` or ``ReceiverPart/discard()`` alone.
/// - One part has one owner: a second ``open(_:)`` of it throws ``TransferError/Code/locked`` until the first was closed.
/// - The final name never shows anything but a whole, verified object.
/// - Nothing that a peer can send traps or grows without bound: names, sizes and offsets are checked here, once more.
/// - Calls block while the medium works and may be made from any thread; calls for one part must not overlap. Simulated media do not
///   block: they return the time that the medium would have taken, and the caller lets it pass on its clock.
public protocol ReceiverStorage: AnyObject, Sendable {
  /// What can be taken now.
  func limits() throws(TransferError) -> StorageLimits

  /// Begins an object, or goes on with it.
  ///
  /// - Throws: `objectTooLarge`, `nameNotAcceptable` or `nameTaken` for what the policy does not allow; `diskFull` if there is not room
  ///   for the rest; `locked` if the part is in use; `storage` if the medium fails. The message is fit to be sent to the peer.
  func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening

  /// An older, finished object for one that arrives as what has changed against it; nil where there is none.
  ///
  /// What is given was read just now, all of it. It may be written to by others afterwards: whoever uses it checks what comes of it.
  func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase?
}

extension ReceiverStorage {
  /// A storage that keeps nothing that could be a base.
  public func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase? { nil }
}

/// An object that is being received.
public protocol ReceiverPart: AnyObject, Sendable {
  /// What it will be.
  var object: ReceivedObject { get }

  /// The number of bytes from the start that survive a power cut; the only offset that may be confirmed to the peer as resumable.
  var durableOffset: UInt64 { get }

  /// Stores bytes; they are not durable yet. Writes may repeat and need not be in order, but stay within ``durableOffset`` and the size.
  ///
  /// - Returns: how long a simulated medium is busy with it; zero for a real one.
  /// - Throws: `protocolViolation` for a range outside; `diskFull` or `storage` if the medium fails. The part remains resumable.
  func write(_ bytes: Data, at offset: UInt64) throws(TransferError) -> Duration

  /// Makes the first `offset` bytes durable and raises ``durableOffset`` to it. The caller has written and checked all of them.
  ///
  /// - Throws: `storage` or `diskFull` if the medium fails: the part ends then, and goes on from its durable offset when it is opened anew.
  func sync(through offset: UInt64) throws(TransferError) -> Duration

  /// Lowers ``durableOffset``, because bytes after `offset` proved to be wrong. Lasting when it returns.
  func rewind(to offset: UInt64) throws(TransferError)

  /// Reads stored bytes back from the medium (not from the caller's memory): exactly `count` of them.
  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data

  /// Gives the object its final name, durably.
  ///
  /// - Parameter digest: the SHA-256 of all bytes, computed from ``read(at:count:)`` after the last write.
  /// - Returns: where it is now.
  /// - Throws: `verificationFailed` if `digest` is not the object's or bytes are missing: the part stays as it is; `nameTaken` if another
  ///   file has taken the name meanwhile and the policy forbids to replace it.
  func commit(verified digest: SHA256Digest) throws(TransferError) -> String

  /// Removes the part and all that was recorded about it.
  func discard() throws(TransferError)

  /// Ends the use and keeps the part for later. Idempotent; implied when the last reference goes.
  func close()
}

extension ReceiverPart {
  /// Reads the whole object back and hashes it, holding no more than `blockSize` bytes at a time.
  public func digest(blockSize: Int = 1 << 16) throws(TransferError) -> SHA256Digest {
    let hasher = SHA256Hasher()
    var offset: UInt64 = 0
    while offset < object.size {
      let count = Int(min(UInt64(max(blockSize, 1)), object.size - offset))
      hasher.update(try read(at: offset, count: count))
      offset += UInt64(count)
    }
    return try hasher.finalize()
  }
}

extension TransferError.Code {
  /// The object is larger than the storage ever takes.
  public static let objectTooLarge = Self(rawValue: "object-too-large")
  /// The name that came over the air is none that the storage gives to a file.
  public static let nameNotAcceptable = Self(rawValue: "name-not-acceptable")
  /// Something else has that name already and is not to be replaced.
  public static let nameTaken = Self(rawValue: "name-taken")
}

extension TransferError {
  /// A write, sync or rewind that goes beyond what the object or its durable offset allows.
  static func rangeOutside(_ what: String, _ range: String, of object: ReceivedObject) -> TransferError {
    TransferError(.protocolViolation, "cannot \(what) \(range) of an object of \(object.size) bytes")
  }
}
