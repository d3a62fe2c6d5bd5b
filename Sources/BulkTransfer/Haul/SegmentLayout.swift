internal import Foundation

/// How an object lies in the data stream: cut at each multiple of the segment size and at its end.
public struct SegmentLayout: Hashable, Sendable {
  /// The powers of two that a segment size may be.
  public static let powers: ClosedRange<UInt8> = 12...20
  /// Octets of the check value after each segment.
  public static let checkCount = 4

  /// Size of the object in octets.
  public let objectSize: UInt64
  /// In octets.
  public let segmentSize: UInt64

  /// The layout of an object of `objectSize` octets in segments of two to the power of `power`, cut to 12...20.
  public init(objectSize: UInt64, power: UInt8) {
    self.objectSize = objectSize
    segmentSize = 1 << UInt64(min(max(power, Self.powers.lowerBound), Self.powers.upperBound))
  }

  /// The end of the segment that holds `offset`.
  public func segmentEnd(after offset: UInt64) -> UInt64 {
    // A power of two: as a multiple of it would be, without a division for each packet.
    min(objectSize, (offset | (segmentSize - 1)) + 1)
  }
}

/// The check value of a segment while its octets pass.
///
/// Epoch and offset are part of it, so that a segment that is lost, doubled or from an older epoch is found as surely as a flipped bit.
struct SegmentCheck {
  private var crc = CRC32C()
  private let epoch: Epoch
  private let start: UInt64

  init(epoch: Epoch, start: UInt64) {
    self.epoch = epoch
    self.start = start
  }

  mutating func update(_ bytes: UnsafeRawBufferPointer) { unsafe crc.update(bytes) }

  mutating func update(_ bytes: Data) { crc.update(bytes) }

  /// What the four octets after the segment say.
  var value: UInt32 {
    let trailer = (UInt64(epoch.rawValue) | start << 16).littleEndian
    var whole = crc
    unsafe withUnsafeBytes(of: trailer) { unsafe whole.update($0) }
    return whole.value
  }

  /// The four octets that follow the segment.
  var octets: [UInt8] {
    let value = value
    return (0..<SegmentLayout.checkCount).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * $0)) }
  }
}
