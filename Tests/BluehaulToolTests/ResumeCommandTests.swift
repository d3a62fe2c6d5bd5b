import BulkTransfer
import Foundation
import Testing

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct ResumeCommandTests {
    @Test func anInterruptedPushGoesOnWhereTheReceiverStands() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 4 << 20)
      let receiver = await bench.receiver()
      let push = await bench.run(["push", "--json", file, "--to", "bench-1"], interruptedAt: 300_000)
      #expect(push.code == .interrupted)
      let advice = try #require(push.errors.split(separator: "\n").last)
      #expect(push.errors.hasPrefix("bluehaul: interrupted; "))
      #expect(advice.hasPrefix("go on with: bluehaul resume "))
      #expect(try bench.names(in: "in") == [], "nothing has the final name yet")

      let status = await bench.run("status", "--json")
      try Documentation.check(status.lines)
      #expect(status.output.contains("\"event\":\"unfinished\""))
      #expect(status.output.contains("\"last_error\":\"cancelled\""))

      let resume = await bench.run(advice.split(separator: " ").dropFirst(4).map(String.init) + ["--json"])
      #expect(resume.code == .success, "\(resume.errors)")
      try Documentation.check(resume.lines)
      #expect(resume.output.contains("\"event\":\"resumed\""))
      #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
      #expect(await bench.run("resume").output == "nothing is unfinished\n")
      _ = await receiver.stop()
    }

    /// Leaves a journal as an interrupted push does.
    private func interrupted(
      _ bench: Bench, _ file: String, at device: String = "bench-1", facts: [String: String] = [:]
    ) async throws -> SHA256Digest {
      let object = try ImageFile(path: file).describe()
      let plan = try PushPlan(TransferManifest(objects: [object]))
      let journal = try PushJournal(
        plan, device: .init(name: device),
        in: TransferJournal(directory: "\(bench.folder)/state/bluehaul"),
        folder: bench.folder)
      journal.note(durable: [4096], facts: facts)
      try journal.end(TransferError(.disconnected, "the link was lost"))
      return plan.manifest.transferID
    }

    @Test func aFileThatHasChangedIsNotResumed() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      _ = try await interrupted(bench, file)
      let url = URL(filePath: file)
      let date = try FileManager.default.attributesOfItem(atPath: file)[.modificationDate]
      var bytes = try Data(contentsOf: url)
      bytes[5000] ^= 1
      try bytes.write(to: url)
      if let date { try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file) }
      let resume = await bench.run("resume")
      #expect(resume.code == .badFile)
      #expect(resume.errors.contains("fw.bin has changed since "))
      // The file as it is now is another transfer.
      let receiver = await bench.receiver()
      let push = await bench.run("push", file, "--to", "bench-1", "--json")
      #expect(push.code == .success)
      try Documentation.check(push.lines)
      #expect(push.output.contains("\"event\":\"changed_since\""))
      #expect(try bench.contents("in/fw.bin") == bytes)
      _ = await receiver.stop()
    }

    @Test func aTransferIsLockedWhileAnotherRunWorksOnIt() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let id = try await interrupted(bench, file)
      let claim = try TransferJournal(directory: "\(bench.folder)/state/bluehaul")
        .claim(id, device: .init(name: "bench-1"))
      for arguments in [
        ["push", file, "--to", "bench-1"], ["resume"], ["resume", String(id.hex.prefix(6))],
      ] {
        #expect(await bench.run(arguments).code == .locked)
      }
      claim.release()
    }

    @Test(arguments: ["", "{", "{\"format\":\"bluehaul-journal\",\"version\":2}"])
    func aDamagedJournalIsReplacedOnRequest(text: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      _ = try await interrupted(bench, file)
      let state = "\(bench.folder)/state/bluehaul"
      let name = try #require(
        try FileManager.default.contentsOfDirectory(atPath: state).first { $0.hasSuffix(".json") })
      try Data(text.utf8).write(to: URL(filePath: "\(state)/\(name)"))
      let push = await bench.run("push", file, "--to", "bench-1")
      #expect(push.code == .localStorage)
      #expect(push.errors.contains(name))
      #expect(push.errors.contains(text.contains("2") ? "a newer one" : "remove that file"))
      let resume = await bench.run("resume")
      #expect(resume.code == .localStorage, "nothing is known to be finished")
      #expect(resume.errors.components(separatedBy: name).count == 2, "told once: \(resume.errors)")
      #expect(resume.errors.split(separator: "\n").count == 2, "with what to do: \(resume.errors)")
      let receiver = await bench.receiver()
      #expect(await bench.run("push", file, "--to", "bench-1", "--restart").code == .success)
      _ = await receiver.stop()
    }

    @Test("what did not get through in large coded segments goes on in small ones, or as it is")
    func codingLimit() async throws {
      var streams: [Double] = []
      for limit in [nil, "0:12", "0::uncoded"] {
        let bench = try Bench()
        let file = try bench.file("fw.bin", size: 200_000)
        _ = try await interrupted(bench, file, facts: limit.map { ["coding-limit": $0] } ?? [:])
        // A run that does not get to the device knows no more than the one before.
        #expect(await bench.run("resume", "--timeout", "1s").code == .notFound)
        let receiver = await bench.receiver()
        let resume = await bench.run("resume", "--json")
        #expect(resume.code == .success, "\(resume.errors)")
        streams.append(try #require(CodedPushTests.last("stream", in: resume)))
        _ = await receiver.stop()
        #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
      }
      #expect(streams == streams.sorted() && Set(streams).count == 3)
      #expect(streams[2] > 200_000)
    }

    @Test func resumeWantsOneTransfer() async throws {
      let bench = try Bench()
      let first = try await interrupted(bench, try bench.file("a.bin", size: 10_000, seed: 1))
      _ = try await interrupted(bench, try bench.file("b.bin", size: 10_000, seed: 2))
      let any = await bench.run("resume")
      #expect(any.code == .usage)
      #expect(any.errors.contains("2 transfers are meant"))
      #expect(any.errors.contains(first.hex.prefix(12)))
      #expect(await bench.run("resume", "zzz").code == .usage)
    }

    @Test func theSameFilesAtTwoDevicesAreToldApartByTheDevice() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      _ = try await interrupted(bench, file)
      _ = try await interrupted(bench, file, at: "bench-2")
      let any = await bench.run("resume")
      #expect(any.code == .usage)
      #expect(any.errors.contains("--to"))
      #expect(await bench.run("resume", "--to", "bench-3").code == .usage)
      let receiver = await bench.receiver()
      #expect(await bench.run("resume", "--to", "bench-1").code == .success)
      #expect(try bench.names(in: "in") == ["fw.bin"])
      #expect(await bench.run("status").output.contains("bench-2"))
      _ = await receiver.stop()
    }

    @Test func aRunThatDoesNotReachTheDeviceLeavesTheRecordAsItWas() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      _ = try await interrupted(bench, file)
      let resume = await bench.run("resume", "--timeout", "2s")
      #expect(resume.code == .notFound)
      #expect(await bench.run("status", "--json").output.contains("\"confirmed\":4096,"))
    }

    @Test func theRecordOfAManifestNamesItsFilesWhereTheyAre() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let manifest = "\(bench.folder)/release.json"
      #expect(await bench.run("manifest", "create", file, "--output", manifest).code == .success)
      #expect(try String(decoding: bench.contents("release.json"), as: UTF8.self).contains("\"fw.bin\""))
      let push = await bench.run("push", "--manifest", manifest, "--to", "bench-1", "--timeout", "2s")
      #expect(push.code == .notFound)
      let receiver = await bench.receiver()
      let resume = await bench.run("resume")
      #expect(resume.code == .success, "\(resume.errors)")
      #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
      _ = await receiver.stop()
    }

    @Test("the record has the radio from the start", arguments: ["virtual:/an air", "virtual:here"])
    func radioOfARecord(words: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let push = await bench.run("push", file, "--to", "nobody", "--timeout", "2s", "--radio", words)
      #expect(push.code == .notFound)
      let journal = TransferJournal(directory: "\(bench.folder)/state/bluehaul")
      let records = try journal.entries().map { try $0.record.get() }
      let folder = words == "virtual:here" ? "\(FileManager.default.currentDirectoryPath)/here" : "/an air"
      #expect(records.map { $0.link["radio"] } == ["virtual:\(folder)"])
    }

    @Test("with --restart, each file begins at 0")
    func restart() async throws {
      let bench = try Bench()
      let files = try ["a.bin", "b.bin"].map {
        try bench.file($0, size: 2 << 20, seed: $0 == "a.bin" ? 1 : 2)
      }
      let receiver = await bench.receiver()
      for file in files {
        let push = await bench.run(["push", "--json", file, "--to", "bench-1"], interruptedAt: 150_000)
        #expect(push.code == .interrupted)
      }
      let push = await bench.run(["push", "--json", "--restart", "--to", "bench-1"] + files)
      #expect(push.code == .success)
      #expect(!push.output.contains("\"event\":\"resumed\""))
      _ = await receiver.stop()
    }
  }
}
