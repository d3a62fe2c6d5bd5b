public import Foundation
internal import Locking

/// A device's flash in memory: takes time, wears faults as programmed, and forgets at a power cut what was not synced.
///
/// Durations are reported and never waited for, so the same flash serves simulated and real time.
public final class SimulatedFlash: ReceiverStorage {
  /// How the flash is built.
  public struct Profile: Hashable, Sendable {
    /// Bytes for parts and finished objects together.
    public var capacity: UInt64
    /// Bytes that are erased at once, at least 1.
    public var sectorSize: Int
    /// Time to erase a sector.
    public var eraseTime: Duration
    /// Bytes programmed per second; nil programs in no time.
    public var writeRate: Int?
    /// Time of each sync.
    public var syncTime: Duration
    /// Whether all sectors are erased when an object is opened, and not one by one as they are reached.
    public var erasesAtOpen: Bool

    /// Flash that takes no time unless told.
    public init(
      capacity: UInt64 = 1 << 24, sectorSize: Int = 4096, eraseTime: Duration = .zero, writeRate: Int? = nil,
      syncTime: Duration = .zero, erasesAtOpen: Bool = false
    ) {
      // Offsets must fit an array index.
      self.capacity = min(capacity, 1 << 46)
      self.sectorSize = max(sectorSize, 1)
      self.eraseTime = eraseTime
      self.writeRate = writeRate.map { max($0, 1) }
      self.syncTime = syncTime
      self.erasesAtOpen = erasesAtOpen
    }
  }

  /// Which writes a programmed fault hits.
  public enum Occurrence: Hashable, Sendable {
    /// The next one.
    case once
    /// Each one.
    case always
  }

  /// How it is built.
  public let profile: Profile
  private let cells: PosixMutex<Cells>

  /// An empty flash.
  public init(profile: Profile = Profile()) {
    self.profile = profile
    cells = PosixMutex(Cells())
  }

  public func limits() throws(TransferError) -> StorageLimits {
    let used = cells.withLock { $0.finishedBytes }
    return StorageLimits(
      largestObject: profile.capacity, freeSpace: profile.capacity > used ? profile.capacity - used : 0)
  }

  /// Unfinished parts of other objects, unless in use, make room for a new object as in a device with one update slot.
  public func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening {
    let profile = profile
    let result = try cells.withLock { cells throws(TransferError) in
      try cells.open(object, profile: profile)
    }
    guard let result else { return .complete(location: object.name) }
    return .part(Part(flash: self, object: object, lease: result.lease), busy: result.busy)
  }

  public func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase? {
    let bytes = cells.withLock { cells in
      cells.finished.values.first { $0.sha256 == wanted.sha256 }?.bytes.data
    }
    guard let bytes else { return nil }
    return try ProvedBase(MemorySource(bytes), answering: wanted)
  }

  // MARK: What tests and demos do to it

  /// Puts a finished object there, as at the factory.
  public func install(_ contents: Data, as name: String) throws(TransferError) {
    let digest = try SHA256Hasher.digest(of: contents)
    var bytes = CellBytes()
    bytes.write(contents, at: 0)
    cells.withLock { $0.finished[name] = Cells.Finished(sha256: digest, bytes: bytes) }
  }

  /// The contents of a finished object.
  public func contents(of name: String) -> Data? { cells.withLock { $0.finished[name]?.bytes.data } }

  /// Names of all finished objects, sorted.
  public var names: [String] { cells.withLock { $0.finished.keys.sorted() } }

  /// The durable offset of an unfinished part; nil if there is none.
  public func durableOffset(of sha256: SHA256Digest) -> UInt64? {
    cells.withLock { $0.parts[sha256]?.durable }
  }

  /// Inverts all bits of a byte that is stored already, in the part or in the finished object of that hash; false if there is none.
  @discardableResult
  public func corrupt(_ sha256: SHA256Digest, at offset: UInt64) -> Bool {
    cells.withLock { $0.corrupt(sha256, at: offset) }
  }

  /// Programs a fault: the byte at `offset` of whatever object is stored inverted when it is written.
  public func corruptWrites(at offset: UInt64, _ occurrence: Occurrence = .once) {
    cells.withLock { $0.corruptions[offset] = occurrence }
  }

