import BulkTransfer
import Foundation
import TestSupport
import Testing
import VirtualRadio

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct CodedPushTests {
    /// The last value of a member of `progress`.
    static func last(_ member: String, in run: ToolRun) -> Double? {
      for line in run.lines.reversed() {
        guard let json = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
          json["event"] as? String == "progress"
        else { continue }
        return json[member] as? Double
      }
      return nil
    }

    /// How long octets moved, on the clock of the link.
    static func transferTime(_ run: ToolRun) -> Double? {
      for line in run.lines.reversed() {
        guard let json = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
          json["event"] as? String == "progress", let times = json["phase_times"] as? [String: Double]
        else { continue }
        return times["transfer"]
      }
      return nil
    }

    /// How long everything took on that clock, from the first look for the receiver to the end.
    static func wholeTime(_ run: ToolRun) -> Double? {
      for line in run.lines.reversed() {
        guard let json = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
          json["event"] as? String == "progress", let times = json["phase_times"] as? [String: Double]
        else { continue }
        return times.values.reduce(0, +)
      }
      return nil
    }

    static func codings(_ run: ToolRun) -> [String] {
      run.lines.compactMap { line in
        let json = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return json?["event"] as? String == "coding" ? json?["coding"] as? String : nil
      }
    }

    @Test(
      "what travels compressed is fewer bytes and the same file",
      arguments: ["auto", "always", "never", nil], ["gatt", "l2cap"])
    func compress(choice: String?, via: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 200_000)
      let receiver = await bench.receiver()
      let push = await bench.run(
        ["push", "--json", file, "--to", "bench-1", "--via", via] + (choice.map { ["--compress", $0] } ?? []))
      #expect(push.code == .success, "\(push.errors)")
      try Documentation.check(push.lines)
      _ = await receiver.stop()
      #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
      let stream = try #require(Self.last("stream", in: push))
      #expect(Self.codings(push) == (choice == "never" ? [] : ["compressed"]))
      #expect(choice == "never" ? stream > 200_000 : stream < 180_000)
      #expect(Self.last("confirmed", in: push) == 200_000)
    }

    @Test("the segment size shows: smaller ones are more bytes")
    func segment() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 200_000)
      let receiver = await bench.receiver("--if-exists", "number")
      var streams: [Double] = []
      for (index, size) in ["64KiB", "16KiB", "4KiB"].enumerated() {
        let push = await bench.run(
          "push", "--json", file, "--to", "bench-1", "--name", "\(index).bin", "--segment", size)
        #expect(push.code == .success, "\(push.errors)")
        streams.append(try #require(Self.last("stream", in: push)))
      }
      _ = await receiver.stop()
      #expect(streams == streams.sorted() && Set(streams).count == 3)
    }

    @Test("what does not shrink travels as it is")
    func noise() async throws {
      let bench = try Bench()
      let bytes = Bench.noise(100_000)
      let file = "\(bench.folder)/noise.bin"
      try bytes.write(to: URL(filePath: file))
      let receiver = await bench.receiver("--if-exists", "replace")
      let auto = await bench.run("push", "--json", file, "--to", "bench-1")
      #expect(Self.codings(auto) == [])
      let other = "\(bench.folder)/more.bin"
      try (bytes + [1]).write(to: URL(filePath: other))
      let always = await bench.run("push", "--json", other, "--to", "bench-1", "--compress", "always")
      #expect(Self.codings(always) == ["compressed"])
      _ = await receiver.stop()
      for push in [auto, always] {
        #expect(push.code == .success, "\(push.errors)")
        let stream = try #require(Self.last("stream", in: push))
        // In segments of 4 KiB each has its check value of four bytes; in larger ones there are few.
        #expect(stream <= 100_001 * (Self.codings(push) == ["compressed"] ? 1.0005 : 1.0011))
      }
      #expect(try bench.contents("in/more.bin") == bytes + [1])
    }

    /// A file and a newer version of it.
    private func versions(_ bench: Bench, size: Int = 200_000) throws -> (old: String, new: String) {
      let old = try bench.file("old.bin", size: size)
      var bytes = try bench.contents("old.bin")
      for place in [100, size / 3, size - 40] {
        bytes.replaceSubrange(place..<(place + 12), with: Data("version 2.0!".utf8))
      }
      bytes.insert(contentsOf: Data(repeating: 0x42, count: 60), at: size / 2)
      let new = "\(bench.folder)/new.bin"
      try bytes.write(to: URL(filePath: new))
      return (old, new)
    }

    @Test(
      "with a base only what changed travels, and an update replaces its base", arguments: ["gatt", "l2cap"])
    func base(via: String) async throws {
      // A slow link: a packet of 27 octets for each connection event.
      let bench = try Bench(link: LinkParameters(dataLength: 27, packetsPerEvent: 1))
      let (old, new) = try versions(bench, size: 240_000)
      let receiver = await bench.receiver("--if-exists", "replace")
      let first = await bench.run(
        "push", "--json", old, "--to", "bench-1", "--name", "fw.bin", "--compress", "never", "--via", via)
      #expect(first.code == .success, "\(first.errors)")
      let second = await bench.run(
        "push", "--json", new, "--to", "bench-1", "--name", "fw.bin", "--base", old, "--via", via)
      #expect(second.code == .success, "\(second.errors)")
      try Documentation.check(second.lines)
      _ = await receiver.stop()
      #expect(try bench.contents("in/fw.bin") == bench.contents("new.bin"))
      #expect(try bench.names(in: "in") == ["fw.bin"])
      #expect(Self.codings(second) == ["changes"])
      let stream = try #require(Self.last("stream", in: second))
      #expect(stream < 500)
      let (whole, changes) = (try #require(Self.transferTime(first)), try #require(Self.transferTime(second)))
      #expect(whole / changes >= 20)
      #expect(try #require(Self.wholeTime(first)) >= 20 * (try #require(Self.wholeTime(second))))
    }

    @Test("a base that the receiver does not hold is said, and the whole file goes")
    func missingBase() async throws {
      let bench = try Bench()
      let (old, new) = try versions(bench)
      let receiver = await bench.receiver()
      let push = await bench.run("push", new, "--to", "bench-1", "--base", old)
      #expect(push.code == .success, "\(push.errors)")
      #expect(push.lines.contains { $0.hasPrefix("the receiver does not hold ") })
      _ = await receiver.stop()
      #expect(try bench.contents("in/new.bin") == bench.contents("new.bin"))
    }

    @Test("what goes on goes on with the base of before, from where the receiver stands")
    func resumed() async throws {
      let bench = try Bench()
      let old = try bench.file("old.bin", size: 400_000)
      // The second half is new: it takes a while.
      let noise = Bench.noise(200_000)
      let new = "\(bench.folder)/new.bin"
      try (try bench.contents("old.bin").prefix(200_000) + noise).write(to: URL(filePath: new))
      let receiver = await bench.receiver()
      #expect(await bench.run("push", old, "--to", "bench-1").code == .success)
      let push = await bench.run(
        ["push", "--json", new, "--to", "bench-1", "--base", old], interruptedAt: 100_000)
      #expect(push.code == .interrupted)
      let again = await bench.run("resume", "--json")
      #expect(again.code == .success, "\(again.errors)")
      #expect(Self.codings(again) == ["changes"])
      #expect(try #require(Self.last("resumed_from", in: again)) > 0)
      _ = await receiver.stop()
      #expect(try bench.contents("in/new.bin") == bench.contents("new.bin"))
    }

    @Test(
      "a base that was taken as plain bytes, or from a range of addresses, is taken so again",
      arguments: [["--raw"], ["--range", "0x10000+400000"]])
    func resumedWithOptions(options: [String]) async throws {
      let bench = try Bench()
      let old = Data((0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ $0 >> 9) })
      let noise = Bench.noise(200_000)
      let new = old.prefix(200_000) + noise
      var files: [String] = []
      for (name, image) in [("old.hex", old), ("new.hex", new)] {
        files.append("\(bench.folder)/\(name)")
        // Beyond the range there is more.
        try Self.intelHEX(image + [1, 2, 3], at: 0x10000).write(to: URL(filePath: files[files.count - 1]))
      }
      let receiver = await bench.receiver()
      let first = await bench.run(["push", files[0], "--to", "bench-1"] + options)
      #expect(first.code == .success, "\(first.errors)")
      let push = await bench.run(
        ["push", "--json", files[1], "--to", "bench-1", "--base", files[0]] + options, interruptedAt: 100_000)
      #expect(push.code == .interrupted)
      let again = await bench.run("resume", "--json")
      #expect(again.code == .success, "\(again.errors)")
      #expect(Self.codings(again) == ["changes"])
      #expect(try #require(Self.last("resumed_from", in: again)) > 0)
      _ = await receiver.stop()
      let expected = options == ["--raw"] ? try bench.contents("new.hex") : new
      let received = try bench.names(in: "in").map { try bench.contents("in/\($0)") }
      #expect(received.contains(expected))
    }

    /// The text of an Intel HEX file.
    private static func intelHEX(_ bytes: Data, at address: Int) -> Data {
      func record(_ type: UInt8, _ address: Int, _ data: some Collection<UInt8>) -> String {
        let fields = [UInt8(data.count), UInt8(address >> 8 & 255), UInt8(address & 255), type] + data
        let all = fields + [0 &- fields.reduce(0, &+)]
        return ":" + all.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined() + "\n"
      }
      var text = ""
      for start in stride(from: 0, to: bytes.count, by: 32) {
        let place = address + start
        if start == 0 || place & 0xFFFF == 0 {
          text += record(4, 0, [UInt8(place >> 24 & 255), UInt8(place >> 16 & 255)])
        }
        text += record(0, place & 0xFFFF, bytes[start..<min(start + 32, bytes.count)])
      }
      return Data((text + ":00000001FF\n").utf8)
    }

    @Test("a push that was not to be compressed goes on so")
    func resumedNever() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 200_000)
      let receiver = await bench.receiver()
      let push = await bench.run(
        ["push", "--json", file, "--to", "bench-1", "--compress", "never"], interruptedAt: 20_000)
      #expect(push.code == .interrupted)
      let again = await bench.run("resume", "--json")
      #expect(again.code == .success, "\(again.errors)")
      #expect(Self.codings(again) == [])
      #expect(try #require(Self.last("stream", in: again)) > 100_000)
      _ = await receiver.stop()
      #expect(try bench.contents("in/fw.bin") == bench.contents("fw.bin"))
    }

    @Test(
      "why a file is coded less than was asked for is said truly",
      arguments: [
        (
          StreamCoding.uncoded, "old.bin" as String?, CodingShortfall.notHeld,
          "the receiver does not hold old.bin; "
        ),
        (.compressed, "old.bin", .notSupported, "the receiver uses no bases; "),
        (.uncoded, "old.bin", .failed, "what changed in fw.bin since old.bin did not get through; "),
        (.uncoded, nil, .notSupported, "the receiver takes nothing compressed; "),
        (.uncoded, nil, .failed, "what was compressed of fw.bin did not get through; "),
      ])
    func words(coding: StreamCoding, base: String?, shortfall: CodingShortfall, words: String) {
      let report = Report.coding(coding, of: "fw.bin", base: base, shortfall: shortfall, insists: true)
      #expect(report.lines.first?.hasPrefix(words) == true)
      #expect(report.level == .note)
      let quiet = Report.coding(coding, of: "fw.bin", base: base, shortfall: shortfall)
      #expect(quiet.level == (base == nil ? .detail : .note))
    }

    @Test(
      "what contradicts itself is refused",
      arguments: [
        "--base fw.bin --compress never fw.bin", "--base fw.bin fw.bin fw.bin", "--compress maybe fw.bin",
      ])
    func usage(words: String) async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 1000)
      let words = words.split(separator: " ").map { $0 == "fw.bin" ? file : String($0) }
      let push = await bench.run(["push", "--to", "bench-1"] + words)
      #expect(push.code == .usage)
    }

    @Test("a base that cannot be read ends the push before anything happens")
    func unreadable() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 1000)
      let push = await bench.run("push", file, "--to", "bench-1", "--base", "\(bench.folder)/nothing.bin")
      #expect(push.code == .badFile)
    }
  }
}
