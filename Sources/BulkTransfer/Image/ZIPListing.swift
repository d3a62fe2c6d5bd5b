internal import Foundation

/// The names in a ZIP archive, from its central directory (APPNOTE.TXT 4.3); nothing is unpacked.
struct ZIPListing {
  private static let mostNames = 1000
  private static let endSize = 22
  private static let longestComment = 65_535

  /// Names of the entries, at most 1000 of them, not trusted.
  var names: [String] = []
  /// How many entries the archive says it has.
  var count: UInt64 = 0

  /// Whether Nordic's tools made it: it has a manifest, beside what a Mac may have added.
  var isDFUPackage: Bool {
    names.contains { $0.splitLastComponent.name == "manifest.json" && !$0.hasPrefix("__MACOSX/") }
  }

  /// - Throws: `malformedFile` if the directory is missing or does not fit the file.
  init(_ source: any ByteSource, name: String) throws(TransferError) {
    let fault = TransferError(
      .malformedFile,
      "\(name) is a ZIP archive and cut short or damaged: its directory is not where it should be",
      advice: "copy or download it again")
    let tailSize = Int(min(source.size, UInt64(Self.endSize + Self.longestComment)))
    let tail = try source.read(at: source.size - UInt64(tailSize), count: tailSize)
    guard let mark = tail.range(of: Data([0x50, 0x4B, 0x05, 0x06]), options: .backwards) else { throw fault }
    let end = Data(tail[mark.lowerBound...])
    guard let count = end.littleEndian(at: 10, count: 2), let size = end.littleEndian(at: 12, count: 4),
      let offset = end.littleEndian(at: 16, count: 4), offset + size <= source.size
    else { throw fault }
    self.count = count
    var position = offset
    while names.count < min(Int(count), Self.mostNames) {
      guard position + 46 <= offset + size else { throw fault }
      let entry = try source.read(at: position, count: 46)
      guard entry.littleEndian(at: 0, count: 4) == 0x0201_4B50,
        let nameLength = entry.littleEndian(at: 28, count: 2),
        let extraLength = entry.littleEndian(at: 30, count: 2),
        let commentLength = entry.littleEndian(at: 32, count: 2), position + 46 + nameLength <= offset + size
      else { throw fault }
      let text = try source.read(at: position + 46, count: Int(nameLength))
      names.append(String(decoding: text, as: UTF8.self))
      position += 46 + nameLength + extraLength + commentLength
    }
  }
}
