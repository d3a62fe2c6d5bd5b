internal import CISAL
public import Foundation

/// A CRC-32C (Castagnoli, RFC 3720 section 12.1) that is fed piece by piece.
///
/// How the bytes are cut makes no difference to ``value``. The same checksum guards iSCSI, SCTP and ext4; its check value over the
/// nine ASCII digits `123456789` is `0xE3069283`.
public struct CRC32C: Hashable, Sendable {
  /// The register as the library wants it, before the final inversion.
  private var register: UInt32

  /// A checksum over no bytes; its value is 0.
  public init() { register = ~0 }

  /// Goes on from the value of the bytes before.
  public init(continuing value: UInt32) { register = ~value }

  /// The checksum of everything fed so far.
  public var value: UInt32 { ~register }

  /// Feeds more bytes.
  public mutating func update(_ bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Feeds more bytes.
  public mutating func update(_ bytes: Data) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Feeds more bytes.
  public mutating func update(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Feeds more bytes.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard var next = bytes.baseAddress else { return }
    var left = bytes.count
    while left > 0 {
      // The library counts in `int`.
      let count = min(left, 1 << 30)
      // The parameter lacks `const` in the header; the function only reads.
      let readOnly = unsafe UnsafeMutableRawPointer(mutating: next).assumingMemoryBound(to: UInt8.self)
      register = unsafe crc32_iscsi(readOnly, Int32(count), register)
      unsafe next += count
      left -= count
    }
  }

  /// The checksum of `bytes` in one go.
  public static func checksum(of bytes: Data) -> UInt32 {
    var crc = Self()
    crc.update(bytes)
    return crc.value
  }

  /// The checksum of `bytes` in one go.
  public static func checksum(of bytes: [UInt8]) -> UInt32 {
    var crc = Self()
    crc.update(bytes)
    return crc.value
  }
}
