import BulkTransfer
import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

@Suite struct StatusCommandTests {
  private func record(confirmed: UInt64, name: String = "fw.bin") throws -> TransferRecord {
    let hash = try SHA256Hasher.digest(of: Data("object".utf8))
    return try TransferRecord(
      device: .init(name: "bench\u{1B}[2J"),
      objects: [
        .init(
          name: name, path: "/builds/\(name)", format: .raw, fileSize: 1000, fileModified: 1, size: 1000,
          sha256: hash, confirmed: confirmed)
      ], started: Date(timeIntervalSince1970: 1_800_000_000),
      updated: Date(timeIntervalSince1970: 1_800_000_060),
      lastError: .init(code: .disconnected, message: "the link was\nlost"))
  }

  private func withState(_ body: (String) async throws -> Void) async throws {
    let folder = TemporaryFolder()
    try await body(folder.path("state"))
    withExtendedLifetime(folder) {}
  }

  @Test func nothingIsUnfinished() async throws {
    try await withState { state in
      let run = await ToolRun("status", variables: ["XDG_STATE_HOME": state])
      #expect(run.code == .success)
      #expect(run.output == "nothing is unfinished\n")
      try Documentation.check(await ToolRun("status", "--json", variables: ["XDG_STATE_HOME": state]).lines)
    }
  }

