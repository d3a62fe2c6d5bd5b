public import Foundation

/// A UUID as Bluetooth uses it: 16, 32 or 128 bits, equal when their 128-bit expansions are (Core Vol 3 Part B 2.5.1).
public struct BluetoothUUID: Hashable, Sendable, CustomStringConvertible {
  /// The 16 octets of the expansion, most significant first, as two words.
  public let high: UInt64, low: UInt64

  private static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB
  private static let baseHigh: UInt64 = 0x0000_0000_0000_1000

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Expands a 16-bit alias.
  public init(_ short: UInt16) { self.init(UInt32(short)) }

  /// Expands a 32-bit alias.
  public init(_ short: UInt32) {
    self.init(high: UInt64(short) << 32 | Self.baseHigh, low: Self.baseLow)
  }

  /// Takes a full UUID.
  public init(_ uuid: UUID) {
    let b = uuid.uuid
    self.init(
      high: Self.word([b.0, b.1, b.2, b.3, b.4, b.5, b.6, b.7]),
      low: Self.word([b.8, b.9, b.10, b.11, b.12, b.13, b.14, b.15]))
  }

  /// Reads 2, 4 or 16 octets, most significant first; nil for any other count.
  public init?(bigEndian bytes: some Collection<UInt8>) {
    switch bytes.count {
    case 2, 4: self.init(bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    case 16:
      self.init(
        high: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
        low: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
    default: return nil
    }
  }

  /// Reads 2, 4 or 16 octets in the order of the air, least significant first; nil for any other count.
  public init?(littleEndian bytes: some BidirectionalCollection<UInt8>) {
    self.init(bigEndian: bytes.reversed() as [UInt8])
  }

  /// The 16-bit alias, if this UUID has one.
  public var short: UInt16? {
    guard low == Self.baseLow, high & 0xFFFF_FFFF == Self.baseHigh, high >> 48 == 0 else { return nil }
    return UInt16(truncatingIfNeeded: high >> 32)
  }

  /// The octets in the order of the air: 2 where there is a 16-bit alias, else 16.
  public var littleEndianBytes: [UInt8] {
    if let short { return [UInt8(truncatingIfNeeded: short), UInt8(short >> 8)] }
    return Array(bigEndianBytes.reversed())
  }

  /// The 16 octets, most significant first.
  public var bigEndianBytes: [UInt8] {
    (0..<16).map { i in
      UInt8(truncatingIfNeeded: (i < 8 ? high : low) >> UInt64(56 - 8 * (i % 8)))
    }
  }

  /// Four hexadecimal digits where there is a 16-bit alias, else the long form; upper case.
  public var description: String {
    let hex = bigEndianBytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
    if short != nil { return hex[2] + hex[3] }
    let joined = [hex[0..<4], hex[4..<6], hex[6..<8], hex[8..<10], hex[10..<16]]
    return joined.map { $0.joined() }.joined(separator: "-")
  }

  private static func word(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
