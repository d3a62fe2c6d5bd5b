import Dispatch
import Foundation
import Radio
import Testing

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct ScanCommandTests {
    private static let haul = UUID(uuidString: "B1E00001-6861-756C-A5D2-3F7C41906E8B").map {
      BluetoothUUID($0)
    }

    private func scan(
      _ options: String..., output: MemorySink? = nil, course: @escaping @Sendable () -> CrowdedAir.Course
    ) async throws -> ToolRun {
      let air = try CrowdedAir(course)
      let run = await ToolRun(
        ["scan", "--for", "5s"] + options, variables: ["COREBLUETOOTH_RADIO": "virtual:x"], output: output
      ) { _ in air }
      #expect(run.code == .success, "\(run.errors)")
      return run
    }

    private func objects(_ run: ToolRun) throws -> [[String: Any]] {
      try Documentation.check(run.lines)
      return try run.lines.map {
        try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
      }
    }

    /// What one device says, second by second.
    private func device(_ advertisements: Advertisement...) -> @Sendable () -> CrowdedAir.Course {
      let peer = PeerID(UUID())
      return {
        advertisements.enumerated().map { second, advertisement in
          CrowdedAir.Moment(.seconds(second)) {
            [Sighting(peer: peer, advertisement: advertisement, rssi: -40 - second, isConnectable: true)]
          }
        }
      }
    }

    @Test("a device whose name comes later is listed again with it, and stays one device")
    func nameLater() async throws {
      let haul = try #require(Self.haul)
      let course = device(
        Advertisement(services: [haul]), Advertisement(services: [haul]),
        // The scan response alone.
        Advertisement(localName: "bench\u{1B}-1"), Advertisement(localName: "another", services: [haul]))
      let text = try await scan("--all", course: course)
      try #require(text.lines.count == 2, "\(text.output)")
      #expect(text.lines[0].hasPrefix("(no name)  -40 dBm  ") && text.lines[0].hasSuffix("  haul"))
      #expect(
        text.lines[1].hasPrefix("bench\\u{1B}-1  -42 dBm  ") && text.lines[1].hasSuffix("  haul  (again)"))

      let found = try objects(try await scan("--all", "--json", course: course))
      #expect(found.map { $0["event"] as? String } == ["device", "device_update"])
      #expect(Set(found.compactMap { $0["identifier"] as? String }).count == 1)
      #expect(found.first?["name"] is NSNull)
      #expect(found.last?["name"] as? String == "bench\u{1B}-1")
      #expect(found.allSatisfy { ($0["services"] as? [String])?.count == 1 })
    }

    @Test("so is one whose services come later, and once more where there are further ones")
    func servicesLater() async throws {
      let haul = try #require(Self.haul)
      let battery = BluetoothUUID(0x180F as UInt16)
      let course = device(
        Advertisement(localName: "bench-1"), Advertisement(services: [haul]),
        Advertisement(services: [battery]),
        Advertisement(localName: "bench-1", services: [battery, haul]))
      let found = try objects(try await scan("--all", "--json", course: course))
      #expect(found.map { $0["event"] as? String } == ["device", "device_update", "device_update"])
      #expect(found.map { ($0["services"] as? [String])?.count } == [0, 1, 2])
      #expect(found.allSatisfy { $0["name"] as? String == "bench-1" })
    }

    /// Addresses that change for ever, 100 every 10 ms; the first of them has a name.
    private func crowd(_ steps: Int) -> CrowdedAir.Course {
      (0..<steps).map { step in
        CrowdedAir.Moment(.milliseconds(step * 10)) {
          (0..<100).map { number in
            Sighting(
              peer: PeerID(UUID()),
              advertisement: Advertisement(localName: step == 0 && number == 0 ? "bench-1" : nil), rssi: -40,
              isConnectable: true)
          }
        }
      }
    }

    @Test("addresses that change for ever are all told, as far as they wait to be read")
    func everyAddress() async throws {
      let course = crowd(40)
      let found = try objects(try await scan("--all", "--json", course: { course }))
      #expect(found.count == 4000)
    }

    @Test("while the output is not read, 4096 sightings wait, and what was left out is said")
    func nobodyReads() async throws {
      // As somebody who looks at the first page until the scan is nearly over.
      let turnsThePage = DispatchSemaphore(value: 0)
      let output = MemorySink { _ in
        turnsThePage.wait()
        turnsThePage.signal()
      }
      let end = CrowdedAir.Moment(.milliseconds(4900)) {
        turnsThePage.signal()
        return []
      }
      let course = crowd(100) + [end]
      let run = try await scan("--all", "--json", output: output, course: { course })
      let found = try objects(run)
      let devices = found.count { $0["event"] as? String == "device" }
      // The one that was being printed has left its place.
      #expect((4096...4097).contains(devices))
      #expect(found.count == devices + 1)
      #expect(found.last?["event"] as? String == "sightings_left_out")
      #expect(found.last?["count"] as? Int == 10_000 - devices)
      #expect(found.first?["name"] as? String == "bench-1")
    }
  }
}
