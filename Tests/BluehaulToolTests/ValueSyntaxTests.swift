import BulkTransfer
import Testing

@testable import BluehaulTool

@Suite struct ValueSyntaxTests {
  @Test(
    arguments: [
      ("0", 0), ("4096", 4096), ("4096B", 4096), ("64KiB", 65536), ("64kB", 64000), ("1.5MiB", 1_572_864),
      ("2 GiB", 2_147_483_648), ("0.001MB", 1000), ("64kib", 65536), ("9223372036854775807", Int.max),
    ])
  func sizes(text: String, bytes: Int) throws {
    #expect(try ValueSyntax<Int>.size().read(text) == bytes)
  }

  @Test(arguments: [
    "", "KiB", "64k", "-1", "+1", "1e3", "1.5", "0.0001kB", "1..5kB", ".5kB", "5.kB", "0x10", "64 parsec",
    "9223372036854775808", "99999999999GiB", "٣kB", "1.0000000001kB",
  ])
  func sizesThatAreNone(text: String) {
    #expect(throws: InvalidValue.self) { try ValueSyntax<Int>.size().read(text) }
  }

  @Test(
    arguments: [
      ("30", Duration.seconds(30)), ("30s", .seconds(30)), ("500ms", .milliseconds(500)),
      ("7.5ms", .microseconds(7500)), ("2min", .seconds(120)), ("1h", .seconds(3600)),
      ("250us", .microseconds(250)), ("0.5", .milliseconds(500)),
    ])
  func durations(text: String, duration: Duration) throws {
    #expect(try ValueSyntax<Duration>.duration(in: .zero...(.seconds(86400))).read(text) == duration)
  }

  @Test(
    arguments: [
      ("1 day", "is not a duration"), ("m", "is not a duration"), ("", "is not a duration"),
      ("25h", "is out of range: from 100 ms to 24 h 00 min"),
      ("50ms", "is out of range: from 100 ms to 24 h 00 min"),
      ("9999999999999h", "is out of range"),
    ])
  func durationsThatAreNone(text: String, reason: String) throws {
    let error = try #require(throws: InvalidValue.self) {
      try ValueSyntax<Duration>.duration(in: .milliseconds(100)...(.seconds(86400))).read(text)
    }
    #expect(error.reason.hasPrefix(reason))
  }

  @Test(arguments: ["0", "11", "-1", "one", "", "5.0"])
  func countsThatAreNone(text: String) throws {
    let error = try #require(throws: InvalidValue.self) { try ValueSyntax.count(in: 1...10).read(text) }
    #expect(error.reason == "is not a whole number from 1 to 10")
  }

  @Test(
    arguments: [
      ("0x26000-0x3FFFF", 0x26000, 0x40000), ("0x26000+64KiB", 0x26000, 0x36000),
      ("0X26000+0x100", 0x26000, 0x26100), ("0-16", 0, 17), ("16-16", 16, 17),
      ("0xFFFFFFFFFFFFFFFE+1", .max - 1, .max),
    ] as [(String, UInt64, UInt64)])
  func addresses(text: String, start: UInt64, end: UInt64) throws {
    #expect(try ValueSyntax<AddressRange>.addressRange.read(text) == AddressRange(start: start, end: end))
  }

  @Test(arguments: [
    "", "-", "0x26000", "0x40000-0x26000", "0x-0x10", "0x-1-5", "-1-5", "26000h-5", "1+", "1+0", "0x+1+5",
    "1--5",
    "0xFFFFFFFFFFFFFFFF+2", "0-0xFFFFFFFFFFFFFFFF", "0..5",
  ])
  func addressesThatAreNone(text: String) {
    #expect(throws: InvalidValue.self) { try ValueSyntax<AddressRange>.addressRange.read(text) }
  }

  enum Colour: String, CaseIterable { case red, green }

  @Test func wordsAreOffered() throws {
    let syntax = ValueSyntax<Colour>.oneOf()
    #expect(syntax.placeholder == "red|green")
    #expect(try syntax.read("green") == .green)
    let error = try #require(throws: InvalidValue.self) { try syntax.read("geren") }
    #expect(error.reason == "is not one of red, green; did you mean green?")
  }
}
