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
              go on with: bluehaul resume \(record.shortID)

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
      try Documentation.check(await ToolRun("status", "--json", variables: ["XDG_STATE_HOME": state]).lines)
    }
  }

  @Test func withoutAFolderForStateThereIsAWayOut() async {
    let run = await ToolRun("status", variables: ["XDG_STATE_HOME": "relative"])
    #expect(run.code == .localStorage)
    #expect(run.errors.contains("set XDG_STATE_HOME"))
  }
}