  /// Programs a fault: a write that covers the byte at `offset` fails, and stores nothing.
  public func failWrites(at offset: UInt64, _ occurrence: Occurrence = .once) {
    cells.withLock { $0.failures[offset] = occurrence }
  }

  /// Forgets everything that was not synced; each open part becomes unusable and must be opened again.
  public func powerCut() {
    cells.withLock { $0.powerCut(sectorSize: UInt64(profile.sectorSize)) }
  }
}

extension SimulatedFlash {
  /// A part in use; valid until it is closed or the power is cut.
  private final class Part: ReceiverPart {
    let object: ReceivedObject
    private let flash: SimulatedFlash
    private let lease: UInt64

    init(flash: SimulatedFlash, object: ReceivedObject, lease: UInt64) {
      self.flash = flash
      self.object = object
      self.lease = lease
    }

    deinit { close() }

    var durableOffset: UInt64 {
      flash.cells.withLock { cells in
        guard let slot = cells.parts[object.sha256], slot.lease == lease else { return 0 }
        return slot.durable
      }
    }

    func write(_ bytes: Data, at offset: UInt64) throws(TransferError) -> Duration {
      let (profile, object, lease) = (flash.profile, object, lease)
      return try flash.cells.withLock { cells throws(TransferError) in
        try cells.write(bytes, at: offset, object, lease, profile)
      }
    }

    func sync(through offset: UInt64) throws(TransferError) -> Duration {
      let (object, lease) = (object, lease)
      try flash.cells.withLock { cells throws(TransferError) in
        let slot = try cells.slot(object, lease)
        guard offset <= object.size, offset >= slot.durable, offset <= slot.bytes.count else {
          throw .rangeOutside("sync", "through \(offset)", of: object)
        }
        cells.parts[object.sha256]?.durable = offset
      }
      return flash.profile.syncTime
    }

    func rewind(to offset: UInt64) throws(TransferError) {
      let (object, lease, sectorSize) = (object, lease, UInt64(flash.profile.sectorSize))
      try flash.cells.withLock { cells throws(TransferError) in
        let slot = try cells.slot(object, lease)
        guard offset <= slot.durable else { throw .rangeOutside("rewind", "to \(offset)", of: object) }
        cells.parts[object.sha256]?.durable = offset
        cells.parts[object.sha256]?.forgetErased(after: offset, sectorSize: sectorSize)
      }
    }

    func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
      let (object, lease) = (object, lease)
      return try flash.cells.withLock { cells throws(TransferError) in
        let slot = try cells.slot(object, lease)
        guard count >= 0, offset <= object.size, UInt64(count) <= object.size - offset else {
          throw .rangeOutside("read", "\(count) bytes at \(offset)", of: object)
        }
        return slot.bytes.read(at: offset, count: count)
      }
    }

    func commit(verified digest: SHA256Digest) throws(TransferError) -> String {
      let (object, lease) = (object, lease)
      try flash.cells.withLock { cells throws(TransferError) in
        let slot = try cells.slot(object, lease)
        try object.checkComplete(digest: digest, durable: slot.durable)
        cells.finished[object.name] = Cells.Finished(sha256: object.sha256, bytes: slot.bytes)
        cells.parts[object.sha256] = nil
      }
      return object.name
    }

    func discard() throws(TransferError) {
      let (object, lease) = (object, lease)
      try flash.cells.withLock { cells throws(TransferError) in
        _ = try cells.slot(object, lease)
        cells.parts[object.sha256] = nil
      }
    }

    func close() {
      flash.cells.withLock { cells in
        if cells.parts[object.sha256]?.lease == lease { cells.parts[object.sha256]?.lease = nil }
      }
    }
  }
}

extension ReceivedObject {
  /// What every storage asks before it gives an object its final name.
  func checkComplete(digest: SHA256Digest, durable: UInt64) throws(TransferError) {
    guard durable == size else {
      throw TransferError(
        .verificationFailed, "only \(durable) of \(size) bytes of the object are stored",
        advice: "resume the transfer")
    }
    guard digest == sha256 else {
      throw TransferError(
        .verificationFailed, "the stored object has SHA-256 \(digest.hex), announced was \(sha256.hex)",
        advice: "transfer it again from the start")
    }
  }
}
