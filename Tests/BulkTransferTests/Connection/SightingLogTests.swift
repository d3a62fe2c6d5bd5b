import Foundation
import Testing

@testable import BulkTransfer

@Suite("What a scan tells")
struct SightingLogTests {
  /// Expectations take no values that change.
  private final class Scan {
    private var log = SightingLog()
    var count: Int { log.count }
    func take(_ sighting: DeviceSighting) -> DeviceSighting? { log.take(sighting) }
    func takeBack() { log.takeBack() }
  }

  private let id = UUID()

  private func sighting(
    _ name: String? = nil, known: String? = nil, rssi: Int? = -40, services: [String] = []
  ) -> DeviceSighting {
    DeviceSighting(identifier: id, advertisedName: name, knownName: known, rssi: rssi, services: services)
  }

  @Test("a device is told once, whatever it repeats, leaves out or renames")
  func once() {
    let scan = Scan()
    let first = sighting("bench-1", known: "bench-1", services: ["180F"])
    #expect(scan.take(first) == first)
    for again in [
      first, sighting(), sighting("bench-1"), sighting("other", known: "other"), sighting(services: ["180F"]),
      sighting("bench-1", rssi: -90),
    ] {
      #expect(scan.take(again) == nil, "\(again)")
    }
  }

  @Test("what becomes known later is told with all that is known")
  func more() {
    let scan = Scan()
    #expect(scan.take(sighting(services: ["180F"]))?.isUpdate == false)
    var named = sighting("bench-1", known: "bench-1", rssi: -50, services: ["180F"])
    named.isUpdate = true
    // The scan response has the name alone.
    #expect(scan.take(sighting("bench-1", known: "bench-1", rssi: -50)) == named)
    #expect(
      scan.take(sighting("bench-1", rssi: nil, services: ["180D", "180F"]))?.services == ["180F", "180D"])
    #expect(scan.take(sighting("bench-1", services: ["180D"])) == nil)
  }

  @Test(
    "the name that a device advertises itself counts before the one by which the host knew it",
    arguments: [("bench-1", false), ("bench-2", true)])
  func knownName(advertised: String, isTold: Bool) {
    let scan = Scan()
    #expect(scan.take(sighting()) != nil)
    #expect(scan.take(sighting(known: "bench-1"))?.knownName == "bench-1")
    #expect(scan.take(sighting(known: "bench-2")) == nil)
    #expect((scan.take(sighting(advertised))?.advertisedName == advertised) == isTold)
  }

  @Test("what could not be told is told when it is seen again")
  func takenBack() {
    let scan = Scan()
    #expect(scan.take(sighting()) != nil)
    scan.takeBack()
    #expect(scan.take(sighting())?.isUpdate == false)
    #expect(scan.take(sighting("bench-1")) != nil)
    scan.takeBack()
    scan.takeBack()
    #expect(scan.take(sighting()) == nil)
    #expect(scan.take(sighting("bench-1"))?.isUpdate == true)
  }

  @Test("addresses that change for ever do not fill the memory")
  func bounded() {
    let scan = Scan()
    let first = sighting("bench-1")
    #expect(scan.take(first) != nil)
    for _ in 1..<SightingLog.capacity { #expect(scan.take(DeviceSighting(identifier: UUID())) != nil) }
    #expect(scan.take(first) == nil)
    #expect(scan.count == SightingLog.capacity)
    // Told again rather than never.
    #expect(scan.take(DeviceSighting(identifier: UUID())) != nil)
    #expect(scan.take(first)?.isUpdate == false)
    for _ in 0..<3 * SightingLog.capacity {
      #expect(scan.take(DeviceSighting(identifier: UUID())) != nil)
      #expect(scan.count <= SightingLog.capacity)
    }
  }

  @Test("nor does a device that advertises other services for ever")
  func services() {
    let scan = Scan()
    var told = 0
    for _ in 0..<1000 {
      guard let sighting = scan.take(sighting(services: (0..<10).map { _ in UUID().uuidString })) else {
        continue
      }
      told += 1
      #expect(sighting.services.count <= SightingLog.mostServices)
    }
    #expect(told <= 1 + SightingLog.mostServices)
    #expect(
      scan.take(DeviceSighting(identifier: UUID(), services: (0..<1000).map { "\($0)" }))?.services.count
        == SightingLog.mostServices)
  }
}