  @Test func tellsWhereATransferStands() async throws {
    try await withState { state in
      let record = try record(confirmed: 425)
      let claim = try TransferJournal(directory: "\(state)/bluehaul")
        .claim(record.transferID, device: record.device)
      try claim.save(record)
      claim.release()
      let text = await ToolRun("status", variables: ["XDG_STATE_HOME": state])
      #expect(text.code == .success)
      #expect(
        text.output == """
          \(record.shortID)  fw.bin to bench\\u{1B}[2J: 42 %, 425 B of 1000 B confirmed
              2027-01-15T08:01:00Z: the link was\\u{A}lost
              go on with: bluehaul resume \(record.shortID) --to $'bench\\033[2J'

          """)
      let json = await ToolRun("status", "--json", variables: ["HOME": "/", "XDG_STATE_HOME": state])
      try Documentation.check(json.lines)
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
      #expect(object["event"] as? String == "unfinished")
      #expect(object["confirmed"] as? Int == 425)
      #expect(object["percent"] as? Int == 42)
      #expect(object["device"] as? String == "bench\u{1B}[2J")
      #expect(object["last_error"] as? String == "disconnected")
    }
  }

  @Test(arguments: ["", "{", "{\"format\": \"bluehaul-journal\", \"version\": 99}"])
  func aDamagedJournalIsAWarning(text: String) async throws {
    try await withState { state in
      try FileManager.default.createDirectory(atPath: "\(state)/bluehaul", withIntermediateDirectories: true)
      try Data(text.utf8).write(to: URL(filePath: "\(state)/bluehaul/0-1.json"))
      let run = await ToolRun("status", variables: ["XDG_STATE_HOME": state])
      #expect(run.code == .success)
      #expect(run.output == "")
      #expect(run.errors.hasPrefix("warning: "))
      #expect(run.errors.contains("0-1.json"))
      #expect(run.errors.contains(text.contains("99") ? "a newer one" : "bluehaul status forget 0-1 "))
      try Documentation.check(await ToolRun("status", "--json", variables: ["XDG_STATE_HOME": state]).lines)
    }
  }

  @Test("what lies in a journal's place is named, with what to do about it", arguments: ["folder", "FIFO"])
  func anotherKindOfFile(kind: String) async throws {
    try await withState { state in
      let path = "\(state)/bluehaul/0-1.json"
      try FileManager.default.createDirectory(
        atPath: kind == "folder" ? path : "\(state)/bluehaul", withIntermediateDirectories: true)
      if kind == "FIFO" { try #require(unsafe mkfifo(path, 0o600) == 0) }
      for (arguments, code) in [(["status"], ExitCode.success), (["resume"], .localStorage)] {
        let run = await ToolRun(arguments, variables: ["XDG_STATE_HOME": state])
        #expect(run.code == code)
        #expect(
          run.errors.contains("0-1.json: it is no regular file") && run.errors.contains("move away"),
          "\(run.errors)")
        #expect(run.errors.components(separatedBy: "0-1.json").count == 2, "told once")
      }
      let forget = await ToolRun("status", "forget", "--all", variables: ["XDG_STATE_HOME": state])
      // Only what cannot be removed as a file is left to a person.
      #expect(forget.code == (kind == "folder" ? .localStorage : .success))
      #expect(
        forget.errors.isEmpty == (kind == "FIFO") && (kind == "FIFO" || forget.errors.contains("move away")))
    }
  }

  /// Leaves records of transfers of files of these sizes to these devices; returns their identifiers.
  private func leave(_ transfers: [(size: UInt64, device: TransferManifest.Target)], in state: String) throws
    -> [String]
  {
    try transfers.map { size, device in
      let hash = try SHA256Hasher.digest(of: Data("object".utf8))
      let record = try TransferRecord(
        device: device,
        objects: [
          .init(
            name: "fw.bin", path: "/builds/fw.bin", format: .raw, fileSize: size, fileModified: 1, size: size,
            sha256: hash, confirmed: 0)
        ], started: Date(timeIntervalSince1970: 1_800_000_000))
      let claim = try TransferJournal(directory: "\(state)/bluehaul").claim(record.transferID, device: device)
      try claim.save(record)
      claim.release()
      return record.transferID.hex
    }
  }

  private func files(_ state: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: "\(state)/bluehaul")) ?? []).filter {
      $0.hasSuffix(".json")
    }
  }

  @Test func forgetsByIdentifierAndByDevice() async throws {
    try await withState { state in
      let variables = ["XDG_STATE_HOME": state]
      let here = UUID()
      let ids = try leave(
        [
          (1, .init(name: "bech-1")), (2, .init(name: "bech-1")), (3, .init(name: "bench-1")),
          (4, .init(identifier: here.uuidString)),
        ], in: state)
      // Only what a word names for certain.
      for wrong in [
        ["status", "forget", "nobody"], ["status", "forget"], ["status", "forget", "--all", "bech-1"],
        ["status", "forget", "bench-1", "nobody"],
      ] {
        #expect(await ToolRun(wrong, variables: variables).code == .usage, "\(wrong)")
      }
      #expect(files(state).count == 4)

      let one = await ToolRun("status", "forget", String(ids[2].prefix(12)), "--json", variables: variables)
      #expect(one.code == .success)
      try Documentation.check(one.lines)
      #expect(one.output.contains(ids[2]))
      let two = await ToolRun("status", "forget", "bech-1", variables: variables)
      #expect(two.code == .success)
      #expect(
        two.output.split(separator: "\n").allSatisfy {
          $0.hasPrefix("forgotten: ") && $0.hasSuffix(" to bech-1")
        })
      #expect(files(state).count == 1)
      #expect(
        await ToolRun("status", "forget", here.uuidString.lowercased(), variables: variables).code == .success
      )
      #expect(await ToolRun("status", variables: variables).output == "nothing is unfinished\n")
    }
  }

  @Test func whatIsInUseIsNotForgottenAndKeepsNothingElse() async throws {
    try await withState { state in
      let variables = ["XDG_STATE_HOME": state]
      let ids = try leave([(1, .init(name: "a")), (2, .init(name: "b"))], in: state)
      try Data("{".utf8).write(to: URL(filePath: "\(state)/bluehaul/0-1.json"))
      let journal = TransferJournal(directory: "\(state)/bluehaul")
      let busy = try #require(
        try journal.entries().compactMap { try? $0.record.get() }.first { $0.deviceName == "a" })
      let claim = try journal.claim(busy.transferID, device: busy.device)
      let run = await ToolRun("status", "forget", "--all", "--json", variables: variables)
      #expect(run.code == .locked)
      #expect(run.errors.contains("pid \(getpid())"))
      try Documentation.check(run.lines)
      #expect(run.output.contains(ids[1]) && run.output.contains("0-1.json"))
      #expect(files(state).count == 1)
      #expect(try claim.load() == busy)
      claim.release()
      #expect(await ToolRun("status", "forget", "--all", variables: variables).code == .success)
      #expect(files(state).isEmpty)
      #expect(
        await ToolRun("status", "forget", "--all", variables: variables).output == "nothing is unfinished\n")
    }
  }

  @Test func withoutAFolderForStateThereIsAWayOut() async {
    let run = await ToolRun("status", variables: ["XDG_STATE_HOME": "relative"])
    #expect(run.code == .localStorage)
    #expect(run.errors.contains("set XDG_STATE_HOME"))
  }
}
