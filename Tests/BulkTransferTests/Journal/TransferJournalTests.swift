import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Transfer journal")
struct TransferJournalTests {
  static let instant = Date(timeIntervalSince1970: 1_796_013_000)  // 2026-11-30T04:30:00Z

  static func record(name: String = "bench-1", confirmed: UInt64 = 4) throws -> TransferRecord {
    let object = TransferRecord.Object(
      name: "fw.bin", path: "/home/me/build/fw.hex", format: .intelHEX,
      range: AddressRange(start: 0x26000, end: 0x26009), fileSize: 34,
      fileModified: 1_795_926_600_123_456_789, size: 9,
      sha256: try SHA256Hasher.digest(of: Data("123456789".utf8)), confirmed: confirmed)
    return try TransferRecord(
      device: .init(name: name, identifier: "5C4B1E2D-0A3F-4E51-9B8C-7D6E5F4A3B2C"), objects: [object],
      started: instant,
      updated: instant.addingTimeInterval(72),
      lastError: .init(code: .disconnected, message: "the link to bench-1 was lost"),
      link: ["sessions": "1", "carrier": "gatt", "maximumWriteLength": "244", "radio": "virtual:/tmp/air"])
  }

  @Test("a record is written as the document shows, and read back equal")
  func documentedForm() throws {
    let record = try Self.record()
    let shown = try #require(block(with: "bluehaul-journal", in: document("manifest.md")))
    #expect(String(decoding: record.encoded(), as: UTF8.self) == shown)
    #expect(try TransferRecord(decoding: Data(shown.utf8)) == record)
  }

  @Test(
    "a push leaves a record where something has begun, or where nobody has turned it away",
    arguments: [
      (TransferError.Code.refused, false), (.deviceStorage, false), (.locked, false),
      (.invalidArgument, false),
      (.cancelled, true), (.disconnected, true), (.timedOut, true), (.deviceNotFound, true),
    ])
  func turnedAway(code: TransferError.Code, isKept: Bool) throws {
    let folder = TemporaryFolder()
    let file = try folder.write(pattern(1000), "fw.bin")
    let plan = try PushPlan(TransferManifest(objects: [ImageFile(path: file).describe()]))
    let journal = TransferJournal(directory: folder.path("state"))
    func push(_ durable: [UInt64]?) throws {
      let push = try PushJournal(plan, device: .init(name: "d"), in: journal, folder: folder.path)
      // As at the end of a push whose device has not said anything.
      push.note(durable: durable ?? [], facts: [:])
      try push.end(TransferError(code, "no"))
    }
    try push(nil)
    #expect(try journal.entries().count == (isKept ? 1 : 0))
    if !isKept { #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("state")) == []) }
    try push([0])
    try push(nil)
    #expect(try journal.entries().count == 1)
  }

  @Test("a record outlives its claim, and is gone once completed")
  func life() throws {
    let folder = TemporaryFolder()
    let journal = TransferJournal(directory: folder.path("state/bluehaul"))
    #expect(try journal.entries().isEmpty)
    var record = try Self.record()
    do {
      let claim = try journal.claim(record.transferID, device: record.device)
      #expect(try claim.load() == nil)
      try claim.save(record)
      record.objects[0].confirmed = 8
      record.lastError = nil
      try claim.save(record)
    }
    #expect(try journal.entries().map { try $0.record.get() } == [record])
    let claim = try journal.claim(record.transferID, device: record.device)
    #expect(try claim.load() == record)
    try claim.complete()
    #expect(try journal.entries().isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: journal.directory) == [])
  }

  @Test(
    "a record of the most objects, with the longest paths and all of them escaped, is within what is read")
  func largest() throws {
    var object = try Self.record().objects[0]
    object.path = "/" + String(repeating: "\u{1}", count: 4095)
    object.name = String(repeating: "\u{2}", count: TransferManifest.Object.longestName)
    (object.fileSize, object.size, object.confirmed) = (.max, .max, .max)
    let record = try TransferRecord(
      device: .init(name: "bench-1"), objects: [object], started: Self.instant)
    #expect(record.encoded().count * TransferManifest.mostObjects <= TransferJournal.longestRecord)
  }

  @Test("a second run of the same transfer to the same device is refused, another device is not")
  func locked() throws {
    let folder = TemporaryFolder()
    let journal = TransferJournal(directory: folder.path)
    let record = try Self.record()
    let claim = try journal.claim(record.transferID, device: record.device)
    let error = #expect(throws: TransferError.self) {
      try journal.claim(record.transferID, device: record.device)
    }
    #expect(error?.code == .locked)
    #expect(error?.message == "another process (pid \(getpid())) works on this transfer to bench-1")
    let other = try journal.claim(record.transferID, device: .init(name: "bench-2"))
    #expect(other.path != claim.path)
    claim.release()
    _ = try journal.claim(record.transferID, device: record.device)
  }

