import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Intel HEX")
struct IntelHEXTests {
  static let bytes = pattern(100_000)

  func parse(_ text: Data) throws -> IntelHEX { try IntelHEXParser.parse(MemorySource(text), name: "a.hex") }

  func image(_ text: Data, range: AddressRange? = nil) throws -> (addresses: AddressRange, bytes: Data) {
    let (addresses, source) = try parse(text).image(range: range, name: "a.hex")
    return (addresses, try source.all())
  }

  @Test("records of any length give the bytes", arguments: Sweep.part(of: [16, 1, 2, 21, 32, 64, 255]))
  func recordLengths(length: Int) throws {
    let (addresses, bytes) = try image(
      hexText(hexRecords(Self.bytes, at: 0x26000, length: length) + [hexEnd]))
    #expect(addresses == AddressRange(start: 0x26000, end: 0x26000 + 100_000))
    #expect(bytes == Self.bytes)
  }

  struct Layout: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var text: @Sendable (_ lines: [String]) -> Data
  }

  @Test(
    "the layout of the text makes no difference",
    arguments: [
      Layout(testDescription: "LF") { hexText($0) },
      Layout(testDescription: "CRLF") { hexText($0, ending: "\r\n") },
      Layout(testDescription: "CR") { hexText($0, ending: "\r") },
      Layout(testDescription: "blank lines") { hexText($0, ending: "\n\n \t\r\n") },
      Layout(testDescription: "no line feed at the end") { hexText($0).dropLast() },
      Layout(testDescription: "lower case") {
        Data(String(decoding: hexText($0), as: UTF8.self).lowercased().utf8)
      },
      Layout(testDescription: "white space around") { hexText($0.map { "  \($0)\t " }) },
      Layout(testDescription: "byte order mark") { Data([0xEF, 0xBB, 0xBF]) + hexText($0) },
      Layout(testDescription: "end-of-file mark of DOS") { hexText($0) + Data([0x1A]) },
      Layout(testDescription: "data of length 0") { hexText([hexRecord(0, 0x1234)] + $0) },
    ])
  func layouts(_ layout: Layout) throws {
    let bytes = pattern(1000)
    #expect(try image(layout.text(hexRecords(bytes, at: 0x8000) + [hexEnd])).bytes == bytes)
  }

  @Test("how the text is cut into pieces makes no difference", arguments: [1, 2, 3, 7, 44, 1000])
  func slicing(step: Int) throws {
    let text = hexText(hexRecords(pattern(500), at: 0xFF00) + [hexEnd], ending: "\r\n")
    var parser = IntelHEXParser(name: "a.hex")
    for start in stride(from: 0, to: text.count, by: step) {
      try parser.feed(text[start..<min(start + step, text.count)])
    }
    let hex = try parser.finish()
    #expect(try hex.image(range: nil, name: "").source.all() == pattern(500))
  }

  @Test("records in any order give the bytes")
  func unsorted() throws {
    var random = SeededGenerator(1)
    let bytes = pattern(5000)
    let lines = hexRecords(bytes, at: 0x1000).dropFirst().shuffled(using: &random)
    #expect(try image(hexText([hexRecord(4, 0, [0, 0])] + lines + [hexEnd])).bytes == bytes)
  }

  @Test("extended segment addresses count in paragraphs, and run around within 64 KiB")
  func segments() throws {
    let text = hexText([
      hexRecord(2, 0, [0x12, 0x34]), hexRecord(0, 0x0010, [1, 2, 3, 4]),
      hexRecord(0, 0xFFFE, [5, 6, 7, 8]), hexEnd,
    ])
    let hex = try parse(text)
    #expect(
      hex.sections == [
        AddressRange(start: 0x12340, end: 0x12342), AddressRange(start: 0x12350, end: 0x12354),
        AddressRange(start: 0x2233E, end: 0x22340),
      ])
    let range = try #require(AddressRange(start: 0x12340, end: 0x12342))
    #expect(try hex.image(range: range, name: "").source.all() == Data([7, 8]))
  }

  @Test("linear addresses reach to the last byte of 4 GiB and not beyond")
  func linearEnd() throws {
    let top = hexRecord(4, 0, [0xFF, 0xFF])
    #expect(try image(hexText([top, hexRecord(0, 0xFFFE, [1, 2]), hexEnd])).addresses.end == 1 << 32)
    let error = #expect(throws: TransferError.self) {
      try parse(hexText([top, hexRecord(0, 0xFFFE, [1, 2, 3]), hexEnd]))
    }
    #expect(error?.message == "a.hex: line 2 goes beyond the address FFFFFFFF")
  }

  @Test("start addresses are accepted and told")
  func starts() throws {
    let data = hexRecord(0, 0, [1])
    #expect(
      try parse(hexText([hexRecord(5, 0, [0, 1, 2, 3]), data, hexEnd])).start == .linear(0x10203))
    #expect(
      try parse(hexText([hexRecord(3, 0, [0, 1, 2, 3]), data, hexEnd])).start == .segment(cs: 1, ip: 0x203))
  }

  @Test(
    "what is wrong is said with its line",
    arguments: [
      ([":0100000001FE", ":0100010001FE", hexEnd], "line 2 has checksum FE, right is FD"),
      (["", ":010000000", hexEnd], "line 2 has an odd number of digits (9)"),
      ([":01000000G1FE", hexEnd], "line 1 has a character in it that is no hexadecimal digit"),
      ([":0200000001FD", hexEnd], "line 1 has 1 bytes of data, its length byte says 2"),
      ([":0000000101FE", hexEnd], "line 1 has 1 bytes of data, its length byte says 0"),
      ([":0001", hexEnd], "line 1 is cut short: a record has at least 10 digits, it has 4"),
      (["hello", hexEnd], "line 1 is no record: it does not start with ':'"),
      ([hexRecord(6, 0, []), hexEnd], "line 1 has record type 06, known are 00 to 05"),
      (
        [hexRecord(4, 0, [1]), hexEnd],
        "line 1 is an extended linear address record with 1 bytes of data instead of 2"
      ),
      ([hexRecord(1, 0, [1]), hexEnd], "line 1 is an end-of-file record with 1 bytes of data instead of 0"),
      ([hexEnd, "", hexRecord(0, 0, [1])], "line 3 follows the end-of-file record of line 1"),
      ([hexEnd, hexEnd], "line 2 follows the end-of-file record of line 1"),
      ([":" + String(repeating: "0", count: 700)], "line 1 is longer than a record can be"),
      (
        [hexRecord(0, 0x10, [1, 2, 3, 4]), hexRecord(0, 0x20, [9]), hexRecord(0, 0x12, [5]), hexEnd],
        "lines 1 and 3 both give the byte at 0x12"
      ),
      (
        [hexRecord(0, 0, [1, 2]), hexRecord(0, 2, [3, 4]), hexRecord(0, 0, [9]), hexEnd],
        "lines 1 and 3 both give the byte at 0x0"
      ),
    ] as [([String], String)])
  func faults(lines: [String], message: String) {
    let error = #expect(throws: TransferError.self) { try parse(hexText(lines)) }
    #expect(error?.code == .malformedFile)
    #expect(error?.message == "a.hex: \(message)")
  }

  @Test("a text without end-of-file record is cut short, wherever it was cut")
  func truncated() throws {
    let text = hexText(hexRecords(pattern(64), at: 0) + [hexEnd])
    for count in 1..<text.count - 1 {
      let error = #expect(throws: TransferError.self) { try parse(text.prefix(count)) }
      #expect(error?.code == .malformedFile)
    }
    let error = #expect(throws: TransferError.self) { try parse(hexText(hexRecords(pattern(64), at: 0))) }
    #expect(error?.message == "a.hex has no end-of-file record: it is cut short after line 5")
  }

  @Test(
    "gaps up to a flash page are filled as erased flash, beyond it there are two images",
    arguments: [1, 4096, 4097])
  func gaps(gap: UInt64) throws {
    let (first, second) = (pattern(100), pattern(200, seed: 2))
    let text = hexText(hexRecords(first, at: 0x1000) + hexRecords(second, at: 0x1064 + gap) + [hexEnd])
    if gap <= 4096 {
      #expect(try image(text).bytes == first + Data(repeating: 0xFF, count: Int(gap)) + second)
      return
    }
    let error = #expect(throws: TransferError.self) { try image(text) }
    #expect(error?.code == .invalidArgument)
    #expect(
      error?.message
        == "a.hex holds 2 images far apart: 0x1000-0x1063 (100 bytes), 0x2065-0x212C (200 bytes)")
    #expect(error?.advice == "choose what to send by its addresses")
    #expect(error?.remedy == .chooseAddresses(try #require(AddressRange(start: 0x2065, end: 0x212D))))
    let range = try #require(AddressRange(start: 0x1000, end: 0x2FFF))
    #expect(try image(text, range: range).bytes == first + Data(repeating: 0xFF, count: 4097) + second)
  }

  @Test(
    "option bytes 268 MB away, or more, are listed, and nothing in between takes memory",
    arguments: [0x1000_1000, 0x1FFF_F000, 0x2000_2180] as [UInt64])
  func farApart(address: UInt64) throws {
    let text = hexText(hexRecords(Self.bytes, at: 0) + hexRecords(pattern(20), at: address) + [hexEnd])
    let hex = try parse(text)
    let error = #expect(throws: TransferError.self) { try hex.image(range: nil, name: "a.hex") }
    #expect(hex.bytes.count == 100_020)
    let (first, last) = (hexadecimal(address), hexadecimal(address + 19))
    #expect(error?.message.hasSuffix("0x0-0x1869F (100000 bytes), \(first)-\(last) (20 bytes)") == true)
    let all = try #require(AddressRange(start: 0, end: 1 << 32))
    #expect(throws: TransferError.self) { try hex.image(range: all, name: "a.hex") }
    let code = try #require(AddressRange(start: 0x1000, end: 0x1000_0000))
    #expect(try hex.image(range: code, name: "").source.all() == Self.bytes.dropFirst(0x1000))
  }

  @Test(
    "reading a file with far addresses takes little memory, in all of a process",
    .enabled(if: Sweep.isWhole, "a sanitizer takes memory of its own"))
  func littleMemory() async {
    await #expect(processExitsWith: .success) {
      let text = hexText(
        hexRecords(pattern(72_000), at: 0) + hexRecords(pattern(20), at: 0x1000_1000) + [hexEnd])
      #expect(throws: TransferError.self) {
        try IntelHEXParser.parse(MemorySource(text), name: "a.hex").image(range: nil, name: "a.hex")
      }
      // The most that was ever resident, in kB.
      let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
      let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
      let peak = try #require(line.split { !$0.isNumber }.first.flatMap { Int($0) })
      #expect(peak < 200_000)
    }
  }

  private func hexadecimal(_ address: UInt64) -> String { "0x" + String(address, radix: 16, uppercase: true) }

  @Test("a range takes what lies in it, and says if that is nothing")
  func ranges() throws {
    let text = hexText(hexRecords(pattern(1000), at: 0x1000) + [hexEnd])
    let inside = try #require(AddressRange(start: 0x1010, end: 0x1020))
    #expect(try image(text, range: inside).bytes == pattern(1000)[0x10..<0x20])
    let wide = try #require(AddressRange(start: 0, end: 0x10000))
    #expect(try image(text, range: wide).addresses.start == 0x1000)
    let outside = try #require(AddressRange(start: 0x2000, end: 0x3000))
    let error = #expect(throws: TransferError.self) { try image(text, range: outside) }
    #expect(error?.message == "a.hex holds no data within 0x2000-0x2FFF")
    #expect(error?.advice == "it has data at 0x1000-0x13E7 (1000 bytes)")
    #expect(throws: TransferError.self) { try image(hexText([hexEnd])) }
  }

  @Test("many images are listed up to eight")
  func manyRegions() throws {
    let lines = (0..<20).flatMap { hexRecords(Data([1]), at: UInt64($0) << 16) }
    let error = #expect(throws: TransferError.self) { try image(hexText(lines + [hexEnd])) }
    #expect(error?.message.hasSuffix("0x70000-0x70000 (1 bytes), 12 more") == true)
  }

  @Test(
    "any scattering and any reading gives what a table of all bytes gives", arguments: 0..<20 as Range<UInt64>
  )
  func model(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let start = UInt64.random(in: 0..<0x20000, using: &random)
    var table = [UInt8](repeating: 0xFF, count: 8000)
    var lines: [String] = []
    var place = 0
    while place < table.count {
      let bytes = pattern(Int.random(in: 1...300, using: &random), seed: random.next()).prefix(
        table.count - place)
      table.replaceSubrange(place..<place + bytes.count, with: bytes)
      let length = Int.random(in: 1...255, using: &random)
      lines.insert(
        hexRecords(bytes, at: start + UInt64(place), length: length).joined(separator: "\n"),
        at: Int.random(in: 0...lines.count, using: &random))
      place += bytes.count + Int.random(in: 0...200, using: &random)
    }
    let (addresses, source) = try parse(hexText(lines + [hexEnd])).image(range: nil, name: "a.hex")
    #expect(addresses.start == start)
    let expected = Data(table.prefix(Int(source.size)))
    #expect(try source.all() == expected)
    for _ in 0..<50 {
      let from = Int.random(in: 0...expected.count, using: &random)
      let count = Int.random(in: 0...expected.count - from, using: &random)
      #expect(try source.read(at: UInt64(from), count: count) == expected[from..<from + count])
    }
    #expect(throws: TransferError.self) { try source.read(at: source.size, count: 1) }
  }

  @Test("damaged text is an error and nothing worse", arguments: 0..<200 as Range<UInt64>)
  func damaged(seed: UInt64) {
    var random = SeededGenerator(seed)
    var text = hexText(hexRecords(pattern(200), at: 0xFF80) + [hexEnd])
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let place = Int.random(in: 0..<text.count, using: &random)
      text[place] = Bool.random(using: &random) ? UInt8.random(in: 0...255, using: &random) : 0x30
    }
    // A change of a digit cannot pass the checksum; a change of case or of white space may.
    if let image = try? image(text) { #expect(image.bytes == pattern(200)) }
  }

  @Test(
    "a range is read as it is written",
    arguments: [
      ("0x26000-0x4BFFF", 0x26000, 0x4C000), ("0-9", 0, 10), ("0X10-0x10", 16, 17),
      ("0x0-0xFFFFFFFF", 0, 0x1_0000_0000),
    ] as [(String, UInt64, UInt64)])
  func rangeText(text: String, start: UInt64, end: UInt64) throws {
    let range = try AddressRange(parsing: text)
    #expect(range == AddressRange(start: start, end: end))
    #expect(try AddressRange(parsing: range.description) == range)
  }

  @Test(
    "what is no range is refused",
    arguments: [
      "", "-", "1", "1-", "-1", "0x-0x1", "2-1", "a-b", "0x1-0xG", "+1-2", "1--2", "0-18446744073709551615",
      "0-99999999999999999999",
    ])
  func badRangeText(text: String) {
    #expect(throws: TransferError.self) { try AddressRange(parsing: text) }
  }
}
