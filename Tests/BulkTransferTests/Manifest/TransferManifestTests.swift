import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Transfer manifest")
struct TransferManifestTests {
  static let instant = Date(timeIntervalSince1970: 1_796_013_000)  // 2026-11-30T04:30:00Z

  /// The manifest that docs/manifest.md shows.
  static func documented() throws -> TransferManifest {
    let object = try TransferManifest.Object(
      describing: MemorySource(Data("123456789".utf8)), name: "fw.bin", path: "build/fw.hex",
      format: .intelHEX, range: AddressRange(start: 0x26000, end: 0x26009))
    let target = try TransferManifest.Target(
      name: "bench-1", identifier: "5C4B1E2D-0A3F-4E51-9B8C-7D6E5F4A3B2C")
    return try TransferManifest(objects: [object], target: target, created: instant)
  }

  static func object(
    _ bytes: Data, name: String = "a.bin", segmentSize: Int? = 4096
  ) throws -> TransferManifest.Object {
    try TransferManifest.Object(
      describing: MemorySource(bytes), name: name, path: name, format: .raw, segmentSize: segmentSize)
  }

  @Test("is written byte for byte as the document shows, and read back equal")
  func documentedForm() throws {
    let manifest = try Self.documented()
    let shown = try #require(block(with: "bluehaul-manifest", in: document("manifest.md")))
    #expect(String(decoding: try manifest.encoded(), as: UTF8.self) == shown)
    #expect(try TransferManifest(decoding: Data(shown.utf8)) == manifest)
  }

  @Test("several objects, no target, no time, and names that need escaping come back equal")
  func roundTrip() throws {
    let manifest = try TransferManifest(objects: [
      Self.object(pattern(10_000), name: "a \"quoted\\\" \n\u{1} ü 🚀.bin"),
      Self.object(pattern(4096, seed: 2), name: "b"), Self.object(pattern(1, seed: 3), name: "c"),
    ])
    #expect(try TransferManifest(decoding: try manifest.encoded()) == manifest)
    #expect(manifest.objects.map(\.segments.checksums.count) == [3, 1, 1])
    #expect(manifest.totalSize == 14_097)
  }

  @Test("a byte order mark, CRLF and unknown members are accepted")
  func liberalReader() throws {
    let manifest = try Self.documented()
    let text = String(decoding: try manifest.encoded(), as: UTF8.self)
      .replacingOccurrences(of: "\"version\": 1,", with: "\"version\": 1, \"note\": {\"x\": [1, null]},")
      .replacingOccurrences(of: "\n", with: "\r\n")
    #expect(try TransferManifest(decoding: Data([0xEF, 0xBB, 0xBF] + text.utf8)) == manifest)
  }

