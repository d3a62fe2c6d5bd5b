import BulkTransfer
import ChildProcess
import Foundation
import Testing

@testable import BluehaulTool

/// What a shell makes of a command line: its words.
private func words(_ line: some StringProtocol) async throws -> [String] {
  let shell = try ChildProcess("/bin/bash", ["-c", "printf '%s\\n' \(line)"])
  let words = await shell.allLines()
  #expect(await shell.ending() == .exit(0), "\(shell.errors())")
  return words
}

@Suite struct ShellWordTests {
  static let texts = [
    "bench-1", "", " ", "two words", "it's", "\"$HOME\" `id` $(id) *?[a]~!#;&|<>", "'", "''", "back\\slash",
    "-h", "--to", "--to=x",
    "äöü 漢字", "tab\there", "bench\u{1B}[2J", "it's \u{1B}\\7", "\u{7F}\u{80}7", "a\u{202E}b", "$'x'",
  ]

  @Test(arguments: texts)
  func aShellReadsTheTextBack(text: String) async throws {
    #expect(try await words(Printable.shellWord(text)) == [text])
    #expect(
      Printable.shellWord(text) == Printable.text(Printable.shellWord(text), limit: .max),
      "nothing that moves the cursor")
  }

  @Test(arguments: texts.filter { !$0.isEmpty })
  func theToolReadsTheDeviceBack(text: String) async throws {
    let id = try SHA256Hasher.digest(of: Data("transfer".utf8))
    let line = try await words(ResumeCommand.line(id, to: .init(name: text)))
    guard case .command(_, let arguments) = try ArgumentParser(root: .bluehaul).parse(Array(line.dropFirst()))
    else {
      Issue.record("no command")
      return
    }
    #expect(arguments[ResumeCommand.to]?.name == text)
    #expect(arguments.all(ResumeCommand.id) == [String(id.hex.prefix(12))])
  }

  @Test func whatTheLinkLooksForIsNamed() throws {
    let here = UUID().uuidString
    #expect(try TransferManifest.Target(name: "bench-1", identifier: here).word == here)
    #expect(try TransferManifest.Target(name: "bench-1", identifier: "no UUID").word == "bench-1")
    #expect(try TransferManifest.Target(identifier: "no UUID").word == "no UUID")
    #expect(try TransferManifest.Target(name: "bench-1").word == "bench-1")
  }
}

extension WholeRuns {
  /// The commands that are printed to go on with: they are run as they are printed.
  @Suite struct GoOnTests {
    /// The words behind `bluehaul` of a line that says how to go on.
    private func command(_ line: some StringProtocol) async throws -> [String] {
      let text = try #require(line.components(separatedBy: "go on with: ").dropFirst().first)
      let line = try await words(text)
      #expect(line.first == "bluehaul")
      return Array(line.dropFirst())
    }

    /// A push that is interrupted somewhere behind its middle.
    private func interrupted(_ bench: Bench, _ file: String, to device: String) async -> ToolRun {
      await bench.run(
        ["push", "--json", file, "--to", device, "--compress", "never"], interruptedAt: 2_600_000)
    }

    @Test("the same file at two devices: each printed command goes on at its own", arguments: [true, false])
    func twoDevices(byStatus: Bool) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 4 << 20)
      let devices = ["bench-1", "the tester's 2nd; $HOME"]
      var receivers: [RunningReceiver] = []
      for (number, device) in devices.enumerated() {
        receivers.append(await bench.receiver("--into", "\(bench.folder)/in-\(number)", named: device))
      }
      var lines: [String] = []
      for device in devices {
        let push = await interrupted(bench, file, to: device)
        #expect(push.code == .interrupted)
        lines.append(try #require(push.errors.split(separator: "\n").last).description)
      }
      if byStatus {
        // In the order of their last change, which may be the same second.
        let found = await bench.run("status").lines.filter { $0.contains("go on with: ") }
        lines = found.filter { $0.contains("bench-1") } + found.filter { !$0.contains("bench-1") }
      }
      try #require(lines.count == 2)
      #expect(Set(lines).count == 2)
      for (number, line) in lines.enumerated() {
        let resume = await bench.run(try await command(line) + ["--json"])
        #expect(resume.code == .success, "\(line): \(resume.errors)")
        #expect(resume.output.contains("\"event\":\"resumed\""))
        #expect(try bench.contents("in-\(number)/fw.bin") == bench.contents("fw.bin"))
        #expect(try bench.names(in: "in-1").count == number)
      }
      #expect(await bench.run("status").output == "nothing is unfinished\n")
      for receiver in receivers { _ = await receiver.stop() }
    }

