internal import Foundation

/// Reads Intel HEX text (Intel's "Hexadecimal Object File Format Specification", revision A) piece by piece.
///
/// Lines end with LF, CR or both; blank lines and white space around a record are skipped. Every record must be whole and have the right
/// checksum, exactly one end-of-file record comes last, and no address is given twice. Memory grows with the data alone.
struct IntelHEXParser {
  /// Data beyond this are refused, in bytes.
  static let mostBytes = 1 << 25
  /// Separate pieces beyond this are refused.
  static let mostChunks = 1 << 20
  /// A longer file cannot be within the limit of data, in bytes.
  static let longestText: UInt64 = 3 * (1 << 25)
  /// A record of 255 bytes of data has 521 characters; the rest is room for white space.
  private static let longestLine = 600

  private enum Base {
    /// Type 04, and the state before the first of them: added to the record's address.
    case linear(UInt64)
    /// Type 02: the record's address runs around within 64 KiB.
    case segment(UInt64)
  }

  private let name: String
  private var line: [UInt8] = []
  private var lineNumber = 1
  private var lastWasCR = false
  private var base = Base.linear(0)
  private var bytes: [UInt8] = []
  private var chunks: [IntelHEX.Chunk] = []
  private var start: IntelHEX.StartAddress?
  private var endLine: Int?
  /// An address whose lines are looked for, and those found.
  private let watched: UInt64?
  private(set) var watchedLines: [Int] = []

  /// - Parameters:
  ///   - name: what errors call the file.
  ///   - watched: an address for which ``watchedLines`` collects the lines that give data for it.
  init(name: String, watching watched: UInt64? = nil) {
    self.name = name
    self.watched = watched
  }

  /// Takes the next piece of text.
  mutating func feed(_ text: Data) throws(TransferError) {
    for character in [UInt8](text) {
      switch character {
      case UInt8(ascii: "\n"):
        if !lastWasCR { try endOfLine() }
        lastWasCR = false
      case UInt8(ascii: "\r"):
        try endOfLine()
        lastWasCR = true
      default:
        lastWasCR = false
        line.append(character)
        if line.count > Self.longestLine { throw fault("is longer than a record can be") }
      }
    }
  }

  /// Ends the text.
  mutating func finish() throws(TransferError) -> IntelHEX {
    if !line.isEmpty { try endOfLine() }
    guard endLine != nil else {
      throw TransferError(
        .malformedFile, "\(name) has no end-of-file record: it is cut short after line \(lineNumber - 1)",
        advice: "copy or build it again")
    }
    chunks.sort { ($0.address, $0.offset) < ($1.address, $1.offset) }
    return IntelHEX(bytes: bytes, chunks: chunks, start: start)
  }

  /// The lowest address that is given twice; nil if there is none.
  static func overlap(in hex: IntelHEX) -> UInt64? {
    for (chunk, next) in zip(hex.chunks, hex.chunks.dropFirst()) where next.address < chunk.end {
      return next.address
    }
    return nil
  }

  /// Reads a whole file.
  static func parse(_ source: any ByteSource, name: String) throws(TransferError) -> IntelHEX {
    guard source.size <= longestText else {
      throw TransferError(
        .malformedFile, "\(name) has \(source.size) bytes of Intel HEX, at most \(longestText) are read",
        advice: "convert it to binary: objcopy -I ihex -O binary IN OUT")
    }
    var parser = IntelHEXParser(name: name)
    try source.forEachBlock(step: 1 << 16) { block throws(TransferError) in try parser.feed(block) }
    let hex = try parser.finish()
    try source.checkUnchanged()
    guard let address = overlap(in: hex) else { return hex }
    // Lines are not kept, as almost no file needs them: they are found in a second reading.
    var second = IntelHEXParser(name: name, watching: address)
    try source.forEachBlock(step: 1 << 16) { block throws(TransferError) in try second.feed(block) }
    let lines = second.watchedLines.prefix(2).map(String.init).joined(separator: " and ")
    throw TransferError(
      .malformedFile, "\(name): lines \(lines) both give the byte at \(Self.hex(address))",
      advice: "merge images with a tool that looks for conflicts, such as mergehex or srec_cat")
  }
}

// MARK: Records

extension IntelHEXParser {
  private mutating func endOfLine() throws(TransferError) {
    defer {
      line.removeAll(keepingCapacity: true)
      lineNumber += 1
    }
    // 0x1A is the end-of-file mark that DOS tools append.
    let blank: Set<UInt8> = [0x20, 0x09, 0x1A]
    guard let first = line.firstIndex(where: { !blank.contains($0) }),
      let last = line.lastIndex(where: { !blank.contains($0) })
    else { return }
    if let endLine { throw fault("follows the end-of-file record of line \(endLine)") }
    // Editors may put a byte order mark before the first record.
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let hasMark = lineNumber == 1 && line[first...].starts(with: mark)
    try record(line[first...last].dropFirst(hasMark ? mark.count : 0))
  }