  @Test("two objects of one name are refused with both paths, also where a text has them")
  func names() throws {
    func object(_ path: String, _ seed: UInt64) throws -> TransferManifest.Object {
      try TransferManifest.Object(
        describing: MemorySource(pattern(100, seed: seed)), name: "f.bin", path: path, format: .raw)
    }
    let error = try #require(
      #expect(throws: TransferError.self) {
        try TransferManifest(objects: [object("f.bin", 1), object("s/f.bin", 2)])
      })
    #expect(error.code == .invalidArgument)
    #expect(error.message.contains("f.bin and s/f.bin") && error.advice != nil)
    let twice = #expect(throws: TransferError.self) {
      try TransferManifest(objects: [object("f.bin", 1), object("f.bin", 1)])
    }
    #expect(twice?.code == .invalidArgument)
    let other = try TransferManifest.Object(
      describing: MemorySource(pattern(100, seed: 2)), name: "g.bin", path: "s/f.bin", format: .raw)
    let text = String(
      decoding: try TransferManifest(objects: [object("f.bin", 1), other]).encoded(), as: UTF8.self)
    let read = #expect(throws: TransferError.self) {
      try TransferManifest(decoding: Data(text.replacing("g.bin", with: "f.bin").utf8))
    }
    #expect(read?.code == .damagedState && read?.message.contains("f.bin and s/f.bin") == true)
  }

  @Test("the identifier follows the bytes and their order, and nothing else")
  func identity() throws {
    let (a, b) = (pattern(5000), pattern(6000, seed: 2))
    let both = try TransferManifest(objects: [Self.object(a), Self.object(b, name: "b.bin")])
    let renamed = try TransferManifest(
      objects: [Self.object(a, name: "x", segmentSize: 8192), Self.object(b, name: "y")],
      target: .init(name: "other"))
    let swapped = try TransferManifest(objects: [Self.object(b, name: "b.bin"), Self.object(a)])
    var changed = a
    changed[100] ^= 1
    let other = try TransferManifest(objects: [Self.object(changed), Self.object(b, name: "b.bin")])
    #expect(both.transferID == renamed.transferID)
    #expect(Set([both, swapped, other].map(\.transferID)).count == 3)
    let text = "bluehaul transfer 1\n5000 \(both.objects[0].sha256.hex)\n6000 \(both.objects[1].sha256.hex)\n"
    #expect(both.transferID == (try SHA256Hasher.digest(of: Data(text.utf8))))
  }

  @Test(
    "the segment checksums are those of the bytes they stand for", arguments: [1, 4095, 4096, 4097, 20_000])
  func segments(size: Int) throws {
    let bytes = pattern(size)
    let table = try Self.object(bytes).segments
    for index in table.checksums.indices {
      let range = table.range(of: index)
      #expect(
        table.checksums[index] == CRC32C.checksum(of: bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
      #expect(table.index(containing: range.lowerBound) == index)
      #expect(table.index(containing: range.upperBound - 1) == index)
    }
    #expect(table.range(of: table.checksums.count - 1).upperBound == UInt64(size))
    #expect(table.index(containing: UInt64(size)) == nil)
  }

  @Test(
    "the segment size grows with the object, within what the protocol carries",
    arguments: [
      (1, 16_384), (67_108_864, 16_384), (67_108_865, 32_768), (1_073_741_824, 262_144),
      (1_099_511_627_776, 1_048_576),
    ] as [(UInt64, Int)])
  func defaultSegmentSize(object: UInt64, expected: Int) {
    #expect(SegmentTable.defaultSegmentSize(for: object) == expected)
  }

  @Test("a segment size outside of the limits is refused", arguments: [0, 1, 2048, 5000, 1 << 21, -4096])
  func badSegmentSize(size: Int) {
    #expect(throws: TransferError.self) { try Self.object(pattern(10), segmentSize: size) }
  }

  @Test(
    "what is wrong with a text is said with its place",
    arguments: [
      ("\"version\": 1", "\"version\": 2", "version 2 is not known"),
      ("\"version\": 1", "\"version\": \"1\"", "version is not a whole number"),
      ("bluehaul-manifest", "bluehaul-journal", "format is not \"bluehaul-manifest\""),
      ("\"size\": 9", "\"size\": -9", "objects[0].size is not a whole number"),
      ("\"size\": 9", "\"size\": 1.5", "objects[0].size is not a whole number"),
      ("\"size\": 9", "\"size\": true", "objects[0].size is not a whole number"),
      ("\"size\": 9", "\"size\": 1e30", "objects[0].size is not a whole number"),
      ("\"size\": 9", "\"size\": 0", "objects[0].segmentCRC32C is not valid"),
      ("\"size\": 9", "\"size\": 18446744073709551615", "objects[0].segmentCRC32C is not valid"),
      ("\"size\": 9,", "", "objects[0].size is missing"),
      ("\"name\": \"fw.bin\"", "\"name\": 7", "objects[0].name is not text"),
      ("\"name\": \"fw.bin\"", "\"name\": \"\"", "objects[0] is not valid: the object's name has 0 bytes"),
      ("intel-hex", "elf", "objects[0] is not valid: files of format elf are not sent"),
      ("intel-hex", "tape", "objects[0].format is no known format"),
      ("intel-hex", "raw", "objects[0] is not valid: a range is for Intel HEX"),
      ("0x26000-0x26008", "0x26000", "objects[0].range is not valid"),
      ("15e2b0", "15e2b", "objects[0].sha256 is not 64 hexadecimal digits"),
      ("15e2b0", "25e2b0", "transferID does not belong"),
      ("\"segmentSize\": 16384", "\"segmentSize\": 3", "objects[0].segmentCRC32C is not valid"),
      ("g5IG4w==", "g5IG4===", "objects[0].segmentCRC32C is not base64"),
      ("g5IG4w==", "g5IG", "objects[0].segmentCRC32C is not base64"),
      ("g5IG4w==", "g5IG44OSBuM=", "objects[0].segmentCRC32C is not valid: 2 segment checksums for 1"),
      ("\"objects\": [", "\"objects\": 3, \"x\": [", "objects is not an array"),
      ("\"objects\": [", "\"objects\": [], \"x\": [", "objects is not valid: a manifest has 1 to"),
      ("\"objects\": [", "\"objects\": [1,", "objects[0] is not an object"),
      ("\"name\": \"bench-1\"", "\"name\": \"\"", "target is not valid"),
      ("\"target\": {", "\"target\": 1, \"x\": {", "target is not an object"),
      ("04:30:00Z", "04:30", "created is no time"),
      ("\"version\": 1", "\"version\": 1, \"version\": 1", "version is there twice"),
      ("\"version\": 1", "\"version\": 1, \"vers\\u0069on\": 2", "version is there twice"),
      ("\"size\": 9", "\"size\": 9, \"size\": 9", "objects[0].size is there twice"),
    ])
  func faults(old: String, new: String, message: String) throws {
    let text = String(decoding: try Self.documented().encoded(), as: UTF8.self)
    #expect(text.contains(old))
    let changed = text.replacingOccurrences(of: old, with: new)
    let error = #expect(throws: TransferError.self) {
      try TransferManifest(decoding: Data(changed.utf8), document: "fw.json")
    }
    #expect(error?.code == .damagedState)
    #expect(error?.message.hasPrefix("fw.json: \(message)") == true, "\(error?.message ?? "")")
  }

  @Test("a text that is cut anywhere is an error and nothing worse")
  func truncated() throws {
    let text = try Self.documented().encoded()
    // Without its last line feed it is still whole.
    for count in 0..<text.count - 1 {
      let error = #expect(throws: TransferError.self) { try TransferManifest(decoding: text.prefix(count)) }
      #expect(error?.code == .damagedState)
    }
  }

  @Test(
    "what is no JSON by the letter is refused, whatever a decoder would take",
    arguments: [
      ("g5IG4w==\"", "g5IG4w==\","), ("\"size\": 9", "\"size\": 09"), ("\"size\": 9", "\"size\": +9"),
      ("\"size\": 9", "\"size\": 0x9"), ("\"size\": 9", "'size': 9"), ("\"size\": 9", "\"size\": 9 // nine"),
      ("fw.bin\"", "fw\t.bin\""), ("fw.bin\"", "fw\\x41.bin\""), ("\"version\": 1,", "\"version\": 1,,"),
      ("\"size\": 9", "\"x\": \(String(repeating: "[", count: 10_000)), \"size\": 9"),
    ])
  func grammar(old: String, new: String) throws {
    let text = String(decoding: try Self.documented().encoded(), as: UTF8.self)
    #expect(text.contains(old))
    let error = #expect(throws: TransferError.self) {
      try TransferManifest(decoding: Data(text.replacing(old, with: new).utf8))
    }
    #expect(error?.code == .damagedState)
  }

  @Test(
    "a text in another encoding is refused", arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf32])
  func encoding(_ encoding: String.Encoding) throws {
    let text = String(decoding: try Self.documented().encoded(), as: UTF8.self)
    let error = #expect(throws: TransferError.self) {
      try TransferManifest(decoding: #require(text.data(using: encoding)))
    }
    #expect(error?.code == .damagedState && error?.message.contains("UTF-8") == true)
  }

  @Test(
    "hostile texts are errors",
    arguments: ["[]", "3", "null", "\"x\"", "{}", "{\"format\":null}", "\0\0", "{,}"])
  func hostile(text: String) {
    #expect(throws: TransferError.self) { try TransferManifest(decoding: Data(text.utf8)) }
  }

  @Test("a damaged text is refused or describes the same bytes", arguments: 0..<300 as Range<UInt64>)
  func damaged(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let manifest = try Self.documented()
    var text = try manifest.encoded()
    for _ in 0..<random.pick(1...3) {
      let place = random.pick(0...text.count - 1)
      switch random.pick(0...2) {
      case 0: text[place] = UInt8(random.pick(0...255))
      case 1: text.remove(at: place)
      default: text.insert(UInt8(random.pick(0x20...0x7E)), at: place)
      }
    }
    do {
      let read = try TransferManifest(decoding: text)
      #expect(read.transferID == manifest.transferID && read.objects[0].sha256 == manifest.objects[0].sha256)
    } catch {
      #expect(error.code == .damagedState)
    }
  }

  @Test("deep nesting is an error and does not exhaust the stack")
  func deep() {
    let text = String(repeating: "[", count: 100_000)
    #expect(throws: TransferError.self) { try TransferManifest(decoding: Data(text.utf8)) }
    #expect(throws: TransferError.self) { try TransferManifest(decoding: Data("{\"format\":\(text)".utf8)) }
  }

  @Test("more objects than allowed are refused before they are read")
  func tooManyObjects() throws {
    let head = "{\"format\":\"bluehaul-manifest\",\"version\":1,\"objects\":["
    let one = try Self.documented().objects[0]
    let text = String(decoding: JSONText.encode(one.json), as: UTF8.self)
    let all = head + Array(repeating: text, count: 1025).joined(separator: ",") + "]}"
    let error = #expect(throws: TransferError.self) { try TransferManifest(decoding: Data(all.utf8)) }
    #expect(error?.message.contains("objects has more than 1024 elements") == true)
  }

  @Test("the first difference is found, with its segment and bytes")
  func differences() throws {
    let bytes = pattern(20_000)
    let object = try Self.object(bytes)
    #expect(try object.firstDifference(in: MemorySource(bytes)) == nil)
    var changed = bytes
    changed[9000] ^= 1
    changed[17_000] ^= 1
    let difference = try object.firstDifference(in: MemorySource(changed))
    #expect(difference == .segment(index: 2, bytes: 8192..<12_288))
    #expect(difference?.description == "segment 2 (bytes 8192 to 12287) differs")
    #expect(
      try object.firstDifference(in: MemorySource(bytes.dropLast())) == .size(expected: 20_000, found: 19_999)
    )
    let lying = try TransferManifest.Object(
      name: "a", path: "a", format: .raw, sha256: SHA256Hasher.digest(of: Data()), segments: object.segments)
    #expect(
      try lying.firstDifference(in: MemorySource(bytes))
        == .hash(expected: lying.sha256, found: object.sha256))
  }

  @Test("is written to a file and read from it")
  func file() throws {
    let folder = TemporaryFolder()
    let manifest = try Self.documented()
    try manifest.write(to: folder.path("m.json"))
    #expect(try TransferManifest(path: folder.path("m.json")) == manifest)
    #expect(folder.names == ["m.json"])
  }

  @Test("a sparse file of 1 GiB is described in little memory, with a small manifest")
  func sparse() throws {
    let folder = TemporaryFolder()
    let path = try folder.write(Data(), "big.bin")
    try #require(FileHandle(forWritingAtPath: path)).truncate(atOffset: 1 << 30)
    var reports = 0
    let object = try TransferManifest.Object(
      describing: FileSource(path: path), name: "big.bin", path: path, format: .raw
    ) { _ in reports += 1 }
    #expect(object.size == 1 << 30)
    #expect(object.sha256.hex == "49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14")
    #expect(reports == 1024)
    #expect(try TransferManifest(objects: [object]).encoded().count < 25_000)
  }

  @Test("describing ends when the progress report throws")
  func cancellation() {
    #expect(throws: TransferError(.cancelled, "stop")) {
      try TransferManifest.Object(
        describing: MemorySource(pattern(10)), name: "a", path: "a", format: .raw
      ) { _ throws(TransferError) in throw TransferError(.cancelled, "stop") }
    }
  }

  @Test("a manifest that could not be read again is not written; larger segments make it shorter")
  func tooLong() throws {
    let folder = TemporaryFolder()
    let size: UInt64 = 13 << 30
    func manifest(segmentSize: Int) throws -> TransferManifest {
      let checksums = [UInt32](repeating: 1, count: Int(size) / segmentSize)
      return try TransferManifest(objects: [
        TransferManifest.Object(
          name: "fw.bin", path: "fw.bin", format: .raw, range: nil, sha256: SHA256Hasher.digest(of: Data()),
          segments: SegmentTable(segmentSize: segmentSize, objectSize: size, checksums: checksums))
      ])
    }
    let error = #expect(throws: TransferError.self) {
      try manifest(segmentSize: 4096).write(to: folder.path("release.json"))
    }
    #expect(error?.advice?.contains("larger segments") == true)
    #expect(folder.names == [])
    try manifest(segmentSize: 1 << 20).write(to: folder.path("release.json"))
    #expect(try TransferManifest(path: folder.path("release.json")).totalSize == size)
  }
}
