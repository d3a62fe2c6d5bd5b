/// Reads little-endian fields from bytes of a peer; each read that would pass the end answers nil and takes nothing.
struct ByteReader {
  private let bytes: [UInt8]
  private var position: Int

  /// Reads `bytes` from `start` on.
  init(_ bytes: [UInt8], from start: Int = 0) {
    self.bytes = bytes
    position = min(max(start, 0), bytes.count)
  }

  /// How many bytes are left.
  var remaining: Int { bytes.count - position }

  mutating func readUInt8() -> UInt8? {
    guard remaining >= 1 else { return nil }
    defer { position += 1 }
    return bytes[position]
  }

  mutating func readUInt16() -> UInt16? {
    guard remaining >= 2 else { return nil }
    defer { position += 2 }
    return UInt16(bytes[position]) | UInt16(bytes[position + 1]) << 8
  }

  mutating func read(_ count: Int) -> ArraySlice<UInt8>? {
    guard count >= 0, remaining >= count else { return nil }
    defer { position += count }
    return bytes[position..<position + count]
  }

  mutating func readRest() -> ArraySlice<UInt8> {
    defer { position = bytes.count }
    return bytes[position...]
  }
}

extension [UInt8] {
  /// Appends two octets, least significant first, as all of L2CAP and ATT have them.
  mutating func appendUInt16(_ value: UInt16) {
    append(UInt8(truncatingIfNeeded: value))
    append(UInt8(truncatingIfNeeded: value >> 8))
  }
}
