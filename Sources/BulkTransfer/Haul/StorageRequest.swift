public import Foundation

/// What a receiver session wants from its storage. Requests are carried out in the order in which they come; after one has failed, none
/// but `discard` and `close` is carried out for the same object, lest a later sync vouch for what was not written.
public struct StorageRequest: Hashable, Sendable {
  /// What is to be done.
  public enum Operation: Hashable, Sendable {
    /// Find an older object, for the one that is opened next; never fails. Answered by `base`.
    case findBase(BaseRequest)
    /// Find or begin the object; `discarding`: forget what is stored of it first. Answered by `opened` or `complete`.
    case open(ReceivedObject, discarding: Bool)
    /// Store verified octets. Answered by `wrote`.
    case write(Data, at: UInt64)
    /// Decode a verified segment and store what comes out. Answered by `wrote`, or by `failed` with `undecodable` where nothing was stored.
    case decode(CodedSegment)
    /// Make durable what lies before the offset. Answered by `synced`.
    case sync(through: UInt64)
    /// Read octets back from the medium and hash them; offset 0 starts the hash. Answered by `readBack`, at the object's end by `hashed`.
    case readBack(at: UInt64, count: Int)
    /// Give the object its final name. Answered by `committed`.
    case commit(SHA256Digest)
    /// Remove what is stored; ends the use of the object. Not answered.
    case discard
    /// End the use of the object and keep what is stored. Not answered.
    case close
  }

  /// The object's number in this session, counted by the session with each `open`; each report carries it.
  public var object: UInt32
  public var operation: Operation

  public init(object: UInt32, operation: Operation) {
    self.object = object
    self.operation = operation
  }
}

/// A segment as it has travelled, its check value found right.
public struct CodedSegment: Hashable, Sendable {
  /// One Zstandard frame.
  public var frame: Data
  /// Where its octets belong in the object.
  public var offset: UInt64
  /// How many have to come out.
  public var count: Int
  /// How much of the base is its prefix, as a power of two; nil: it has none.
  public var basePower: UInt8?

  /// Where they belong, as a range.
  var range: Range<UInt64> { offset..<(offset + UInt64(max(count, 0))) }

  public init(frame: Data, offset: UInt64, count: Int, basePower: UInt8?) {
    self.frame = frame
    self.offset = offset
    self.count = count
    self.basePower = basePower
  }
}

/// What a storage answers.
public struct StorageReport: Hashable, Sendable {
  /// The answer.
  public enum Result: Hashable, Sendable {
    /// The proof that the base is stored here; nil where it is not.
    case base(proof: [UInt8]?)
    /// The object is open; what lies before `durable` is stored.
    case opened(durable: UInt64)
    /// The object is there already, whole, and was read back and hashed just now.
    case complete(location: String)
    /// The medium works for so long; another report follows.
    case busy(Duration)
    case wrote(through: UInt64)
    case synced(through: UInt64)
    case readBack(through: UInt64)
    case hashed(SHA256Digest)
    case committed(location: String)
    case failed(TransferError)
  }

  public var object: UInt32
  public var result: Result

  public init(object: UInt32, result: Result) {
    self.object = object
    self.result = result
  }
}

/// Carries out a receiver session's requests on a ``ReceiverStorage``.
///
/// Blocks while the medium works. For one thread or one serial queue at a time.
public final class StorageWorker {
  private let storage: any ReceiverStorage
  private var part: (any ReceiverPart)?
  /// Why the part takes nothing more.
  private var failure: TransferError?
  private var hasher = SHA256Hasher()
  private var hashed: UInt64 = 0
  private var decoder = ZstdDecoder()
  private var base: (any ByteSource)?
  private var stagedBase = StagedBase()

  public init(_ storage: any ReceiverStorage) { self.storage = storage }

