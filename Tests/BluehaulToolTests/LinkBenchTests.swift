import Foundation
import TestSupport
import Testing
import VirtualRadio

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct LinkBenchTests {
    private struct Result: Decodable {
      var event: String
      var via: String
      var direction: String?
      var bytes: Int?
      var seconds: Double
      var ceiling: Double?
      var ratio: Double?
      var transfer_seconds: Double?
      var breakdown: [String: Double?]
      var packets: Int?
      var octets: Int?
      var count: Int?
      var min: Double?
      var median: Double?
      var p99: Double?
      var max: Double?
      var floor: Double?
    }

    private func decoded(_ run: ToolRun) throws -> [Result] {
      #expect(run.code == .success, "\(run.errors)")
      try Documentation.check(run.lines)
      return try run.lines.filter { $0.contains("\"seconds\"") }.map {
        try JSONDecoder().decode(Result.self, from: Data($0.utf8))
      }
    }

    private func bench(_ options: String...) async throws -> [Result] {
      try decoded(await ToolRun(["bench", "--json"] + options))
    }

    private func checkBreakdown(_ result: Result) {
      let times = result.breakdown.compactMapValues(\.self)
      #expect(abs(times.values.reduce(0, +) - result.seconds) < 1e-6)
      #expect(times.values.allSatisfy { $0 >= 0 })
    }

    @Test(
      "each write with response takes two intervals, and is as many packets as its frame needs",
      arguments: [
        // ATT MTU, data length, interval in ms, and packets of a full value.
        (247, 251, 30.0, 1), (498, 251, 50.0, 2), (23, 27, 7.5, 1), (100, 27, 15.0, 4),
      ])
    func writesWithResponse(mtu: Int, dataLength: Int, interval: Double, packets: Int) async throws {
      let size = 20_000
      let result = try #require(
        try await bench(
          "--via", "gatt-response", "--size", "\(size)", "--link",
          "phy=2M,mtu=\(mtu),dle=\(dataLength),interval=\(interval)"
        ).last)
      #expect(result.via == "gatt-response" && result.direction == "to-device" && result.bytes == size)
      let payload = mtu - 3
      let values = (size + payload - 1) / payload
      // The first request waits for an event, the last response comes in the event after its request.
      let intervals = result.seconds / (interval / 1000)
      #expect(intervals > Double(2 * values - 1) && intervals < Double(2 * values) + 0.2)
      let last = size - (values - 1) * payload
      let frames = (values - 1) * packets + (last + 7 + dataLength - 1) / dataLength
      #expect(result.packets == frames)
      // Opcode, handle and the header of L2CAP are 7 octets of each value.
      #expect(result.octets == size + 7 * values)
      let ceiling = Double(payload) / (2 * interval / 1000)
      #expect(abs(try #require(result.ceiling) - ceiling) < 1e-6)
      let expected = Double(size) / Double(values * payload)
      #expect(abs(try #require(result.ratio) / expected - 1) < 1 / Double(values))
      #expect(result.transfer_seconds == result.seconds)
      checkBreakdown(result)
    }

    @Test("notifications fill every event")
    func notifications() async throws {
      let size = 1 << 20
      let result = try #require(
        try await bench("--direction", "to-host", "--via", "gatt", "--size", "1MiB").last)
      #expect(result.direction == "to-host" && result.bytes == size)
      // 244 octets in each packet, 21 exchanges of 1392 us in 30 ms.
      let values = (size + 243) / 244
      #expect(result.packets.map { $0 - values } == 1, "one more for the response to the request")
      let events = (values + 20) / 21
      // The request waits for an event and is carried out in it; the values begin in the next one, and the last event is not a whole one.
      let intervals = result.seconds / 0.03
      #expect(intervals > Double(events - 1) && intervals <= Double(events + 1) + 1)
      #expect(try #require(result.ratio) > 0.98)
      #expect(try #require(result.ceiling) == 170_800)
      checkBreakdown(result)
    }

    @Test("a channel carries as much to the host as to the device", arguments: ["0", "0.05"])
    func channel(errorRate: String) async throws {
      let result = try #require(
        try await bench(
          "--direction", "to-host", "--via", "l2cap", "--size", "1MiB", "--link", "per=\(errorRate)"
        ).last)
      #expect(result.bytes == 1 << 20)
      let ratio = try #require(result.ratio)
      #expect(ratio > 0.95 && (errorRate != "0" || ratio <= 1))
      checkBreakdown(result)
    }

    @Test(
      "a round trip takes two intervals, whatever carries it",
      arguments: ["gatt", "gatt-response", "l2cap"], [7.5, 30, 400])
    func roundTrips(via: String, interval: Double) async throws {
      let result = try #require(
        try await bench("--ping", "20", "--via", via, "--link", "interval=\(interval)").last)
      #expect(result.event == "round_trip" && result.via == via && result.count == 20)
      let two = 2 * interval / 1000
      #expect(abs(try #require(result.floor) - two) < 1e-9)
      #expect(abs(try #require(result.median) - two) < 1e-9)
      // The first one begins anywhere in an interval, at the earliest while an event is on the air.
      let (shortest, longest) = (try #require(result.min), try #require(result.max))
      #expect(shortest <= two + 1e-9 && shortest > two / 2)
      #expect(longest >= two - 1e-9 && longest < two + 0.001)
      #expect(try #require(result.p99) == longest)
      #expect(result.seconds > 19.5 * two && result.seconds < 20 * two + 0.001)
      #expect(abs(try #require(result.ratio) - 1) < 1e-9)
      checkBreakdown(result)
    }

    @Test(
      "the same command gives the same result",
      arguments: ["--via gatt-response", "--direction to-host", "--ping 9"])
    func isReproducible(line: String) async {
      let options = ["bench", "--json", "--size", "30000"].prefix(line.hasPrefix("--ping") ? 2 : 4)
      let words = options + line.split(separator: " ").map(String.init) + ["--link", "per=0.1"]
      let first = await ToolRun(Array(words))
      #expect(first.code == .success, "\(first.errors)")
      #expect(await ToolRun(Array(words)).output == first.output)
    }

    @Test("round trips as a table and as drawings")
    func drawings() async throws {
      let folder = TemporaryFolder()
      _ = try await bench(
        "--ping", "5", "--sweep", "interval=15,30", "--csv", folder.path("table.csv"), "--plot",
        folder.path("sweep.svg"))
      _ = try await bench("--ping", "5", "--via", "gatt", "--plot", folder.path("one.svg"))
      let table = try String(decoding: #require(folder.contents("table.csv")), as: UTF8.self)
      let rows = table.split(separator: "\r\n")
      #expect(rows.count == 5)
      #expect(
        rows[0].hasPrefix("via,link,interval,count,seconds,min,median,p99,max,floor,ratio,air,interval,"))
      #expect(rows[1].hasPrefix("gatt,\"phy=2M,mtu=247,dle=251,interval=15\",15,5,"))
      let sweep = try String(decoding: #require(folder.contents("sweep.svg")), as: UTF8.self)
      for text in ["GATT, median", "L2CAP, median, by the link's rules", "milliseconds there and back"] {
        #expect(sweep.contains(text), "\(text)")
      }
      let one = try String(decoding: #require(folder.contents("one.svg")), as: UTF8.self)
      #expect(one.contains("number of the round trip") && one.contains("GATT, by the link's rules"))
    }

    @Test(
      "a receiver that lets itself be measured",
      arguments: ["--via gatt-response", "--direction to-host --via gatt", "--direction to-host --via l2cap"])
    func receiver(line: String) async throws {
      let bench = try Bench()
      let receiver = await bench.receiver("--bench")
      let words = ["bench", "--json", "--to", "bench-1", "--size", "20kB"]
      let result = try #require(
        try decoded(await bench.run(words + line.split(separator: " ").map(String.init))).last)
      #expect(result.bytes == 20_000 && result.ceiling == nil && result.breakdown["air"] == .some(nil))
      checkBreakdown(result)
      // The same receiver takes files as ever.
      let push = await bench.run("push", try bench.file("image.bin", size: 3000), "--raw", "--to", "bench-1")
      #expect(push.code == .success, "\(push.errors)")
      _ = await receiver.stop()
    }

    @Test("round trips to a receiver that lets itself be measured")
    func roundTripsToReceiver() async throws {
      let bench = try Bench()
      let receiver = await bench.receiver("--bench")
      let results = try decoded(await bench.run("bench", "--json", "--to", "bench-1", "--ping", "3"))
      #expect(results.map(\.via) == ["gatt", "l2cap"])
      for result in results {
        #expect(result.floor == nil && abs((result.median ?? 0) - 0.06) < 1e-9)
        checkBreakdown(result)
      }
      _ = await receiver.stop()
    }

    @Test func aReceiverThatDoesNotIsToldOf() async throws {
      let bench = try Bench()
      let receiver = await bench.receiver()
      let run = await bench.run("bench", "--to", "bench-1", "--ping", "3", "--via", "gatt")
      #expect(run.code != .success)
      #expect(
        run.errors.contains("link test service") && run.errors.contains("receive --bench"), "\(run.errors)")
      _ = await receiver.stop()
    }

    @Test func aReceiverWithoutChannelIsToldOf() async throws {
      let bench = try Bench()
      let receiver = await bench.receiver("--bench", "--gatt-only")
      let run = await bench.run("bench", "--to", "bench-1", "--ping", "3", "--via", "l2cap")
      #expect(run.code != .success)
      #expect(run.errors.contains("no L2CAP channel"), "\(run.errors)")
      _ = await receiver.stop()
    }

    @Test(
      "what would do nothing is refused",
      arguments: [
        "--via gatt-response --direction to-host", "--ping 3 --size 20", "--ping 3 --direction to-host",
        "--ping 3 --sweep size=20,30", "--ping 0", "--via gatt-response --window 8KiB",
        "--direction to-host --store-rate 1kB", "--ping 3 --segment 4KiB", "--direction up",
      ])
    func refused(line: String) async {
      let run = await ToolRun(["bench"] + line.split(separator: " ").map(String.init))
      #expect(run.code == .usage, "\(run.errors)")
      #expect(run.output == "")
    }
  }
}
