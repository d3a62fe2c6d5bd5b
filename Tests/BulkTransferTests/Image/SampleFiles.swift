import Foundation

@testable import BulkTransfer

/// Small files of each format, made here.
enum SampleFiles {
  static func little(_ word: UInt64, _ count: Int) -> Data {
    var bytes = Data()
    bytes.appendLittleEndian(word, count: count)
    return bytes
  }

  /// An MCUboot image with a valid hash.
  static func mcuboot(
    body: Data, header: Int = 0x200, protected: Data = Data(), flags: UInt64 = 0, damage: Bool = false
  ) throws -> Data {
    var image = Data(MCUbootImage.magic) + little(0, 4) + little(UInt64(header), 2)
    let area =
      protected.isEmpty ? Data() : little(0x6908, 2) + little(UInt64(protected.count + 4), 2) + protected
    image += little(UInt64(area.count), 2) + little(UInt64(body.count), 4) + little(flags, 4)
    image += Data([1, 2]) + little(3, 2) + little(4, 4) + little(0, 4)
    image += Data(count: header - 32) + body + area
    var hash = try SHA256Hasher.digest(of: image).data
    if damage { hash[0] ^= 1 }
    let entries =
      little(0x10, 2) + little(32, 2) + hash + little(0x22, 2) + little(4, 2) + Data([1, 2, 3, 4])
    return image + little(0x6907, 2) + little(UInt64(entries.count + 4), 2) + entries
  }

  /// A ZIP archive with empty entries.
  static func zip(_ names: [String]) -> Data {
    var (files, directory) = (Data(), Data())
    for name in names {
      let (offset, text) = (files.count, Data(name.utf8))
      files += little(0x0403_4B50, 4) + Data(count: 22) + little(UInt64(text.count), 2) + little(0, 2) + text
      directory += little(0x0201_4B50, 4) + Data(count: 24) + little(UInt64(text.count), 2) + Data(count: 12)
      directory += little(UInt64(offset), 4) + text
    }
    return files + directory + little(0x0605_4B50, 4) + little(0, 4) + little(UInt64(names.count), 2)
      + little(UInt64(names.count), 2) + little(UInt64(directory.count), 4) + little(UInt64(files.count), 4)
      + little(0, 2)
  }

  static let elf =
    Data([0x7F, 0x45, 0x4C, 0x46, 1, 1, 1] + [UInt8](repeating: 0, count: 9) + [2, 0, 40, 0]) + pattern(500)
  static let uf2 =
    little(0x0A32_4655, 4) + little(0x9E5D_5157, 4) + little(0x2000, 4) + little(0x26000, 4) + little(256, 4)
    + little(0, 4)
    + little(7, 4) + little(0xADA5_2840, 4) + Data(count: 476) + little(0x0AB1_6F30, 4)
  static let dfu =
    pattern(300) + little(0xFFFF, 2) + little(0x6003, 2) + little(0x1D50, 2) + little(0x0100, 2)
    + Data([0x55, 0x46, 0x44, 16])
    + little(0, 4)
  static let suit =
    Data([0xD8, 0x6B, 0xA2, 0x02, 0x58, 0x27, 0x81, 0x58, 0x24, 0x82, 0x2F, 0x58, 0x20]) + pattern(32)
    + Data([0x03, 0x43, 1, 2, 3])
  static let sRecord = Data("S00F000068656C6C6F202020202000003C\nS9030000FC\n".utf8)
  static let coloured = Data("\u{1B}[0;31m:\u{1B}[0;95m20\u{1B}[0m0100 (data)\n".utf8)
  static let hex = hexText(hexRecords(pattern(200), at: 0x1000) + [hexEnd])
}
