internal import Foundation

/// An object cut into segments of equal size, each with its CRC-32C; the last one may be shorter.
public struct SegmentTable: Hashable, Sendable {
  /// Powers of two that a segment may have: 4 KiB to 1 MiB.
  public static let allowedSizes = 1 << 12...1 << 20

  /// Bytes in each segment but the last.
  public let segmentSize: Int
  /// Bytes of the object.
  public let objectSize: UInt64
  /// CRC-32C of each segment, in order.
  public let checksums: [UInt32]

  /// A table that was stored.
  ///
  /// - Throws: `invalidArgument` if the segment size is not allowed or the number of checksums does not follow from the sizes.
  public init(segmentSize: Int, objectSize: UInt64, checksums: [UInt32]) throws(TransferError) {
    try Self.check(segmentSize: segmentSize)
    let expected = Self.count(segmentSize: segmentSize, objectSize: objectSize)
    guard UInt64(checksums.count) == expected else {
      throw TransferError(
        .invalidArgument,
        "\(checksums.count) segment checksums for \(expected) segments of \(segmentSize) bytes")
    }
    self.segmentSize = segmentSize
    self.objectSize = objectSize
    self.checksums = checksums
  }

  /// The segment size for an object of `objectSize` bytes where nobody chose one: few enough segments, and no larger than needed.
  public static func defaultSegmentSize(for objectSize: UInt64) -> Int {
    var size = 1 << 14
    while size < allowedSizes.upperBound, count(segmentSize: size, objectSize: objectSize) > 4096 {
      size *= 2
    }
    return size
  }

  /// The bytes of segment `index`, which is within the table.
  public func range(of index: Int) -> Range<UInt64> {
    let start = UInt64(index) * UInt64(segmentSize)
    return start..<min(start + UInt64(segmentSize), objectSize)
  }

  /// The segment that holds the byte at `offset`; nil outside of the object.
  public func index(containing offset: UInt64) -> Int? {
    offset < objectSize ? Int(offset / UInt64(segmentSize)) : nil
  }

  static func check(segmentSize: Int) throws(TransferError) {
    guard allowedSizes.contains(segmentSize), segmentSize & (segmentSize - 1) == 0 else {
      throw TransferError(
        .invalidArgument, "a segment cannot have \(segmentSize) bytes",
        advice: "choose a power of two from \(allowedSizes.lowerBound) to \(allowedSizes.upperBound)")
    }
  }

  private static func count(segmentSize: Int, objectSize: UInt64) -> UInt64 {
    let size = UInt64(segmentSize)
    return objectSize / size + (objectSize % size == 0 ? 0 : 1)
  }
}

extension SegmentTable {
  /// The checksums as base64 of little-endian words.
  var base64: String {
    var bytes = Data(capacity: 4 * checksums.count)
    for word in checksums {
      for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    return bytes.base64EncodedString()
  }

  /// Reads base64 of little-endian words; nil if it is none.
  static func checksums(base64: String) -> [UInt32]? {
    guard let bytes = Data(base64Encoded: base64), bytes.count % 4 == 0 else { return nil }
    return stride(from: bytes.startIndex, to: bytes.endIndex, by: 4).map { start in
      (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[start + $1]) << (8 * $1) }
    }
  }
}

/// Computes the checksums of an object while its bytes pass by in order: the whole hash and the table of segments in one reading.
struct ObjectScanner: ~Copyable {
  private let segmentSize: Int
  private let hasher = SHA256Hasher()
  private var crc = CRC32C()
  private var checksums: [UInt32] = []
  private var size: UInt64 = 0

  init(segmentSize: Int) throws(TransferError) {
    try SegmentTable.check(segmentSize: segmentSize)
    self.segmentSize = segmentSize
  }

  mutating func update(_ bytes: Data) {
    hasher.update(bytes)
    var rest = bytes
    while !rest.isEmpty {
      let part = rest.prefix(segmentSize - Int(size % UInt64(segmentSize)))
      crc.update(part)
      size += UInt64(part.count)
      rest = rest.dropFirst(part.count)
      if size % UInt64(segmentSize) == 0 { endSegment() }
    }
  }

  consuming func finish() throws(TransferError) -> (sha256: SHA256Digest, segments: SegmentTable) {
    if size % UInt64(segmentSize) != 0 { endSegment() }
    let table = try SegmentTable(segmentSize: segmentSize, objectSize: size, checksums: checksums)
    return (try hasher.finalize(), table)
  }

  private mutating func endSegment() {
    checksums.append(crc.value)
    crc = CRC32C()
  }
}
