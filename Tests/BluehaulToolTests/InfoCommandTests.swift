import Foundation
import Testing

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct InfoCommandTests {
    @Test func aReceiverIsShownWithAllThatItHas() async throws {
      let bench = try Bench()
      let receiver = await bench.receiver()
      let info = await bench.run("info", "bench-1")
      #expect(info.code == .success, "\(info.errors)")
      #expect(info.lines.first?.hasPrefix("bench-1  ") == true)
      #expect(info.lines.contains { $0.hasPrefix("speaks: haul") })
      #expect(info.lines.contains { $0.contains("ATT MTU") && !$0.contains(" 0 bytes") })
      // The data characteristic takes writes without response, and a subscription has a descriptor.
      #expect(info.lines.contains { $0.contains("B1E00003") && $0.contains("write-without-response") })
      #expect(info.lines.contains { $0.contains("2902 Client Configuration") })
      try Documentation.check(await bench.run("info", "bench-1", "--json").lines)
      // The device is free again: a push reaches it.
      let file = try bench.file("fw.bin", size: 10_000)
      #expect(await bench.run("push", file, "--to", "bench-1").code == .success)
      _ = await receiver.stop()
    }

    @Test func theValuesThatCanBeReadAreInTheObject() async throws {
      let bench = try Bench()
      let receiver = await bench.receiver()
      let info = await bench.run("info", "bench-1", "--json")
      _ = await receiver.stop()
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(info.output.utf8)) as? [String: Any])
      let services = try #require(object["services"] as? [[String: Any]])
      let characteristics = services.flatMap { $0["characteristics"] as? [[String: Any]] ?? [] }
      let readable = characteristics.filter { ($0["properties"] as? [String])?.contains("read") == true }
      #expect(!readable.isEmpty)
      #expect(readable.allSatisfy { $0["value"] is String || $0["failure"] is String })
      // The PSM of the channel, two octets.
      #expect(
        readable.contains { ($0["name"] as? String) == "L2CAP PSM" && ($0["value"] as? String)?.count == 4 })
      #expect(object["protocols"] as? [String] == ["haul"])
      #expect(object["address"] is NSNull)
    }

    @Test func aDeviceThatIsNotThereIsNotFound() async throws {
      let bench = try Bench()
      let info = await bench.run("info", "nobody", "--timeout", "1s")
      #expect(info.code == .notFound && info.errors.contains("nobody"))
      #expect(info.output.isEmpty)
    }
  }
}
