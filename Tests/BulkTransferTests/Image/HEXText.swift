import Foundation

@testable import BulkTransfer

/// One record of Intel HEX with the right checksum.
func hexRecord(_ type: UInt8, _ address: UInt16 = 0, _ data: some Collection<UInt8> = []) -> String {
  var bytes = [UInt8(data.count), UInt8(address >> 8), UInt8(address & 255), type] + data
  bytes.append(0 &- bytes.reduce(0, &+))
  return ":" + bytes.hex.uppercased()
}

/// The end-of-file record.
let hexEnd = ":00000001FF"

/// Records of type 00 for bytes at a linear address, with a type 04 record before each and where 64 KiB end.
func hexRecords(_ bytes: Data, at address: UInt64, length: Int = 16) -> [String] {
  var lines: [String] = []
  var offset = 0
  while offset < bytes.count {
    let place = address + UInt64(offset)
    if offset == 0 || place & 0xFFFF == 0 {
      lines.append(hexRecord(4, 0, [UInt8(place >> 24 & 255), UInt8(place >> 16 & 255)]))
    }
    let count = min(length, bytes.count - offset, Int(0x10000 - place & 0xFFFF))
    lines.append(hexRecord(0, UInt16(place & 0xFFFF), bytes[offset..<offset + count]))
    offset += count
  }
  return lines
}

/// Lines as a text.
func hexText(_ lines: [String], ending: String = "\n") -> Data {
  Data(lines.map { $0 + ending }.joined().utf8)
}

extension ByteSource {
  /// All bytes, read in steps of an awkward size.
  func all(step: Int = 777) throws -> Data {
    var bytes = Data()
    try forEachBlock(step: step) { bytes.append($0) }
    return bytes
  }
}
