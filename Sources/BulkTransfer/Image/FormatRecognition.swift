internal import Foundation

/// Tells formats by their first and last bytes.
struct FormatRecognition {
  /// As many bytes from the start as are looked at.
  static let headSize = 4096
  /// As many from the end.
  static let tailSize = 16

  let head: Data
  let tail: Data

  init(_ source: any ByteSource) throws(TransferError) {
    head = try source.read(at: 0, count: Int(min(source.size, UInt64(Self.headSize))))
    let tailCount = min(source.size, UInt64(Self.tailSize))
    tail = try source.read(at: source.size - tailCount, count: Int(tailCount))
  }

  var format: ImageFormat {
    for (format, magic) in Self.magics where head.starts(with: magic) { return format }
    if isUF2 { return .uf2 }
    if hasDFUSuffix { return .dfuSuffix }
    if MCUbootImage.matches(head) { return .mcuboot }
    if SUITEnvelope.matches(head) { return .suit }
    return textFormat ?? .raw
  }

  private static let magics: [(ImageFormat, [UInt8])] = [
    (.elf, [0x7F, 0x45, 0x4C, 0x46]),
    (.zip, [0x50, 0x4B, 0x03, 0x04]), (.zip, [0x50, 0x4B, 0x05, 0x06]), (.zip, [0x50, 0x4B, 0x07, 0x08]),
    (.gzip, [0x1F, 0x8B, 0x08]), (.xz, [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]),
    (.zstd, [0x28, 0xB5, 0x2F, 0xFD]),
    (.bzip2, [0x42, 0x5A, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59]),
    (.dfuSuffix, [0x44, 0x66, 0x75, 0x53, 0x65, 0x01]),
  ]

  /// Two words at the start and one at the end of the first block (the UF2 specification, "File format").
  private var isUF2: Bool {
    head.littleEndian(at: 0, count: 4) == 0x0A32_4655 && head.littleEndian(at: 4, count: 4) == 0x9E5D_5157
      && head.littleEndian(at: 508, count: 4) == 0x0AB1_6F30
  }

  /// "UFD" backwards, the length 16 and a known version, before the CRC (USB DFU 1.1, appendix B).
  private var hasDFUSuffix: Bool {
    guard tail.count == 16, let version = tail.littleEndian(at: 6, count: 2) else { return false }
    return Data(tail.dropFirst(8).prefix(4)) == Data([0x55, 0x46, 0x44, 16])
      && [0x0100, 0x0110, 0x011A].contains(version)
  }
}

// MARK: Text

extension FormatRecognition {
  private var textFormat: ImageFormat? {
    if isUTF16HEX { return .intelHEX }
    let body = head.starts(with: [0xEF, 0xBB, 0xBF]) ? head.dropFirst(3) : head
    let lines = body.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).lazy
      .map { line in Data(line.drop { $0 == 0x20 || $0 == 0x09 }) }.filter { !$0.isEmpty }
    guard let first = lines.first else { return nil }
    if Self.beginsHEXRecord(first) { return .intelHEX }
    guard isText else { return nil }
    if head.range(of: Data([0x1B, 0x5B])) != nil { return .colouredText }
    if Self.isSRecord(first) { return .sRecord }
    // Something was put before the records, or the first is damaged: an error in a HEX file, and no raw data.
    if lines.contains(where: { Self.beginsHEXRecord($0) }) { return .intelHEX }
    return nil
  }

  /// No control characters but those of text.
  private var isText: Bool {
    head.allSatisfy { $0 >= 0x20 && $0 != 0x7F || [0x09, 0x0A, 0x0C, 0x0D, 0x1A, 0x1B].contains($0) }
  }

  /// A colon and the digits of length, address and type; or fewer digits and then nothing.
  private static func beginsHEXRecord(_ line: Data) -> Bool {
    guard line.first == UInt8(ascii: ":") else { return false }
    let digits = line.dropFirst().prefix(8)
    return digits.count >= 2 && digits.allSatisfy { hexDigit($0) != nil }
  }

  /// The byte order mark of UTF-16 and a colon, as a shell writes that redirects text in UTF-16.
  private var isUTF16HEX: Bool {
    head.starts(with: [0xFF, 0xFE, 0x3A, 0x00]) || head.starts(with: [0xFE, 0xFF, 0x00, 0x3A])
  }

  /// `S`, a type and the number of bytes that follow.
  private static func isSRecord(_ line: Data) -> Bool {
    let text = [UInt8](line)
    guard text.count >= 8, text[0] == UInt8(ascii: "S"), (0x30...0x39).contains(text[1]),
      let high = hexDigit(text[2]), let low = hexDigit(text[3])
    else { return false }
    let digits = text.dropFirst(4).prefix { hexDigit($0) != nil }.count
    return digits == 2 * Int(high << 4 | low)
  }
}
