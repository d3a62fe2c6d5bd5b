internal import Foundation

/// Reads little-endian fields from octets that a peer has sent; never beyond their end.
struct MessageReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(_ bytes: Data) { self.bytes = unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) } }

  /// Octets not yet read.
  var remaining: Int { bytes.count - position }

  /// Reads an unsigned integer of `count` octets, at most eight.
  private mutating func integer(_ count: Int) throws(HaulCodingError) -> UInt64 {
    guard remaining >= count else { throw .truncated }
    var value: UInt64 = 0
    for index in 0..<count { value |= UInt64(bytes[position + index]) << UInt64(8 * index) }
    position += count
    return value
  }

  mutating func u8() throws(HaulCodingError) -> UInt8 { UInt8(truncatingIfNeeded: try integer(1)) }
  mutating func u16() throws(HaulCodingError) -> UInt16 { UInt16(truncatingIfNeeded: try integer(2)) }
  mutating func u32() throws(HaulCodingError) -> UInt32 { UInt32(truncatingIfNeeded: try integer(4)) }
  mutating func u48() throws(HaulCodingError) -> UInt64 { try integer(6) }
  mutating func u64() throws(HaulCodingError) -> UInt64 { try integer(8) }

  mutating func octets(_ count: Int) throws(HaulCodingError) -> [UInt8] {
    guard count >= 0, remaining >= count else { throw .truncated }
    defer { position += count }
    return Array(bytes[position..<(position + count)])
  }

  mutating func digest() throws(HaulCodingError) -> SHA256Digest {
    guard let digest = SHA256Digest(bytes: try octets(SHA256Digest.byteCount)) else { throw .truncated }
    return digest
  }

  /// Reads a length octet and that many octets of UTF-8; broken sequences become replacement characters.
  mutating func text() throws(HaulCodingError) -> String {
    let count = Int(try u8())
    return String(decoding: try octets(count), as: UTF8.self)
  }
}

/// Writes little-endian fields.
struct MessageWriter {
  private(set) var bytes: [UInt8] = []

  init() {
    // Most messages fit: they are made by one allocation.
    bytes.reserveCapacity(32)
  }

  var data: Data { Data(bytes) }

  private mutating func integer(_ value: UInt64, _ count: Int) {
    for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index))) }
  }

  mutating func u8(_ value: UInt8) { bytes.append(value) }
  mutating func u16(_ value: UInt16) { integer(UInt64(value), 2) }
  mutating func u32(_ value: UInt32) { integer(UInt64(value), 4) }
  mutating func u48(_ value: UInt64) { integer(value, 6) }
  mutating func u64(_ value: UInt64) { integer(value, 8) }
  mutating func octets(_ value: [UInt8]) { bytes += value }
  mutating func digest(_ value: SHA256Digest) { bytes += value.bytes }

  /// Writes a length octet and at most `limit` octets of UTF-8, cut between characters.
  mutating func text(_ value: String, limit: Int = 200) {
    var utf8: [UInt8] = []
    for character in value {
      let piece = Array(character.utf8)
      guard utf8.count + piece.count <= limit else { break }
      utf8 += piece
    }
    u8(UInt8(utf8.count))
    octets(utf8)
  }
}
