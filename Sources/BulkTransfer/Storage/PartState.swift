internal import Foundation

/// How much of a part is durable, as it is kept beside the part: two slots written in turn, so that a torn write spares the other.
///
/// `docs/files.md` gives the layout. Slots lie a disk sector apart; the valid one with the higher sequence number counts.
struct PartState: Hashable, Sendable {
  static let slotSize = 4096
  private static let magic = Data("BHPART\0\u{1}".utf8)

  var sequence: UInt64
  var sha256: SHA256Digest
  var size: UInt64
  var durable: UInt64
  var name: String

  /// The bytes of one slot.
  var encoded: Data {
    var bytes = Self.magic
    for word in [sequence, size, durable] { bytes.appendLittleEndian(word, count: 8) }
    bytes.append(sha256.data)
    let text = Data(name.utf8)
    bytes.appendLittleEndian(UInt64(text.count), count: 2)
    bytes.append(text)
    bytes.appendLittleEndian(UInt64(CRC32C.checksum(of: bytes)), count: 4)
    return bytes
  }

  /// Where this state is written.
  var offset: UInt64 { sequence % 2 * UInt64(Self.slotSize) }

  /// The newest whole state in the bytes of a file; nil if there is none.
  static func newest(in bytes: Data) -> PartState? {
    let slots = [bytes.prefix(slotSize), bytes.dropFirst(slotSize).prefix(slotSize)]
    return slots.compactMap { PartState(slot: Data($0)) }.max { $0.sequence < $1.sequence }
  }

  init(sequence: UInt64, object: ReceivedObject, durable: UInt64) {
    self.sequence = sequence
    self.durable = durable
    sha256 = object.sha256
    size = object.size
    name = object.name
  }

  private init?(slot: Data) {
    guard slot.starts(with: Self.magic), let length = slot.littleEndian(at: 64, count: 2) else { return nil }
    let end = 66 + Int(length)
    guard let crc = slot.littleEndian(at: end, count: 4),
      crc == UInt64(CRC32C.checksum(of: slot.prefix(end))),
      let sequence = slot.littleEndian(at: 8, count: 8), let size = slot.littleEndian(at: 16, count: 8),
      let durable = slot.littleEndian(at: 24, count: 8), let sha256 = SHA256Digest(bytes: slot[32..<64])
    else { return nil }
    (self.sequence, self.size, self.durable, self.sha256) = (sequence, size, durable, sha256)
    name = String(decoding: slot[66..<end], as: UTF8.self)
  }
}

extension Data {
  /// Appends the low `count` bytes of a word, lowest first.
  mutating func appendLittleEndian(_ word: UInt64, count: Int) {
    for index in 0..<count { append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
  }

  /// The word of `count` bytes at `offset` from the start, lowest first; nil if it is not all there.
  func littleEndian(at offset: Int, count: Int) -> UInt64? {
    guard offset >= 0, self.count - offset >= count else { return nil }
    var word: UInt64 = 0
    for index in (0..<count).reversed() { word = word << 8 | UInt64(self[startIndex + offset + index]) }
    return word
  }
}