  /// Carries out one request.
  ///
  /// - Returns: the report, nil where none is due; and how long a simulated medium is busy before the report counts. Where that is
  ///   longer than a moment the shell reports ``StorageReport/Result/busy(_:)`` at once.
  public func perform(_ request: StorageRequest) -> (report: StorageReport?, busy: Duration) {
    do throws(TransferError) {
      let (result, busy) = try result(of: request.operation)
      return (result.map { StorageReport(object: request.object, result: $0) }, busy)
    } catch {
      failure = error
      switch request.operation {
      case .discard, .close: return (nil, .zero)
      default: return (StorageReport(object: request.object, result: .failed(error)), .zero)
      }
    }
  }

  private func result(
    of operation: StorageRequest.Operation
  ) throws(TransferError) -> (StorageReport.Result?, Duration) {
    switch operation {
    case .findBase(let wanted):
      return (.base(proof: findBase(wanted)), .zero)
    case .open(let object, let discarding):
      return try open(object, discarding: discarding)
    case .write(let bytes, let offset):
      let busy = try opened().write(bytes, at: offset)
      return (.wrote(through: offset + UInt64(bytes.count)), busy)
    case .decode(let segment):
      let part = try opened()
      let busy = try part.write(try decode(segment), at: segment.offset)
      return (.wrote(through: segment.offset + UInt64(segment.count)), busy)
    case .sync(let offset):
      let busy = try opened().sync(through: offset)
      return (.synced(through: offset), busy)
    case .readBack(let offset, let count):
      return (try readBack(offset, count), .zero)
    case .commit(let digest):
      let location = try opened().commit(verified: digest)
      part = nil
      letGoOfBase()
      return (.committed(location: location), .zero)
    case .discard:
      letGoOfBase()
      try part?.discard()
      part = nil
      return (nil, .zero)
    case .close:
      part?.close()
      part = nil
      letGoOfBase()
      return (nil, .zero)
    }
  }

  /// Looks for a base and reads all of it; what cannot be read is not there.
  private func findBase(_ wanted: BaseRequest) -> [UInt8]? {
    letGoOfBase()
    guard let found = try? storage.base(wanted) else { return nil }
    base = found.source
    return found.proof
  }

  private func letGoOfBase() {
    base = nil
    stagedBase = StagedBase()
  }

  /// - Throws: `undecodable` alone: trouble with the base, or a want of memory, costs the coding and not the object.
  private func decode(_ segment: CodedSegment) throws(TransferError) -> Data {
    do throws(TransferError) {
      var prefix = Data()
      if let power = segment.basePower {
        guard let base else { throw TransferError(.undecodable, "the base is not there any more") }
        prefix = try stagedBase.load(
          BaseWindow.range(of: segment.range, baseSize: base.size, power: power), of: base)
      }
      return try decoder.decode(segment.frame, count: segment.count, prefix: prefix)
    } catch {
      guard error.code != .undecodable else { throw error }
      throw TransferError(.undecodable, error.message, advice: error.advice)
    }
  }

  private func opened() throws(TransferError) -> any ReceiverPart {
    if let failure { throw failure }
    guard let part else { throw TransferError(.storage, "no object is open", isRetriable: true) }
    return part
  }

  private func open(
    _ object: ReceivedObject, discarding: Bool
  ) throws(TransferError) -> (StorageReport.Result, Duration) {
    part?.close()
    part = nil
    failure = nil
    var opensPart = false
    // Without a part nothing will be decoded.
    defer { if !opensPart { letGoOfBase() } }
    var opening = try storage.open(object)
    if discarding, case .part(let stored, _) = opening {
      try stored.discard()
      opening = try storage.open(object)
    }
    switch opening {
    case .complete(let location):
      return (.complete(location: location), .zero)
    case .part(let opened, let busy):
      part = opened
      opensPart = true
      return (.opened(durable: opened.durableOffset), busy)
    }
  }

  private func readBack(_ offset: UInt64, _ count: Int) throws(TransferError) -> StorageReport.Result {
    let part = try opened()
    if offset == 0 {
      hasher = SHA256Hasher()
      hashed = 0
    }
    guard offset == hashed else { throw TransferError(.storage, "the object was not read back in order") }
    hasher.update(try part.read(at: offset, count: count))
    hashed += UInt64(count)
    return hashed < part.object.size ? .readBack(through: hashed) : .hashed(try hasher.finalize())
  }
}
