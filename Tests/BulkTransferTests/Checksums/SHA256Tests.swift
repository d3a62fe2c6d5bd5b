import Foundation
import Testing

@testable import BulkTransfer

@Suite("SHA-256")
struct SHA256Tests {
  /// FIPS 180-4 examples.
  @Test(
    "agrees with the published vectors",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        String(repeating: "a", count: 1_000_000),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
      ),
    ])
  func vectors(text: String, expected: String) throws {
    #expect(try SHA256Hasher.digest(of: Data(text.utf8)).hex == expected)
    #expect(try SHA256Hasher.digest(of: [UInt8](text.utf8)).hex == expected)
  }

  @Test("does not depend on how the bytes are cut", arguments: [0, 1, 55, 56, 63, 64, 65, 127, 128, 200])
  func slicing(at cut: Int) throws {
    let bytes = (0..<200).map { UInt8(truncatingIfNeeded: $0 * 91 + 3) }
    let hasher = SHA256Hasher()
    unsafe hasher.update([UInt8](bytes[..<cut]).span.bytes)
    hasher.update(Data(bytes[cut...]))
    #expect(try hasher.finalize() == SHA256Hasher.digest(of: bytes))
  }

  @Test("a digest is taken once; a second time is an error and not another digest")
  func finalizeTwice() throws {
    let hasher = SHA256Hasher()
    _ = try hasher.finalize()
    #expect(throws: TransferError.self) { try hasher.finalize() }
    hasher.update([1, 2, 3])
    #expect(throws: TransferError.self) { try hasher.finalize() }
  }

  @Test("hexadecimal text and bytes lead back to the same digest")
  func roundTrip() throws {
    let digest = try SHA256Hasher.digest(of: Data("abc".utf8))
    #expect(SHA256Digest(hex: digest.hex) == digest)
    #expect(SHA256Digest(hex: digest.hex.uppercased()) == digest)
    #expect(SHA256Digest(bytes: digest.bytes) == digest)
    #expect(digest.data.count == 32)
    #expect(digest.description == digest.hex)
    let json = try JSONEncoder().encode([digest])
    #expect(String(decoding: json, as: UTF8.self) == "[\"\(digest.hex)\"]")
    #expect(try JSONDecoder().decode([SHA256Digest].self, from: json) == [digest])
  }

  @Test(
    "text that is not 64 hexadecimal digits is no digest",
    arguments: [
      "", "ab", String(repeating: "0", count: 63), String(repeating: "0", count: 65),
      String(repeating: "0", count: 63) + "g", String(repeating: "0", count: 62) + "é",
    ])
  func notADigest(text: String) {
    #expect(SHA256Digest(hex: text) == nil)
  }

  @Test("a digest has 32 bytes", arguments: [0, 31, 33])
  func wrongLength(count: Int) {
    #expect(SHA256Digest(bytes: [UInt8](repeating: 0, count: count)) == nil)
  }
}
