import BulkTransfer
import Foundation
import Testing

@Suite("Records of an L2CAP channel", .timeLimit(.minutes(30)))
struct RecordTests {
  static let records: [Record] = [
    Record(kind: .control, body: Data([1])),
    Record(kind: .sync, body: SyncPacket(session: 1, epoch: Epoch(rawValue: 1), offset: 0).encoded),
    Record(kind: .stream, body: Data((0..<300).map { UInt8(truncatingIfNeeded: $0) })),
    Record(kind: .control, body: Data(repeating: 2, count: 512)),
    Record(kind: .stream, body: Data([9])),
    Record(kind: .sync, body: SyncPacket(session: 2, epoch: Epoch(rawValue: 9), offset: 77).encoded),
  ]

  /// Records with neighbouring parts of the stream joined: their borders mean nothing.
  private func joined(_ records: [Record]) -> [Record] {
    records.reduce(into: []) { result, record in
      if record.kind == .stream, let last = result.last, last.kind == .stream {
        result[result.count - 1].body.append(record.body)
      } else {
        result.append(Record(kind: record.kind, body: Data(record.body)))
      }
    }
  }

  @Test("Every slicing gives the same records", arguments: 1...40)
  func slicing(size: Int) throws {
    let octets = Self.records.map(RecordEncoder.encode).reduce(Data(), +)
    var decoder = RecordDecoder()
    var found: [Record] = []
    var rest = octets
    while !rest.isEmpty {
      found += try decoder.decode(rest.prefix(size))
      rest = rest.dropFirst(size)
    }
    #expect(joined(found) == joined(Self.records))
  }

  @Test("Two pieces, cut at every octet")
  func cuts() throws {
    let octets = Self.records.map(RecordEncoder.encode).reduce(Data(), +)
    for cut in 0...octets.count {
      var decoder = RecordDecoder()
      let found = try decoder.decode(octets.prefix(cut)) + decoder.decode(octets.dropFirst(cut))
      #expect(joined(found) == joined(Self.records))
    }
  }

  @Test("A long part of the stream is spread over records of allowed length")
  func longBody() throws {
    var random = SeededGenerator(3)
    let body = random.bytes(3 * Record.bodyLimit + 5)
    var decoder = RecordDecoder()
    let found = try decoder.decode(RecordEncoder.encode(Record(kind: .stream, body: body)))
    #expect(found.map(\.body.count) == [16384, 16384, 16384, 5])
    #expect(found.map(\.body).reduce(Data(), +) == body)
  }

  @Test(
    "An unknown kind and a length out of range are errors, and stay so",
    arguments: [
      [0, 1, 0], [4, 1, 0], [255, 1, 0], [1, 0, 0], [2, 0, 0], [1, 1, 2], [2, 1, 64], [3, 21, 0],
    ])
  func malformed(header: [UInt8]) {
    var decoder = RecordDecoder()
    #expect(throws: HaulCodingError.self) { try decoder.decode(Data(header)) }
    #expect(throws: HaulCodingError.self) { try decoder.decode(Data([1, 1, 0, 5])) }
  }

  @Test("Random octets never do more than end in an error", arguments: 0..<50)
  func garbage(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    var decoder = RecordDecoder()
    for _ in 0..<50 {
      guard let records = try? decoder.decode(random.bytes(random.pick(0...50))) else { break }
      for record in records where record.kind != .stream { #expect(record.body.count <= 512) }
    }
  }
}
