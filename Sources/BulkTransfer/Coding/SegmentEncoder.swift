public import Foundation

/// Codes a segment: the object's index, the octets, and the part of the base that is their prefix, if there is one.
///
/// Returns a Zstandard frame, or nil where that would not be shorter.
public typealias SegmentEncoding = (_ object: Int, _ segment: Data, _ base: Range<UInt64>?)
  throws(TransferError) -> Data?

/// Codes segments for a sender session, at levels that cost less time than the link takes for what they save.
///
/// Holds one part of a base, at most 1 MiB, and libzstd's tables: about 1 MiB without a base, 13 MiB with segments of 1 MiB, and up to
/// 25 MiB with a base. For one thread or one serial queue at a time.
public final class SegmentEncoder {
  /// The largest part of a base that this encoder uses, as a power of two.
  static let basePower: UInt8 = 20
  /// For segments without a base: some 30 MB a second on a desktop.
  static let plainLevel: Int32 = 9
  /// With a base, while that and the segment are at most ``smallCount`` octets: what `zstd -19` finds, in some 30 ms.
  static let smallBaseLevel: Int32 = 19
  /// With a larger base: within two per cent of that, in a tenth of the time.
  static let largeBaseLevel: Int32 = 12
  static let smallCount = 1 << 19

  private var encoder = ZstdEncoder()
  private let bases: [(any ByteSource)?]
  private var staged = StagedBase()
  private var stagedObject: Int?

  /// Makes an encoder for objects of which some have a base.
  public init(bases: [(any ByteSource)?] = []) { self.bases = bases }

  /// Codes a segment; see ``SegmentEncoding``.
  public func encode(
    _ segment: Data, of object: Int, base range: Range<UInt64>?
  ) throws(TransferError) -> Data? {
    guard let range, bases.indices.contains(object), let base = bases[object] else {
      return try encoder.encode(segment, prefix: Data(), level: Self.plainLevel)
    }
    if stagedObject != object { staged = StagedBase() }
    stagedObject = object
    let prefix = try staged.load(range, of: base)
    let isSmall = prefix.count + segment.count <= Self.smallCount
    return try encoder.encode(
      segment, prefix: prefix, level: isSmall ? Self.smallBaseLevel : Self.largeBaseLevel)
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
      coded += try encoder.encode(segment, prefix: Data(), level: Self.plainLevel)?.count ?? count
      // The length before a segment.
      coded += CodedStream.lengthCount
      taken += count
    }
    return coded + taken / 64 < taken
  }
}
