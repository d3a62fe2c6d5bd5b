import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

extension WholeRuns {
  /// Every option that changes what happens on the link shows in a capture of it, or is refused where it cannot.
  @Suite struct VisibleOptionTests {
    /// A demo in simulated time with these options, and what was on the air.
    private func demo(_ options: String...) async throws -> (run: ToolRun, capture: Capture) {
      let folder = TemporaryFolder()
      let file = try folder.write(SampleImage.data(size: 100_000), "fw.bin")
      let run = await ToolRun(
        ["demo", file, "--clock", "lockstep", "--capture", folder.path("air"), "--json"]
          + (options.contains("--fault") ? [] : ["--fault="])
          + (options.contains("--via") ? [] : ["--via", "gatt"])
          + options)
      return (run, try Capture(path: folder.path("air")))
    }

    @Test func withoutOptionsTheDefaultsShow() async throws {
      let (run, capture) = try await demo()
      #expect(run.code == .success, "\(run.errors)")
      try Documentation.check(run.lines)
      #expect(capture.writeCommands.map(\.count).max() == 244)
      #expect(capture.offer?.segmentPower == 12)
      #expect(capture.offer?.receipts == 4096)
      #expect(capture.connections == 1)
      #expect(capture.intervals == [24])
      #expect(capture.channelFrames == 0)
      #expect(capture.mostInFlight > 8192)
    }

    @Test func via() async throws {
      let (run, capture) = try await demo("--via", "l2cap")
      #expect(run.code == .success)
      #expect(capture.writeCommands.isEmpty)
      #expect(capture.channelFrames > 100)
    }

    @Test(arguments: [20, 100, 243])
    func packet(length: Int) async throws {
      let capture = try await demo("--packet", "\(length)").capture
      #expect(capture.writeCommands.map(\.count).max() == length)
    }

    /// There it is the length of a record, and each has a header of three octets.
    @Test func packetOfAChannel() async throws {
      let (short, long) = (
        try await demo("--via", "l2cap", "--packet", "100"), try await demo("--via", "l2cap")
      )
      #expect(short.run.code == .success && long.run.code == .success)
      #expect(short.capture.channelOctets - long.capture.channelOctets > 3 * 900)
    }

    @Test func segment() async throws {
      #expect(try await demo("--segment", "32KiB").capture.offer?.segmentPower == 15)
    }

    @Test func receipts() async throws {
      let (few, many) = (
        try await demo("--receipts", "16KiB").capture, try await demo("--receipts", "1KiB").capture
      )
      #expect(few.offer?.receipts == 16384 && many.offer?.receipts == 1024)
      #expect(many.notifications.count > few.notifications.count)
    }

    @Test func window() async throws {
      let capture = try await demo("--window", "4KiB", "--receipts", "1KiB").capture
      // Check values of segments are sent but not counted as received.
      #expect(capture.mostInFlight <= 4096 + 4 * 100_000 / 4096)
    }

    @Test(arguments: [(247, 244), (185, 182), (498, 495), (23, 20)])
    func linkMTU(mtu: Int, length: Int) async throws {
      #expect(try await demo("--link", "mtu=\(mtu)").capture.writeCommands.map(\.count).max() == length)
    }

    @Test(arguments: ["phy=1M", "dle=27", "packets=1"])
    func linkKeys(words: String) async throws {
      let plain = try await demo().capture.dataDuration
      #expect(try await demo("--link", words).capture.dataDuration > plain)
    }

    @Test func linkInterval() async throws {
      let (slow, fast) = (
        try await demo("--link", "interval=100,packets=4").capture,
        try await demo("--link", "interval=15").capture
      )
      #expect(slow.intervals == [80] && fast.intervals == [12])
      #expect(slow.dataDuration > fast.dataDuration * 2)
    }

    @Test func seed() async throws {
      let first = try await demo("--link", "per=0.1", "--seed", "1").capture.dataDuration
      #expect(try await demo("--link", "per=0.1", "--seed", "1").capture.dataDuration == first)
      #expect(try await demo("--link", "per=0.1", "--seed", "2").capture.dataDuration != first)
    }

    @Test func fault() async throws {
      let (run, capture) = try await demo("--fault", "drop@40%", "--fault", "hangup@70%")
      #expect(run.code == .success)
      try Documentation.check(run.lines)
      #expect(capture.connections == 3)
    }

    @Test("a receiver that is silent for 8 s ends a push only where that is longer than the limit")
    func timeout() async throws {
      let (short, long) = (
        try await demo("--fault", "freeze@40%:8s", "--timeout", "2s", "--attempts", "1"),
        try await demo("--fault", "freeze@40%:8s", "--timeout", "20s", "--attempts", "1")
      )
      #expect(short.run.code == .linkLost)
      #expect(short.run.errors.contains("nothing for 2 s"))
      #expect(long.run.code == .success, "\(long.run.errors)")
      #expect(long.capture.connections == 1 && long.capture.dataDuration > .seconds(8))
    }

    @Test func attempts() async throws {
      let (one, three) = (
        try await demo("--fault", "drop~1", "--attempts", "1"),
        try await demo("--fault", "drop~1", "--attempts", "3")
      )
      #expect(one.run.code == .linkLost && three.run.code == .linkLost)
      #expect(three.capture.connections == one.capture.connections + 2)
    }

    @Test(
      "what would do nothing is refused",
      arguments: [
        "push --to x --radio virtual:air --link phy=1M", "push --to x --radio virtual:air --link interval=15",
        "push --to x --radio virtual:air --fault corrupt@40%",
        "push --to x --radio virtual:air --clock lockstep",
        "push --to x --radio virtual:air --fault slow-erase=1s", "push --to x --seed 4",
        "receive --name x --into y --radio virtual:air --fault lost-ready@1s",
        "receive --name x --into y --radio virtual:air --fault slow-erase=5ms",
        "receive --name x --into y --radio virtual:air --fault corrupt@100",
        "receive --name x --into y --radio virtual:air --clock lockstep",
        "receive --name x --into y --radio virtual:air --via gatt", "scan --radio virtual:air --link phy=1M",
        "scan --timeout 3s", "inspect x --timeout 3s", "status --radio virtual:air",
        "demo --radio virtual:air",
        "scan --radio virtual:air?clock=unpaced",
        "push --to x --window 100 --radio virtual:air", "demo --window 4KiB",
      ])
    func notApplicable(line: String) async throws {
      let folder = TemporaryFolder()
      let file = try folder.write(Data([1, 2, 3]), "fw.bin")
      var words = line.split(separator: " ").map(String.init)
      if words[0] == "push" { words.append(file) }
      let run = await ToolRun(words, variables: ["XDG_STATE_HOME": "/nonexistent"])
      #expect(run.code == .usage, "\(run.errors)")
      #expect(run.output == "")
      #expect(run.errors.split(separator: "\n").count <= 2)
    }
  }
}
