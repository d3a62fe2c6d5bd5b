public import Foundation

/// An object that is to be sent.
public struct OutgoingObject: Hashable, Sendable {
  /// 1...200 octets of UTF-8.
  public var name: String
  /// In octets, at least 1 and below 2^48.
  public var size: UInt64
  public var sha256: SHA256Digest
  /// What its segments have to look like when they are read again; nil where nobody knows.
  public var checksums: SegmentChecksums?
  /// How it may be coded; nil: it travels as it is.
  public var coding: ObjectCoding?

  public init(
    name: String, size: UInt64, sha256: SHA256Digest, checksums: SegmentChecksums? = nil,
    coding: ObjectCoding? = nil
  ) {
    self.name = name
    self.size = size
    self.sha256 = sha256
    self.checksums = checksums
    self.coding = coding
  }

  func check() throws(TransferError) {
    guard size > 0, size < 1 << 48 else {
      throw TransferError(
        .invalidArgument, "\(name) has \(size) bytes", advice: "choose a file with contents")
    }
    guard (1...200).contains(name.utf8.count) else {
      throw TransferError(
        .invalidArgument, "the name \(name.prefix(40)) has \(name.utf8.count) bytes",
        advice: "choose a name of 1 to 200 bytes")
    }
    if let base = coding?.base {
      guard base.size > 0, base.size < 1 << 48, base.challenge.count == BaseImage.challengeCount,
        base.proof.count == BaseImage.proofCount
      else {
        throw TransferError(
          .invalidArgument,
          "the base of \(name) has \(base.size) bytes, a challenge of \(base.challenge.count) and a proof of \(base.proof.count)",
          advice: "make it with BaseImage(of:challenge:), from a file with contents")
      }
    }
    if let checksums, checksums.values.count != checksums.count(forSize: size) {
      throw TransferError(
        .invalidArgument,
        "\(name) has \(size) bytes and \(checksums.values.count) checksums of segments of \(checksums.segmentSize)",
        advice: "create the manifest again")
    }
  }
}

/// CRC-32C values of an object's segments, as they were when the transfer was planned.
///
/// These segments serve to notice that a file changes while it is sent. They have nothing to do with the segments on the air.
public struct SegmentChecksums: Hashable, Sendable {
  /// The largest segment: a sender holds one in memory.
  public static let largestSegment = 1 << 22

  /// In octets.
  public let segmentSize: Int
  /// One for each segment; the last segment may be shorter.
  public let values: [UInt32]

  /// Takes the checksums of segments of 1...4 MiB; throws for another size.
  public init(segmentSize: Int, values: [UInt32]) throws(TransferError) {
    guard (1...Self.largestSegment).contains(segmentSize) else {
      throw TransferError(
        .invalidArgument, "the segment size is \(segmentSize)",
        advice: "choose 1 to \(Self.largestSegment) bytes")
    }
    self.segmentSize = segmentSize
    self.values = values
  }

  func count(forSize size: UInt64) -> Int {
    Int((size + UInt64(segmentSize) - 1) / UInt64(segmentSize))
  }
}

/// Reads octets of an object: its index, the offset, how many. Returns exactly that many.
public typealias ObjectReader = (_ object: Int, _ offset: UInt64, _ count: Int) throws(TransferError) -> Data

/// The part of an object that is in memory, ready to be sent: one block, read and compared as a whole.
///
/// Where checksums are known a block is one of their segments, so that no octet of a changed file leaves before the change is noticed.
struct StagedBlock: Sendable {
  private static let plainBlock = 1 << 16

  private(set) var bytes = Data()
  private(set) var start: UInt64 = 0

  /// The end of the block in the object.
  var end: UInt64 { start + UInt64(bytes.count) }

  /// Makes the block hold `offset`.
  mutating func load(
    _ offset: UInt64, of object: OutgoingObject, index: Int, read: ObjectReader
  ) throws(TransferError) {
    if offset >= start, offset < end { return }
    let size = UInt64(object.checksums?.segmentSize ?? Self.plainBlock)
    let number = offset / size
    let blockStart = number * size
    let count = Int(min(size, object.size - blockStart))
    // The old block is let go first: one block is all that is held.
    bytes = Data()
    let block = try read(index, blockStart, count)
    guard block.count == count else {
      throw .changed(object, "it ended at \(blockStart + UInt64(block.count)) of \(object.size) bytes")
    }
    if let checksums = object.checksums, CRC32C.checksum(of: block) != checksums.values[Int(number)] {
      throw .changed(
        object, "bytes \(blockStart)..<\(blockStart + UInt64(count)) are others than when it was planned")
    }
    bytes = block
    start = blockStart
  }

  /// The octets of a range within the block, without copying them.
  func slice(_ range: Range<UInt64>) -> Data {
    let first = bytes.startIndex + Int(range.lowerBound - start)
    return bytes[first..<(first + Int(range.upperBound - range.lowerBound))]
  }
}

extension TransferError {
  fileprivate static func changed(_ object: OutgoingObject, _ how: String) -> TransferError {
    TransferError(
      .unusableFile, "\(object.name) has changed while it was sent: \(how)",
      advice: "do not write to the file during a transfer, and start again")
  }
}
