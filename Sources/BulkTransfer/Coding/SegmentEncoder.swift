public import Foundation
internal import Locking

/// Codes a segment: the object's index, the octets, and the part of the base that is their prefix, if there is one.
///
/// Returns a Zstandard frame, or nil where that would not be shorter.
public typealias SegmentEncoding = (_ object: Int, _ segment: Data, _ base: Range<UInt64>?)
  throws(TransferError) -> Data?

/// Codes segments for sender sessions, at the best level that the caller has time for.
///
/// Holds one part of a base, at most 1 MiB, and libzstd's tables: about 1 MiB without a base, 13 MiB with segments of 1 MiB, and up to
/// 25 MiB with a base. May be shared by pushes: one segment is coded at a time, and the memory is that of one.
// Sendable: `encoder`, `staged` and `stagedSource` are touched under `lock` only.
public final class SegmentEncoder: @unchecked Sendable {
  /// The largest part of a base that this encoder uses, as a power of two.
  static let basePower: UInt8 = 20
  /// For segments without a base: some 30 MB a second on a desktop.
  static let plainLevels: [Int32] = [9, 3]
  /// With a base, while that and the segment are at most ``smallCount`` octets: what `zstd -19` finds, in some 100 ms for 256 KiB.
  static let smallBaseLevels: [Int32] = [19, 12, 9, 3]
  /// With a larger base: a tenth of that time, for some per cent more octets.
  static let largeBaseLevels: [Int32] = [12, 9, 3]
  static let smallCount = 1 << 19
  /// Steps from the best level to none at all.
  static let steps = smallBaseLevels.count

  private let lock = PosixMutex(())
  private var encoder = ZstdEncoder()
  private var staged = StagedBase()
  private var stagedSource: (any ByteSource)?

  /// Makes an encoder.
  public init() {}

  /// Codes a segment.
  ///
  /// - Parameters:
  ///   - base: the base and the part of it that is the segment's prefix; nil where there is none.
  ///   - reduction: steps below the best level: each is several times as fast as the one before, and after the last the segment
  ///     travels as it is.
  /// - Returns: a frame; nil where that would not be shorter, or is not to be.
  /// - Throws: what reading the base throws, and `outOfMemory`.
  public func encode(
    _ segment: Data, base: (source: any ByteSource, range: Range<UInt64>)? = nil, reduction: Int = 0
  ) throws(TransferError) -> Data? {
    guard let base else {
      guard let level = Self.level(Self.plainLevels, reduction) else { return nil }
      return try encode(segment, prefix: Data(), level: level)
    }
    let prefixCount = Int(clamping: base.range.upperBound - base.range.lowerBound)
    let isSmall = prefixCount + segment.count <= Self.smallCount
    guard let level = Self.level(isSmall ? Self.smallBaseLevels : Self.largeBaseLevels, reduction) else {
      return nil
    }
    return try encode(segment, prefix: try prefix(base.source, base.range), level: level)
  }

  /// Lets go of the memory; the next segment takes it anew.
  public func release() {
    lock.withLock { _ in
      encoder = ZstdEncoder()
      staged = StagedBase()
      stagedSource = nil
    }
  }

  private func encode(_ segment: Data, prefix: Data, level: Int32) throws(TransferError) -> Data? {
    try lock.withLock { _ throws(TransferError) in
      try encoder.encode(segment, prefix: prefix, level: level)
    }
  }

  private func prefix(_ source: any ByteSource, _ range: Range<UInt64>) throws(TransferError) -> Data {
    try lock.withLock { _ throws(TransferError) in
      if stagedSource !== source { staged = StagedBase() }
      stagedSource = source
      return try staged.load(range, of: source)
    }
  }

  private static func level(_ levels: [Int32], _ reduction: Int) -> Int32? {
    let step = max(reduction, 0)
    return levels.indices.contains(step) ? levels[step] : nil
  }

  /// Whether compression pays, as the first segments tell: at least a sixty-fourth has to be saved.
  ///
  /// - Throws: what reading throws.
  public func pays(for source: any ByteSource) throws(TransferError) -> Bool {
    let step = 1 << Int(HaulConfiguration.plainCodedPower)
    var (taken, coded): (Int, Int) = (0, 0)
    while taken < 4 * step, UInt64(taken) < source.size {
      let count = Int(min(UInt64(step), source.size - UInt64(taken)))
      let segment = try source.read(at: UInt64(taken), count: count)
      // Without memory there is no compression, and what it might have saved is not to be known.
      coded += (try? encode(segment))??.count ?? count
      // The length before a segment.
      coded += CodedStream.lengthCount
      taken += count
    }
    return coded + taken / 64 < taken
  }
}
