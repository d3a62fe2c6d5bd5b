internal import Foundation

/// How an object may be coded where the receiver can decode it (docs/protocol.md, section 11).
public struct ObjectCoding: Hashable, Sendable {
  /// Whether segments are compressed where there is no base in common.
  public var compresses: Bool
  /// An older image that the receiver may hold.
  public var base: BaseImage?

  /// Makes a choice.
  public init(compresses: Bool, base: BaseImage? = nil) {
    self.compresses = compresses
    self.base = base
  }
}

/// An older image as both sides have to know it: identity, and the proof that the other one holds it too.
public struct BaseImage: Hashable, Sendable {
  /// Octets of a challenge.
  public static let challengeCount = 8
  /// Octets of a proof.
  public static let proofCount = 16

  /// SHA-256 of all its octets.
  public var sha256: SHA256Digest
  /// In octets, at least 1 and below 2^48.
  public var size: UInt64
  /// What the proof is made from besides the octets; random.
  public var challenge: [UInt8]
  /// The first octets of SHA-256(challenge | octets).
  public var proof: [UInt8]

  /// Reads a base once.
  ///
  /// - Parameter challenge: eight octets; of another count, cut or filled with zeros.
  /// - Throws: what reading throws, and `hash-unavailable`.
  public init(of source: any ByteSource, challenge: [UInt8]) throws(TransferError) {
    let filled = challenge.prefix(Self.challengeCount)
    self.challenge = filled + [UInt8](repeating: 0, count: Self.challengeCount - filled.count)
    size = source.size
    let contents = SHA256Hasher()
    let proving = SHA256Hasher()
    proving.update(self.challenge)
    try source.forEachBlock(step: 1 << 18) { block throws(TransferError) in
      contents.update(block)
      proving.update(block)
    }
    sha256 = try contents.finalize()
    proof = Array(try proving.finalize().bytes.prefix(Self.proofCount))
  }
}

/// Which part of a base a segment may refer to.
enum BaseWindow {
  /// The powers of two that a window may be.
  static let powers: ClosedRange<UInt8> = 10...27

  /// The octets of the base that are the prefix of a segment: those around its middle.
  static func range(of segment: Range<UInt64>, baseSize: UInt64, power: UInt8) -> Range<UInt64> {
    let most: UInt64 = 1 << UInt64(min(max(power, powers.lowerBound), powers.upperBound))
    guard baseSize > most else { return 0..<baseSize }
    let middle = segment.lowerBound + (segment.upperBound - segment.lowerBound) / 2
    let start = min(middle - min(middle, most / 2), baseSize - most)
    return start..<(start + most)
  }
}

extension ByteSource {
  /// Reads a range that may be longer than one read gives.
  func read(_ range: Range<UInt64>) throws(TransferError) -> Data {
    var bytes = Data()
    bytes.reserveCapacity(Int(clamping: range.upperBound - range.lowerBound))
    var offset = range.lowerBound
    while offset < range.upperBound {
      let count = Int(min(UInt64(Self.longestRead), range.upperBound - offset))
      bytes.append(try read(at: offset, count: count))
      offset += UInt64(count)
    }
    return bytes
  }
}

/// The part of a base that was used last: segments of one place share it.
struct StagedBase {
  private var range: Range<UInt64> = 0..<0
  private var bytes = Data()

  /// The octets of a range.
  mutating func load(_ wanted: Range<UInt64>, of base: any ByteSource) throws(TransferError) -> Data {
    if wanted == range { return bytes }
    // The old part is let go first: one is all that is held.
    self = StagedBase()
    bytes = try base.read(wanted)
    range = wanted
    return bytes
  }
}
