import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct BenchCommandTests {
    private struct Result: Decodable {
      var event: String
      var via: String?
      var link: String?
      var varied: [String: String]?
      var bytes: Int?
      var seconds: Double?
      var goodput: Double?
      var ceiling: Double?
      var ratio: Double?
      var transfer_ratio: Double?
      var breakdown: [String: Double?]?
      var packets: Int?
      var repetitions: Int?
      var octets: Int?
    }

    private func bench(_ options: String...) async throws -> (run: ToolRun, results: [Result]) {
      let run = await ToolRun(["bench", "--json"] + options)
      #expect(run.code == .success, "\(run.errors)")
      try Documentation.check(run.lines)
      let events = try run.lines.map { try JSONDecoder().decode(Result.self, from: Data($0.utf8)) }
      return (run, events.filter { $0.event == "bench" })
    }

    @Test(
      "the last object has the figures, and the breakdown is the whole time", arguments: ["gatt", "l2cap"])
    func figures(via: String) async throws {
      let (run, results) = try await bench("--via", via, "--size", "256KiB")
      let result = try #require(results.last)
      #expect(run.lines.last?.contains("\"event\":\"bench\"") == true)
      #expect(results.count == 1 && result.via == via && result.bytes == 262_144)
      let (seconds, goodput) = (try #require(result.seconds), try #require(result.goodput))
      #expect(abs(goodput * seconds - 262_144) < 1)
      let ceiling = try #require(result.ceiling)
      #expect(try #require(result.ratio) == goodput / ceiling)
      let transferRatio = try #require(result.transfer_ratio)
      #expect(transferRatio > 0.95 && transferRatio <= 1)
      #expect(goodput < ceiling && goodput > 0.7 * ceiling)
      let breakdown = try #require(result.breakdown).compactMapValues(\.self)
      #expect(abs(breakdown.values.reduce(0, +) - seconds) < 1e-6)
      #expect(breakdown.values.allSatisfy { $0 >= 0 })
      #expect(try #require(breakdown["air"]) > 0.7 * seconds)
      // Every octet of payload was on the air, in packets of at most 251.
      let (packets, octets) = (try #require(result.packets), try #require(result.octets))
      #expect(octets > 262_144 && octets < 283_000 && octets <= packets * 251)
      #expect(result.repetitions == 0)
    }

    @Test("the same command gives the same result, another seed another one where packets are lost")
    func isReproducible() async throws {
      let options = ["--via", "gatt", "--size", "64KiB", "--link", "per=0.1"]
      let first = await ToolRun(["bench", "--json"] + options)
      #expect(await ToolRun(["bench", "--json"] + options).output == first.output)
      #expect(await ToolRun(["bench", "--json", "--seed", "2"] + options).output != first.output)
    }

    @Test(
      "the time is found where it goes",
      arguments: [
        (["--store-rate", "20kB"], "storage", 0.75),
        (["--window", "8KiB", "--receipts", "4KiB", "--link", "interval=400"], "receipts", 0.3),
        (["--link", "packets=1"], "interval", 0.9),
      ])
    func whereItGoes(options: [String], cause: String, share: Double) async throws {
      let run = await ToolRun(["bench", "--json", "--via", "gatt", "--size", "512KiB"] + options)
      #expect(run.code == .success, "\(run.errors)")
      let last = try #require(run.lines.last)
      let result = try JSONDecoder().decode(Result.self, from: Data(last.utf8))
      let breakdown = try #require(result.breakdown).compactMapValues(\.self)
      #expect(try #require(breakdown[cause]) >= share * (try #require(result.seconds)), "\(breakdown)")
    }

    @Test("a receiver that stores slowly is what bounds the rate")
    func slowStorage() async throws {
      let result = try #require(
        try await bench("--via", "l2cap", "--size", "1MiB", "--store-rate", "64kB").results.last)
      #expect(try #require(result.goodput) >= 0.97 * 64_000)
      #expect(try #require(result.goodput) <= 64_000)
    }

    @Test("a sweep is one result a value and carrier, as JSON, as a table and as a drawing")
    func sweep() async throws {
      let folder = TemporaryFolder()
      let (_, results) = try await bench(
        "--sweep", "interval=15,30", "--sweep", "phy=1M,2M", "--via", "gatt", "--size", "32KiB", "--csv",
        folder.path("table.csv"), "--plot", folder.path("sweep.svg"))
      #expect(
        results.map(\.varied) == [
          ["interval": "15", "phy": "1M"], ["interval": "15", "phy": "2M"], ["interval": "30", "phy": "1M"],
          ["interval": "30", "phy": "2M"],
        ])
      #expect(results.map(\.link).contains("phy=1M,mtu=247,dle=251,interval=15"))
      let table = try String(decoding: #require(folder.contents("table.csv")), as: UTF8.self)
      let rows = table.split(separator: "\r\n")
      #expect(rows.count == 5)
      #expect(
        rows[0].hasPrefix(
          "via,direction,link,interval,phy,bytes,seconds,goodput,ceiling,ratio,transfer_seconds,transfer_ratio,air,interval,"
        ))
      #expect(rows[1].hasPrefix("gatt,to-device,\"phy=1M,mtu=247,dle=251,interval=15\",15,1M,32768,"))
      let drawing = try String(decoding: #require(folder.contents("sweep.svg")), as: UTF8.self)
      for text in ["GATT, phy 1M", "GATT, phy 2M, ceiling", "connection interval in ms", "kB/s"] {
        #expect(drawing.contains(text), "\(text)")
      }
    }

    @Test("its own files are replaced by the next measurement, others and one file for two are refused first")
    func outputFiles() async throws {
      let folder = TemporaryFolder()
      let image = Data([0x3D, 0xB8, 0xF3, 0x96]) + Data(0..<100)
      try folder.write(image, "fw.bin")
      let (table, chart) = (folder.path("t.csv"), folder.path("c.svg"))
      for options in [[], ["--ping", "3"]] {
        let run = await ToolRun(
          ["bench", "--via", "gatt", "--csv", table, "--plot", chart]
            + (options.isEmpty ? ["--size", "4KiB"] : options))
        #expect(run.code == .success, "\(run.errors)")
      }
      let written = (folder.contents("t.csv"), folder.contents("c.svg"))
      for options in [
        ["--csv", folder.path("fw.bin")], ["--plot", folder.path("fw.bin")],
        ["--capture", folder.path("fw.bin")], ["--plot", table], ["--csv", chart],
        ["--csv", folder.path("x"), "--plot", folder.path("./x")],
        ["--csv", folder.path("x"), "--capture", folder.path("x")],
        ["--plot", folder.path("x"), "--capture", folder.path("x")], ["--csv", folder.path],
      ] {
        let run = await ToolRun(["bench", "--size", "4KiB"] + options)
        #expect(run.code == .usage, "\(options): \(run.errors)")
        #expect(run.output == "")
      }
      #expect(folder.contents("fw.bin") == image)
      #expect(folder.contents("t.csv") == written.0 && folder.contents("c.svg") == written.1)
      #expect(folder.names == ["c.svg", "fw.bin", "t.csv"])
    }

    @Test func overTime() async throws {
      let folder = TemporaryFolder()
      _ = try await bench("--size", "128KiB", "--plot", folder.path("time.svg"))
      let drawing = try String(decoding: #require(folder.contents("time.svg")), as: UTF8.self)
      for text in ["GATT, arrived", "L2CAP, ceiling", "seconds since"] {
        #expect(drawing.contains(text), "\(text)")
      }
    }

    @Test("no curve stands above what the link can carry", arguments: ["gatt", "l2cap"])
    func belowCeiling(via: String) async throws {
      let folder = TemporaryFolder()
      _ = try await bench("--size", "1MiB", "--via", via, "--plot", folder.path("time.svg"))
      let drawing = try String(decoding: #require(folder.contents("time.svg")), as: UTF8.self)
      let axis = try #require(drawing.firstMatch(of: /V([0-9.]+)H816/))
      let bound = try #require(drawing.firstMatch(of: /"line0 bound" d="M[0-9.]+ ([0-9.]+)L/))
      let bottom = try #require(Double(axis.1))
      let top = try #require(Double(bound.1))
      let ceiling = bottom - top
      let curve = try #require(drawing.firstMatch(of: /"line0" d="(M[0-9.]+ [0-9.]+L[^"]+)"/))
      let heights = curve.1.matches(of: /[ML][0-9.]+ ([0-9.]+)/).compactMap {
        Double($0.1).map { bottom - $0 }
      }
      #expect(heights.count == 60)
      // The last word tells of what no receipt has told, less than 4 KiB.
      #expect(heights.allSatisfy { $0 <= 1.06 * ceiling }, "\(heights.max() ?? 0) over \(ceiling)")
      // And it is the rate: in the middle of the transfer near the ceiling.
      #expect(heights[10..<50].allSatisfy { $0 >= 0.94 * ceiling })
    }

    @Test("a device on the radio, which tells nothing of its link", arguments: ["gatt", "l2cap"])
    func receiver(via: String) async throws {
      let bench = try Bench()
      let receiver = await bench.receiver()
      let run = await bench.run("bench", "--json", "--to", "bench-1", "--size", "100kB", "--via", via)
      #expect(run.code == .success, "\(run.errors)")
      try Documentation.check(run.lines)
      let result = try JSONDecoder().decode(Result.self, from: Data(try #require(run.lines.last).utf8))
      #expect(result.event == "bench" && result.bytes == 100_000 && result.ceiling == nil)
      let breakdown = try #require(result.breakdown)
      #expect(breakdown["air"] == .some(nil) && breakdown["interval"] == .some(nil))
      #expect(abs(breakdown.values.reduce(0) { $0 + ($1 ?? 0) } - (try #require(result.seconds))) < 1e-6)
      #expect(try bench.contents("in/bluehaul-bench.bin").count == 100_000)
      _ = await receiver.stop()
    }

    @Test(
      "what makes no measurement is refused",
      arguments: [
        "--radio bluez", "--radio virtual:/tmp/air", "--to x --radio virtual:a --clock real",
        "--to x --radio virtual:a --seed 3",
        "--to x --radio virtual:a --sweep mtu=23", "--to x --radio virtual:a --store-rate 1kB",
        "--sweep speed=1,2", "--sweep mtu=",
        "--sweep mtu=23,23", "--sweep mtu=23,9000", "--sweep size=0", "--sweep mtu=23 --sweep mtu=50",
        "--sweep mtu=23 --sweep phy=1M --sweep dle=27", "--size 0", "--via both",
      ])
    func refused(line: String) async {
      let run = await ToolRun(["bench"] + line.split(separator: " ").map(String.init))
      #expect(run.code == .usage, "\(run.errors)")
      #expect(run.output == "")
    }
  }
}
