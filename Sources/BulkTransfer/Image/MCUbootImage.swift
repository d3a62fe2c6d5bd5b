internal import Foundation

/// The header and the trailing records (TLVs) of an image for the bootloader MCUboot (its `docs/design.md`, "Image format").
struct MCUbootImage: Sendable {
  static let magic: [UInt8] = [0x3D, 0xB8, 0xF3, 0x96]
  private static let headerSize: UInt64 = 32
  private static let protectedMagic: UInt64 = 0x6908
  private static let unprotectedMagic: UInt64 = 0x6907
  /// TLV types that hold the hash of header, body and protected TLVs.
  private static let hashTypes: [UInt64: String] = [0x10: "SHA-256", 0x11: "SHA-384", 0x12: "SHA-512"]
  /// TLV types of signatures.
  private static let signatureTypes: [UInt64: String] = [
    0x20: "RSA-2048", 0x21: "ECDSA P-224", 0x22: "ECDSA", 0x23: "RSA-3072", 0x24: "Ed25519",
  ]
  /// More records than any tool writes.
  private static let mostTLVs = 256

  struct Flags: OptionSet, Hashable, Sendable {
    var rawValue: UInt64
    static let aes128 = Self(rawValue: 0x4)
    static let aes256 = Self(rawValue: 0x8)
    static let nonBootable = Self(rawValue: 0x10)
    static let ramLoad = Self(rawValue: 0x20)
    static let romFixed = Self(rawValue: 0x100)
    static let lzma1 = Self(rawValue: 0x200)
    static let lzma2 = Self(rawValue: 0x400)
  }

  var version: String
  var flags: Flags
  var loadAddress: UInt64
  var headerSize: UInt64
  var bodySize: UInt64
  /// Where the hashed bytes end: header, body, protected TLVs.
  var hashedSize: UInt64
  /// Where the image ends; what follows is padding.
  var totalSize: UInt64
  /// The kind of hash and its value, from its TLV.
  var hash: (name: String, value: [UInt8])? { hashName.map { ($0, hashBytes) } }
  private var hashName: String?
  private var hashBytes: [UInt8] = []
  /// The kinds of signature in it.
  var signatures: [String] = []

  /// Whether the hash is one of the bytes as they are in the file.
  var hashCoversFile: Bool { flags.isDisjoint(with: [.aes128, .aes256, .lzma1, .lzma2]) }

  /// Whether bytes begin as such an image does.
  static func matches(_ bytes: Data) -> Bool { bytes.starts(with: magic) }

  /// Reads the header and walks the TLVs; sizes in them are checked against the file and never trusted.
  ///
  /// - Parameter name: what errors call the file.
  /// - Throws: `malformedFile`, with the offset, and what was expected and found there.
  init(_ source: any ByteSource, name: String) throws(TransferError) {
    func fault(_ what: String) -> TransferError {
      TransferError(
        .malformedFile, "\(name) is an MCUboot image and \(what)",
        advice: "copy or build it again, or send it as it is", remedy: .takeAsItIs)
    }
    guard source.size >= Self.headerSize else {
      throw fault("cut short: its header has 32 bytes, the file \(source.size)")
    }
    let header = try source.read(at: 0, count: Int(Self.headerSize))
    func field(_ offset: Int, _ count: Int) -> UInt64 { header.littleEndian(at: offset, count: count) ?? 0 }
    loadAddress = field(4, 4)
    headerSize = field(8, 2)
    let protectedSize = field(10, 2)
    bodySize = field(12, 4)
    flags = Flags(rawValue: field(16, 4))
    version = "\(field(20, 1)).\(field(21, 1)).\(field(22, 2))+\(field(24, 4))"
    guard headerSize >= Self.headerSize else {
      throw fault("damaged: its header size is \(headerSize) instead of at least 32")
    }
    hashedSize = headerSize + bodySize + protectedSize
    totalSize = headerSize + bodySize
    guard totalSize <= source.size else {
      throw fault("cut short: header and body have \(totalSize) bytes, the file \(source.size)")
    }
    if protectedSize > 0 {
      let area = try TLVArea(source, at: totalSize, magic: Self.protectedMagic, fault)
      guard area.size == protectedSize else {
        throw fault(
          "damaged: the protected records at \(totalSize) have \(area.size) bytes, the header says \(protectedSize)"
        )
      }
      totalSize += area.size
    }
    let area = try TLVArea(source, at: totalSize, magic: Self.unprotectedMagic, fault)
    for entry in area.entries {
      if let name = Self.hashTypes[entry.type] { (hashName, hashBytes) = (name, entry.value) }
      if let name = Self.signatureTypes[entry.type] { signatures.append(name) }
    }
    totalSize += area.size
  }

  /// The records of one area, each checked to lie within it.
  private struct TLVArea {
    var size: UInt64
    var entries: [(type: UInt64, value: [UInt8])] = []

    init(
      _ source: any ByteSource, at offset: UInt64, magic: UInt64, _ fault: (String) -> TransferError
    ) throws(TransferError) {
      guard offset + 4 <= source.size else {
        throw fault("cut short: its records should start at \(offset), the file has \(source.size) bytes")
      }
      let info = try source.read(at: offset, count: 4)
      let found = info.littleEndian(at: 0, count: 2) ?? 0
      guard found == magic else {
        let (wanted, seen) = (String(magic, radix: 16), String(found, radix: 16))
        throw fault(
          "damaged: at \(offset) there is 0x\(seen) instead of 0x\(wanted), the mark of its records")
      }
      size = info.littleEndian(at: 2, count: 2) ?? 0
      guard size >= 4, offset + size <= source.size else {
        throw fault("cut short: its records at \(offset) have \(size) bytes, the file ends at \(source.size)")
      }
      let bytes = try source.read(at: offset, count: Int(size))
      var position = 4
      while position < bytes.count {
        guard let type = bytes.littleEndian(at: position, count: 2),
          let length = bytes.littleEndian(at: position + 2, count: 2),
          position + 4 + Int(length) <= bytes.count, entries.count < MCUbootImage.mostTLVs
        else {
          throw fault("damaged: the record at \(offset + UInt64(position)) goes beyond the end of its area")
        }
        entries.append((type, [UInt8](bytes.dropFirst(position + 4).prefix(Int(length)))))
        position += 4 + Int(length)
      }
    }
  }

  /// Whether the SHA-256 in it is that of its bytes; nil if it has another kind of hash or one of other bytes.
  func hashAgrees(_ source: any ByteSource) throws(TransferError) -> Bool? {
    guard hashCoversFile, hashName == "SHA-256" else { return nil }
    let hasher = SHA256Hasher()
    var offset: UInt64 = 0
    while offset < hashedSize {
      let count = Int(min(UInt64(1 << 16), hashedSize - offset))
      hasher.update(try source.read(at: offset, count: count))
      offset += UInt64(count)
    }
    return try hasher.finalize().bytes == hashBytes
  }
}