  private mutating func record(_ text: ArraySlice<UInt8>) throws(TransferError) {
    guard text.first == UInt8(ascii: ":") else { throw fault("is no record: it does not start with ':'") }
    let digits = text.dropFirst()
    guard digits.count % 2 == 0 else { throw fault("has an odd number of digits (\(digits.count))") }
    var record: [UInt8] = []
    record.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for character in digits {
      guard let digit = hexDigit(character) else {
        throw fault("has a character in it that is no hexadecimal digit")
      }
      if let first = high {
        record.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    guard record.count >= 5 else {
      throw fault("is cut short: a record has at least 10 digits, it has \(digits.count)")
    }
    let announced = Int(record[0])
    guard record.count == announced + 5 else {
      throw fault("has \(record.count - 5) bytes of data, its length byte says \(announced)")
    }
    let sum = record.dropLast().reduce(UInt8(0)) { $0 &+ $1 }
    let expected = 0 &- sum
    guard record[record.count - 1] == expected else {
      throw fault(
        "has checksum \([record[record.count - 1]].hex.uppercased()), right is \([expected].hex.uppercased())"
      )
    }
    try apply(
      type: record[3], address: UInt64(record[1]) << 8 | UInt64(record[2]), data: record[4..<record.count - 1]
    )
  }

  private mutating func apply(
    type: UInt8, address: UInt64, data: ArraySlice<UInt8>
  ) throws(TransferError) {
    switch type {
    case 0x00: try place(data, at: address)
    case 0x01:
      try expect(data, 0, "an end-of-file record")
      endLine = lineNumber
    case 0x02:
      try expect(data, 2, "an extended segment address record")
      base = .segment(Self.word(data) << 4)
    case 0x03:
      try expect(data, 4, "a start segment address record")
      start = .segment(
        cs: UInt16(truncatingIfNeeded: Self.word(data) >> 16), ip: UInt16(truncatingIfNeeded: Self.word(data))
      )
    case 0x04:
      try expect(data, 2, "an extended linear address record")
      base = .linear(Self.word(data) << 16)
    case 0x05:
      try expect(data, 4, "a start linear address record")
      start = .linear(UInt32(truncatingIfNeeded: Self.word(data)))
    default: throw fault("has record type \([type].hex.uppercased()), known are 00 to 05")
    }
  }

  private mutating func place(_ data: ArraySlice<UInt8>, at address: UInt64) throws(TransferError) {
    switch base {
    case .linear(let base):
      guard base + address + UInt64(data.count) <= 1 << 32 else {
        throw fault("goes beyond the address FFFFFFFF")
      }
      try append(data, at: base + address)
    case .segment(let base):
      let room = Int((1 << 16) - address)
      try append(data.prefix(room), at: base + address)
      try append(data.dropFirst(room), at: base)
    }
  }

  private mutating func append(_ data: ArraySlice<UInt8>, at address: UInt64) throws(TransferError) {
    if data.isEmpty { return }
    guard bytes.count + data.count <= Self.mostBytes else {
      throw fault("exceeds \(Self.mostBytes) bytes of data")
    }
    if let watched, (address..<address + UInt64(data.count)).contains(watched) {
      watchedLines.append(lineNumber)
    }
    if let last = chunks.last, last.end == address {
      chunks[chunks.count - 1].count += data.count
    } else {
      guard chunks.count < Self.mostChunks else {
        throw fault("begins one piece too many: data are scattered over more than \(Self.mostChunks) places")
      }
      chunks.append(IntelHEX.Chunk(address: address, offset: bytes.count, count: data.count))
    }
    bytes.append(contentsOf: data)
  }

  private func expect(_ data: ArraySlice<UInt8>, _ count: Int, _ what: String) throws(TransferError) {
    guard data.count == count else {
      throw fault("is \(what) with \(data.count) bytes of data instead of \(count)")
    }
  }

  private func fault(_ what: String) -> TransferError {
    TransferError(
      .malformedFile, "\(name): line \(lineNumber) \(what)", advice: "copy or build the Intel HEX file again")
  }

  private static func word(_ data: ArraySlice<UInt8>) -> UInt64 { data.reduce(0) { $0 << 8 | UInt64($1) } }

  static func hex(_ address: UInt64) -> String { "0x\(String(address, radix: 16, uppercase: true))" }
}
