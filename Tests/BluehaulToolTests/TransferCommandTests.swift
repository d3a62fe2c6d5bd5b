import BulkTransfer
import Foundation
import Testing
import VirtualRadio

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct TransferCommandTests {
    @Test(arguments: ["auto", "gatt", "l2cap"])
    func pushAndReceive(via: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 200_000)
      let receiver = await bench.receiver()
      let push = await bench.run("push", file, "--to", "bench-1", "--via", via)
      #expect(push.code == .success, "\(push.errors)")
      #expect(push.lines.contains { $0.hasPrefix("100 %  195.3 KiB verified at the receiver") })
      #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
      let received = await receiver.stop()
      #expect(received.code == .interrupted)
      #expect(received.lines.contains { $0.hasPrefix("received ") && $0.contains("in/fw.bin: SHA-256 ") })
      #expect(received.lines.contains { $0.hasPrefix("100 %") })
      #expect(await bench.run("status").output == "nothing is unfinished\n")
    }

    @Test func severalFilesAreOneTransferWithOnePercentage() async throws {
      let bench = try Bench()
      let files = [
        try bench.file("a.bin", size: 50_000, seed: 1), try bench.file("b.bin", size: 150_000, seed: 2),
      ]
      let receiver = await bench.receiver("--json", "--verbose")
      let push = await bench.run(["push", "--json", "--verbose", "--to", "bench-1"] + files)
      #expect(push.code == .success, "\(push.errors)")
      try Documentation.check(push.lines)
      try Documentation.check(await receiver.stop().lines)
      #expect(try bench.names(in: "in") == ["a.bin", "b.bin"])
      let percentages = push.lines.compactMap { line in
        line.components(separatedBy: "\"percent\":").dropFirst().first.flatMap {
          Int($0.prefix { $0.isNumber })
        }
      }
      #expect(percentages.first == 0)
      #expect(zip(percentages, percentages.dropFirst()).allSatisfy { $0 <= $1 })
      #expect(percentages.count { $0 == 100 } == 1)
    }

    @Test func aManifestWhoseFileHasChangedIsNotSent() async throws {
      let bench = try Bench()
      let (file, manifest) = (try bench.file("fw.bin", size: 10_000), "\(bench.folder)/release.json")
      #expect(await bench.run("manifest", "create", file, "--output", manifest).code == .success)
      var bytes = try bench.contents("fw.bin")
      bytes[5000] ^= 1
      try bytes.write(to: URL(filePath: file))
      let receiver = await bench.receiver()
      #expect(await bench.run("push", "--manifest", manifest, "--to", "bench-1").code == .badFile)
      #expect(try bench.names(in: "in") == [])
      _ = await receiver.stop()
    }

    @Test func aReceiverMayOfferNoChannel() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 20_000)
      let receiver = await bench.receiver("--gatt-only")
      #expect(await bench.run("push", file, "--to", "bench-1", "--via", "l2cap").code == .refused)
      #expect(await bench.run("push", file, "--to", "bench-1").code == .success)
      _ = await receiver.stop()
    }

    @Test(
      "a receiver lets go of a sender that is silent for as long as was said", arguments: ["gatt", "l2cap"])
    func silentSender(via: String) async throws {
      // The link outlives the silence, and so does the sender's patience.
      let bench = try Bench(link: try LinkParameters(parsing: "timeout=32000"))
      let file = try bench.file("fw.bin", size: 2 << 20)
      let receiver = await bench.receiver("--timeout", "3s", "--json", "--verbose")
      let away = SendingMoment(octets: 150_000) { [weak bench] in bench?.takeAwaySender(for: .seconds(20)) }
      let push = await bench.run(
        ["push", "--json", file, "--to", "bench-1", "--via", via, "--timeout", "60s"], at: away)
      #expect(push.code == .success, "\(push.errors)")
      let lines = await receiver.stop().lines
      // Once for the silence, once for the end.
      #expect(lines.count { $0.contains("\"event\":\"sender_gone\"") } == 2)
      #expect(lines.count { $0.contains("\"event\":\"left\"") } == 1)
    }

    @Test("an interrupted demo says so", arguments: ["\"event\":\"demo\"", "\"percent\":1"])
    func interruptedDemo(moment: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 2 << 20)
      let interrupts = Interrupts(exit: {})
      let output = MemorySink { text in
        if text.contains(moment), !interrupts.happened { interrupts.raise() }
      }
      // In simulated time it could be over before anybody reads of it; on this link minutes remain.
      let demo = await bench.run(
        ["demo", file, "--clock", "real", "--link", "phy=S8", "--json"],
        output: output, interrupts: interrupts)
      #expect(demo.code == .interrupted, "\(demo.errors)")
    }

    @Test func aDeviceThatIsNotThereIsNotFound() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let push = await bench.run("push", file, "--to", "nobody", "--timeout", "2s")
      #expect(push.code == .notFound)
      #expect(push.errors.contains("nobody"))
    }

    @Test(
      "a push that was turned away leaves no journal, and an earlier one as it was", arguments: [false, true])
    func turnedAway(isBegun: Bool) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 4 << 20)
      if isBegun {
        let receiver = await bench.receiver()
        let push = await bench.run(["push", file, "--to", "bench-1"], interruptedAt: 300_000)
        #expect(push.code == .interrupted)
        _ = await receiver.stop()
      }
      let before = await bench.run("status", "--json")
      try FileManager.default.createDirectory(
        atPath: "\(bench.folder)/in", withIntermediateDirectories: true)
      try Data("another one".utf8).write(to: URL(filePath: "\(bench.folder)/in/fw.bin"))
      let receiver = await bench.receiver()
      let push = await bench.run("push", file, "--to", "bench-1")
      #expect(push.code == .refused, "\(push.errors)")
      let status = await bench.run("status")
      #expect(status.output.contains("nothing is unfinished") == !isBegun, "\(status.output)")
      if isBegun {
        let confirmed = try #require(before.output.firstMatch(of: /"confirmed":[1-9][0-9]*,/)).output
        #expect(await bench.run("status", "--json").output.contains(confirmed))
      }
      _ = await receiver.stop()
    }

    @Test func existingFilesFollowThePolicy() async throws {
      for (policy, code, names) in [
        ("refuse", ExitCode.refused, ["fw.bin"]), ("replace", .success, ["fw.bin"]),
        ("number", .success, ["fw-1.bin", "fw.bin"]),
      ] {
        let bench = try Bench()
        let file = try bench.file("fw.bin", size: 10_000)
        let receiver = await bench.receiver("--if-exists", policy)
        try Data("other".utf8).write(to: URL(filePath: "\(bench.folder)/in/fw.bin"))
        let push = await bench.run("push", file, "--to", "bench-1")
        #expect(push.code == code, "\(policy): \(push.errors)")
        #expect(try bench.names(in: "in") == names)
        _ = await receiver.stop()
      }
    }

    @Test func aFileAboveTheLimitIsRefused() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let receiver = await bench.receiver("--max-size", "9kB")
      let push = await bench.run("push", file, "--to", "bench-1")
      #expect(push.code == .refused)
      #expect(try bench.names(in: "in") == [])
      _ = await receiver.stop()
    }

    @Test func aReceiverForOneSenderEndsByItself() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let receiver = await bench.receiver("--once")
      #expect(await bench.run("push", file, "--to", "bench-1").code == .success)
      #expect(await receiver.run.value.code == .success)
    }

    @Test(
      "a device has no name that a scan would not report whole",
      arguments: [("0123456789ABCDEF0123456789ABC", true), ("Messger\u{E4}t in Halle 3, Reihe 1", false)])
    func longNames(name: String, fits: Bool) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      guard fits else {
        // 30 bytes in UTF-8.
        let run = await bench.run("receive", "--name", name, "--into", "\(bench.folder)/in", "--json")
        #expect(run.code == .usage)
        #expect(run.errors.contains("30 bytes") && run.errors.contains("1 to 29"), "\(run.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(bench.folder)/in"))
        return
      }
      let receiver = await bench.receiver(named: name)
      let scan = await bench.run("scan", "--json", "--for", "3s")
      #expect(scan.output.contains("\"name\":\"\(name)\""))
      #expect(await bench.run("push", file, "--to", name).code == .success)
      _ = await receiver.stop()
    }

    @Test(
      "a capture into a FIFO that nobody reads ends the command before anything is done",
      arguments: [["push", "fw.bin", "--to", "x"], ["receive", "--name", "x", "--into", "in"], ["demo"]])
    func captureWithoutReader(arguments: [String]) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let fifo = "\(bench.folder)/fifo"
      try #require(unsafe mkfifo(fifo, 0o600) == 0)
      let words = arguments.map { $0 == "fw.bin" ? file : $0 == "in" ? "\(bench.folder)/in" : $0 }
      let run = await bench.run(words + ["--capture", fifo])
      #expect(run.code == .localStorage)
      #expect(run.errors.contains("nobody reads it"), "\(run.errors)")
    }

    @Test func aDeviceThatDeclinesIsNoLostLink() throws {
      let output = MemorySink()
      let printer = JSONPrinter(output: output, errors: MemorySink(), verbosity: .normal, now: { .zero })
      var view = TransferView([("fw.bin", 10)], ceiling: { _ in nil })
      view.show(.declined("another sender is being served"), on: printer)
      #expect(output.text.contains("\"event\":\"declined\"") && output.text.contains("another sender"))
      try Documentation.check(output.lines.filter { !$0.isEmpty })
    }

    @Test(
      "a device in this process keeps nothing, and nobody is told that it does", arguments: ["demo", "bench"])
    func interruptedSimulation(command: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 4 << 20)
      let interrupts = Interrupts(exit: {})
      // What is left at that moment takes its time, and the signal comes before any more of it.
      let (words, moment) =
        command == "demo"
        ? (["demo", file, "--fault", ""], "connecting")
        : (["bench", "--size", "256KiB", "--clock", "real", "-v"], "GATT")
      let output = MemorySink { text in if text.contains(moment) { interrupts.raise() } }
      let run = await bench.run(words, output: output, interrupts: interrupts)
      #expect(run.code == .interrupted)
      #expect(run.errors == "bluehaul: interrupted\n")
    }

    @Test(
      "what lies in the place of a part is named",
      arguments: ["part", "state"], ["folder", "link"])
    func partInTheWay(suffix: String, kind: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let hash = try SHA256Hasher.digest(of: Data(contentsOf: URL(filePath: file)))
      let name = ".bluehaul-\(hash.hex.prefix(32)).\(suffix)"
      let folder = "\(bench.folder)/in"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      if kind == "folder" {
        try FileManager.default.createDirectory(
          atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
      } else {
        try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: file)
      }
      let receiver = await bench.receiver()
      let push = await bench.run("push", file, "--to", "bench-1", "--compress", "never")
      #expect(push.code == .refused)
      #expect(push.errors.contains(name), "\(push.errors)")
      _ = await receiver.stop()
    }

    @Test func aFileIsNoFolderToReceiveInto() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10)
      let run = await bench.run("receive", "--name", "x", "--into", file)
      #expect(run.code == .localStorage)
      #expect(run.errors.contains("name another folder"), "\(run.errors)")
    }

    @Test(arguments: ["gatt", "l2cap"])
    func aLostLinkDoesNotLowerTheRatioToTheCeiling(via: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 400_000)
      let demo = await bench.run(
        "demo", file, "--clock", "lockstep", "--fault", "drop@40%", "--via", via, "--json")
      #expect(demo.code == .success, "\(demo.errors)")
      #expect(demo.output.contains("\"event\":\"link_lost\""))
      let ratio = demo.output.components(separatedBy: "\"ceiling_ratio\":").last.flatMap {
        Double($0.prefix { $0.isNumber || $0 == "." })
      }
      #expect(ratio.map { $0 > 0.9 && $0 <= 1 } == true, "\(ratio ?? 0)")
    }

    @Test func aChannelThatCarriesNothingIsToldOfAndLeft() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 50_000)
      let words = ["demo", file, "--clock", "lockstep", "--fault", "no-credits@0"]
      let demo = await bench.run(words)
      #expect(demo.code == .success, "\(demo.errors)")
      #expect(
        demo.errors.hasPrefix("warning: the L2CAP channel is of no use (nothing has moved on it within "))
      #expect(demo.errors.hasSuffix("); going on over GATT\n"))
      let json = await bench.run(words + ["--json"])
      #expect(json.output.contains("\"event\":\"channel_abandoned\""))
      try Documentation.check(json.lines)
      // Who demands a channel is not given another carrier.
      #expect(await bench.run(words + ["--via", "l2cap"]).code == .linkLost)
    }

    @Test func scanListsReceivers() async throws {
      let bench = try Bench()
      let receiver = await bench.receiver()
      let scan = await bench.run("scan", "--json", "--for", "3s")
      #expect(scan.code == .success)
      try Documentation.check(scan.lines)
      #expect(scan.lines.count == 1)
      #expect(scan.output.contains("\"name\":\"bench-1\""))
      _ = await receiver.stop()
      let empty = await bench.run("scan", "--json", "--for", "3s")
      #expect(empty.code == .success)
      try Documentation.check(empty.lines)
      #expect(empty.output.contains("nothing_seen"))
    }

    @Test func withoutARadioThereIsAWayOut() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      for arguments in [
        ["scan"], ["push", file, "--to", "x"], ["receive", "--name", "x", "--into", bench.folder],
      ] {
        let run = await ToolRun(arguments, variables: ["XDG_STATE_HOME": bench.folder])
        #expect(run.code == .notFound)
        #expect(run.errors.contains("--radio virtual:DIR"))
        let unknown = await ToolRun(
          arguments + ["--radio", "pigeon:1"], variables: ["XDG_STATE_HOME": bench.folder])
        #expect(unknown.code == .usage)
        #expect(unknown.errors.contains("pigeon:1"))
      }
    }

    @Test(
      "push refuses what does not go together, before anything else",
      arguments: [
        (["push", "fw.bin"], "--to NAME"), (["push", "--to", "x"], "FILE"),
        (["push", "a", "b", "--name", "c", "--to", "x"], "--name is for one file"),
        (["push", "a", "--manifest", "b", "--to", "x"], "--manifest says what to send"),
        (["push", "--manifest", "b", "--raw"], "--manifest says what to send"),
        (["receive", "--into", "x"], "--name NAME"), (["receive", "--name", "x"], "--into DIR"),
      ])
    func usage(arguments: [String], words: String) async {
      let run = await ToolRun(arguments)
      #expect(run.code == .usage)
      #expect(run.errors.contains(words))
    }
  }
}