    @Test("a device that has two names in two records is one")
    func oneDeviceTwoRecords() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let plan = try PushPlan(TransferManifest(objects: [try ImageFile(path: file).describe()]))
      let here = UUID()
      let both = try TransferManifest.Target(name: "bench-1", identifier: here.uuidString.lowercased())
      for device in [both, try .init(identifier: here.uuidString)] {
        let journal = try PushJournal(
          plan, device: device, in: TransferJournal(directory: "\(bench.folder)/state/bluehaul"),
          folder: bench.folder)
        try journal.end(TransferError(.disconnected, "the link was lost"))
      }
      let lines = await bench.run("status").lines.filter { $0.contains("go on with: ") }
      #expect(lines.count == 2)
      // It is looked for, and not asked about.
      for line in lines {
        #expect(await bench.run(try await command(line) + ["--timeout", "1s"]).code == .notFound)
      }
      #expect(await bench.run("resume", "--to", "bench-1", "--timeout", "1s").code == .notFound)
    }

    /// What a push says when it ends without success: bytes that are confirmed.
    private func confirmed(_ run: ToolRun, of size: Int) throws -> String {
      let line = try #require(run.errors.split(separator: "\n").first)
      let words = try #require(
        line.firstMatch(of: /; ([0-9.]+ [KM]?i?B) of ([0-9.]+ [KM]?i?B) are confirmed$/))
      #expect(words.2 == Amounts.bytes(size))
      return String(words.1)
    }

    @Test(
      "a link that is lost for good: exit code 7, what is confirmed, a journal that says so, and a command that completes it"
    )
    func lostForGood() async throws {
      for via in ["gatt", "l2cap"] {
        let bench = try Bench()
        let size = 4 << 20
        let file = try bench.file("fw.bin", size: size)
        let receiver = await bench.receiver()
        let away = SendingMoment(octets: 2_600_000) { [weak bench] in bench?.setInReach(false, "bench-1") }
        let push = await bench.run(
          [
            "push", "--json", file, "--to", "bench-1", "--via", via, "--timeout", "10s", "--compress",
            "never",
          ],
          at: away)
        #expect(push.code == .linkLost, "\(push.errors)")
        #expect(push.code.rawValue == 7)
        try Documentation.check(push.lines)
        #expect(push.output.contains("\"event\":\"link_lost\""))
        #expect(!push.output.contains("\"percent\":100"))
        let said = try confirmed(push, of: size)
        let advice = try #require(push.errors.split(separator: "\n").last)
        #expect(push.errors.split(separator: "\n").count == 2)
        #expect(try bench.names(in: "in") == [], "nothing has the final name yet")

        let entries = try TransferJournal(directory: "\(bench.folder)/state/bluehaul").entries()
        let record = try #require(try entries.first?.record.get())
        #expect(entries.count == 1)
        #expect(record.device.name == "bench-1")
        #expect(Amounts.bytes(Int(record.confirmed)) == said)
        #expect(record.confirmed >= UInt64(size / 2) && record.confirmed < UInt64(size))
        let why = try #require(record.lastError)
        #expect(why.code == .disconnected || why.code == .timedOut)
        #expect(push.errors.contains(why.message))

        bench.setInReach(true, "bench-1")
        let resume = await bench.run(try await command(advice) + ["--json"])
        #expect(resume.code == .success, "\(resume.errors)")
        try Documentation.check(resume.lines)
        let from = try #require(CodedPushTests.last("resumed_from", in: resume))
        // The receiver has what it has confirmed, and may have more.
        #expect(from >= Double(record.confirmed) && from < Double(size))
        #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
        #expect(await bench.run("status").output == "nothing is unfinished\n")
        _ = await receiver.stop()
      }
    }
  }
}
