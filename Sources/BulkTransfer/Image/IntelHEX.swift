internal import Foundation

/// The contents of an Intel HEX file: bytes at addresses, without anything for the addresses in between.
struct IntelHEX: Sendable {
  /// Bytes that lie one after another, in the file and in memory.
  struct Chunk: Hashable, Sendable {
    var address: UInt64
    /// Where they are in `bytes`.
    var offset: Int
    var count: Int

    var end: UInt64 { address + UInt64(count) }
  }

  /// Where the program starts, from a record of type 03 or 05.
  enum StartAddress: Hashable, Sendable {
    case segment(cs: UInt16, ip: UInt16)
    case linear(UInt32)
  }

  /// Data of all records, in the order of the file.
  var bytes: [UInt8]
  /// Where they belong, by address, without overlaps.
  var chunks: [Chunk]
  var start: StartAddress?

  /// Gaps up to this size come from aligning to a flash page, and are filled with 0xFF as erased flash; beyond a page there is something else on
  /// the other side: option bytes, RAM, another image.
  static let largestGap: UInt64 = 4096
  /// Within addresses that the user has named, gaps are filled up to this size.
  static let largestGapInRange: UInt64 = 1 << 24

  /// Addresses that hold data, adjacent ones joined.
  var sections: [AddressRange] { joined(gap: 0) }

  /// Addresses that make one image each: sections with small gaps joined.
  var regions: [AddressRange] { joined(gap: Self.largestGap) }

  private func joined(gap: UInt64) -> [AddressRange] {
    var ranges: [AddressRange] = []
    for chunk in chunks {
      if let last = ranges.last, chunk.address - last.end <= gap {
        ranges[ranges.count - 1] = AddressRange(start: last.start, end: chunk.end) ?? last
      } else if let range = AddressRange(start: chunk.address, end: chunk.end) {
        ranges.append(range)
      }
    }
    return ranges
  }

  /// The part of it within addresses; its image starts at the first byte of data there.
  func cut(to range: AddressRange) -> IntelHEX {
    var cut = self
    cut.chunks = chunks.compactMap { chunk in
      let (from, to) = (max(chunk.address, range.start), min(chunk.end, range.end))
      guard from < to else { return nil }
      return Chunk(address: from, offset: chunk.offset + Int(from - chunk.address), count: Int(to - from))
    }
    return cut
  }

  /// The one image in it, with its addresses.
  ///
  /// - Parameters:
  ///   - range: addresses that the user has named; nil for all.
  ///   - name: what errors call the file.
  /// - Throws: `invalidArgument` if there is none, or more than one: the regions are listed.
  func image(
    range: AddressRange?, name: String
  ) throws(TransferError) -> (addresses: AddressRange, source: SectionSource) {
    let chosen = range.map { cut(to: $0) } ?? self
    let regions = range == nil ? chosen.regions : chosen.joined(gap: Self.largestGapInRange)
    guard let first = regions.first else {
      let where_ = range.map { " within \($0)" } ?? ""
      throw TransferError(
        .invalidArgument, "\(name) holds no data\(where_)",
        advice: range == nil ? nil : "it has data at \(Self.list(self.regions))")
    }
    guard regions.count == 1 else {
      let largest = regions.max { $0.count < $1.count } ?? first
      throw TransferError(
        .invalidArgument, "\(name) holds \(regions.count) images far apart: \(Self.list(regions))",
        advice: "choose what to send by its addresses", remedy: .chooseAddresses(largest))
    }
    return (first, SectionSource(chosen, addresses: first))
  }

  /// Ranges with their sizes, as a sentence lists them.
  static func list(_ ranges: [AddressRange]) -> String {
    let shown = ranges.prefix(8).map { "\($0) (\($0.count) bytes)" }
    let more = ranges.count > shown.count ? ["\(ranges.count - shown.count) more"] : []
    return (shown + more).joined(separator: ", ")
  }
}

/// The image in an Intel HEX file as bytes: data from the file, 0xFF in the small gaps, which take no memory.
final class SectionSource: ByteSource {
  static let fill: UInt8 = 0xFF

  let size: UInt64
  private let contents: IntelHEX
  private let start: UInt64

  /// The bytes at `addresses`.
  init(_ contents: IntelHEX, addresses: AddressRange) {
    self.contents = contents
    start = addresses.start
    size = addresses.count
  }

  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    try checkRange(at: offset, count: count)
    let (from, to) = (start + offset, start + offset + UInt64(count))
    var bytes = [UInt8](repeating: Self.fill, count: count)
    var index = firstChunk(endingAfter: from)
    while index < contents.chunks.count, contents.chunks[index].address < to {
      let chunk = contents.chunks[index]
      let (first, last) = (max(chunk.address, from), min(chunk.end, to))
      let source = chunk.offset + Int(first - chunk.address)
      let target = Int(first - from)
      let length = Int(last - first)
      bytes.replaceSubrange(target..<target + length, with: contents.bytes[source..<source + length])
      index += 1
    }
    return Data(bytes)
  }

  private func firstChunk(endingAfter address: UInt64) -> Int {
    var (low, high) = (0, contents.chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if contents.chunks[middle].end > address { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