  @Test("records are listed, the newest first, damaged ones with their reason at the end")
  func list() throws {
    let folder = TemporaryFolder()
    let journal = TransferJournal(directory: folder.path)
    let transfer = try Self.record().transferID
    for (index, name) in ["a", "b", "c"].enumerated() {
      let device = try TransferManifest.Target(name: name)
      let record = try TransferRecord(
        device: device, objects: Self.record().objects, started: Self.instant,
        updated: Self.instant.addingTimeInterval([1, 3, 2][index]))
      try journal.claim(transfer, device: device).save(record)
    }
    try folder.write(Data("{".utf8), "torn.json")
    try folder.write(Data(), ".hidden.json")
    let entries = try journal.entries()
    #expect(entries.map { try? $0.record.get().device.name } == ["b", "c", "a", nil])
    #expect(entries.last?.path == folder.path("torn.json"))
  }

  @Test(
    "a damaged record is reported with its file and never used, and can be replaced",
    arguments: [
      "", "{\"format\": \"bluehaul-journal\", \"ver", "[]",
      "{\"format\": \"bluehaul-journal\", \"version\": 9}", "\0",
    ])
  func damaged(text: String) throws {
    let folder = TemporaryFolder()
    let journal = TransferJournal(directory: folder.path)
    let record = try Self.record()
    let claim = try journal.claim(record.transferID, device: record.device)
    try Data(text.utf8).write(to: URL(fileURLWithPath: claim.path))
    let error = #expect(throws: TransferError.self) { try claim.load() }
    #expect(error?.code == .damagedState)
    #expect(error?.message.contains(claim.path) == true)
    #expect(error?.advice != nil)
    try claim.save(record)
    #expect(try claim.load() == record)
  }

  @Test("a record that was cut to half is damaged, at whatever place")
  func torn() throws {
    let text = try Self.record().encoded()
    for count in 0..<text.count - 1 {
      let error = #expect(throws: TransferError.self) { try TransferRecord(decoding: text.prefix(count)) }
      #expect(error?.code == .damagedState)
    }
  }

  @Test(
    "values that contradict each other are damage",
    arguments: [
      (
        "\"confirmed\": 4", "\"confirmed\": 10",
        "objects is not valid: 10 bytes are confirmed of an object of 9"
      ),
      ("/home/me", "home/me", "objects is not valid: the path home/me/build/fw.hex is not absolute"),
      ("\"size\": 9", "\"size\": 10", "transferID does not belong"),
      ("\"sessions\": \"1\"", "\"sessions\": 1", "link.sessions is not text"),
      ("\"updated\"", "\"changed\"", "updated is missing"),
    ])
  func contradictions(old: String, new: String, message: String) throws {
    let text = String(decoding: try Self.record().encoded(), as: UTF8.self)
      .replacingOccurrences(of: old, with: new)
    let error = #expect(throws: TransferError.self) {
      try TransferRecord(decoding: Data(text.utf8), document: "j")
    }
    #expect(error?.message.hasPrefix("j: \(message)") == true, "\(error?.message ?? "")")
  }

  @Test("long facts and messages are cut, so that the record can be read again")
  func longFacts() throws {
    var record = try Self.record()
    record.lastError = .init(code: .refused, message: String(repeating: "ä", count: 5000))
    for index in 0..<100 { record.link["\(index)"] = String(repeating: "x", count: 1000) }
    let read = try TransferRecord(decoding: record.encoded())
    #expect(read.link.count == 64)
    #expect(read.lastError?.message.utf8.count == 1024)
  }

  @Test(
    "after an outage at any call the record is an earlier or the new one",
    arguments: VolatileFileSystem.Outage.allCases)
  func outage(_ outage: VolatileFileSystem.Outage) throws {
    for call in 0..<40 {
      let system = VolatileFileSystem()
      let journal = TransferJournal(directory: "/d", operations: system)
      let (first, second) = (try Self.record(confirmed: 1), try Self.record(confirmed: 2))
      var saved = 0
      system.fail(after: call)
      var completed = false
      do {
        let claim = try journal.claim(first.transferID, device: first.device)
        try claim.save(first)
        saved = 1
        try claim.save(second)
        saved = 2
        try claim.complete()
        completed = true
      } catch {}
      system.recover(from: outage)
      let claim = try journal.claim(first.transferID, device: first.device)
      let found = try claim.load()
      switch saved {
      case 0: #expect(found == nil || found == first)
      case 1: #expect(found == first || found == second)
      default: #expect(found == second || found == nil)
      }
      if completed {
        #expect(found == nil)
        return
      }
    }
    Issue.record("the journal never completed")
  }
}
