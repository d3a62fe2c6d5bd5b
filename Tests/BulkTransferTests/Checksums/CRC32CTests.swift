import Foundation
import Testing

@testable import BulkTransfer

@Suite("CRC-32C")
struct CRC32CTests {
  /// The vectors of RFC 3720 appendix B.4 and the usual check value.
  @Test(
    "agrees with the published vectors",
    arguments: [
      ([UInt8]("123456789".utf8), 0xE306_9283),
      ([], 0),
      ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
      ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
      ([UInt8](0..<32), 0x46DD_794E),
      ([UInt8]((0..<32).reversed()), 0x113F_DB5C),
    ] as [([UInt8], UInt32)])
  func vectors(bytes: [UInt8], expected: UInt32) {
    #expect(CRC32C.checksum(of: bytes) == expected)
    #expect(CRC32C.checksum(of: Data(bytes)) == expected)
  }

  @Test("does not depend on how the bytes are cut", arguments: 0...40)
  func slicing(at cut: Int) {
    let bytes = (0..<40).map { UInt8(truncatingIfNeeded: $0 * 37 + 11) }
    var crc = CRC32C()
    crc.update([UInt8](bytes[..<cut]))
    unsafe crc.update([UInt8](bytes[cut...]).span.bytes)
    #expect(crc.value == CRC32C.checksum(of: bytes))
  }

  @Test("goes on from a value that was stored")
  func continuing() {
    var crc = CRC32C(continuing: CRC32C.checksum(of: [UInt8]("12345".utf8)))
    crc.update(Data("6789".utf8))
    #expect(crc.value == 0xE306_9283)
  }

  @Test("a slice of Data counts only its own bytes")
  func dataSlice() {
    let data = Data("xx123456789yy".utf8)
    #expect(CRC32C.checksum(of: data.dropFirst(2).dropLast(2)) == 0xE306_9283)
  }
}
