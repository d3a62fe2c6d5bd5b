import Foundation
import Radio
import Testing

@Suite struct ScanReportsTests {
  private static let heart = BluetoothUUID(0x180D as UInt16)
  private static let battery = BluetoothUUID(0x180F as UInt16)
  private static let thermometer = BluetoothUUID(0x1809 as UInt16)

  /// Expectations take no values that change.
  private final class Scan {
    private var reports: ScanReports

    init(_ filter: ScanFilter) { reports = ScanReports(filter) }

    func wants(_ peer: PeerID, _ advertisement: Advertisement) -> Bool { reports.wants(peer, advertisement) }
    func take(_ peer: PeerID, _ advertisement: Advertisement) -> Bool { reports.take(peer, advertisement) }
  }

  @Test(arguments: [
    (ScanFilter(), true), (ScanFilter(services: [battery]), false),
    (ScanFilter(services: [battery, heart]), true), (ScanFilter(services: [thermometer]), true),
    (ScanFilter(services: [battery], solicitedServices: [battery]), true),
    (ScanFilter(services: [battery], solicitedServices: [heart]), false),
    (ScanFilter(solicitedServices: [heart]), true),
  ])
  func looksForWhatItIsTold(filter: ScanFilter, expected: Bool) {
    let advertisement = Advertisement(
      services: [Self.heart], solicitedServices: [Self.battery], overflowServices: [Self.thermometer])
    #expect(filter.matches(advertisement) == expected)
    let reports = Scan(filter)
    #expect(reports.take(PeerID(UUID()), advertisement) == expected)
  }

  @Test(arguments: [
    Advertisement(localName: "name"), Advertisement(services: [heart]),
    Advertisement(solicitedServices: [heart]), Advertisement(overflowServices: [heart]),
    Advertisement(serviceData: [heart: Data([1])]), Advertisement(manufacturerData: Data([1, 2])),
    Advertisement(txPower: 4),
  ])
  func reportsOnceForEachKindOfThing(more: Advertisement) {
    let peer = PeerID(UUID())
    let reports = Scan(ScanFilter())
    #expect(reports.take(peer, Advertisement()))
    #expect(!reports.take(peer, Advertisement()))
    #expect(reports.wants(peer, more))
    #expect(reports.take(peer, more))
    #expect(!reports.wants(peer, more))
    #expect(!reports.take(peer, more))
    // Back to less, and the same with other contents.
    #expect(!reports.take(peer, Advertisement()))
    var other = more
    if other.localName != nil { other.localName = "other" }
    if other.txPower != nil { other.txPower = -4 }
    #expect(!reports.take(peer, other))
    #expect(reports.take(PeerID(UUID()), more))
  }

  /// Two advertisers of one device take turns.
  @Test func whatWasSaidBeforeIsNotForgotten() {
    let peer = PeerID(UUID())
    let reports = Scan(ScanFilter())
    #expect(reports.take(peer, Advertisement(localName: "one")))
    #expect(reports.take(peer, Advertisement(services: [Self.heart])))
    #expect(!reports.take(peer, Advertisement(localName: "one")))
    #expect(!reports.take(peer, Advertisement(localName: "one", services: [Self.heart])))
  }

  @Test func reportsEverythingWithDuplicates() {
    let peer = PeerID(UUID())
    let reports = Scan(ScanFilter(services: [Self.heart], allowDuplicates: true))
    for _ in 0..<10 { #expect(reports.take(peer, Advertisement(services: [Self.heart]))) }
    #expect(!reports.take(peer, Advertisement()))
  }

  @Test func addressesThatChangeForEverDoNotFillTheMemory() {
    let first = PeerID(UUID())
    let reports = Scan(ScanFilter())
    #expect(reports.take(first, Advertisement()))
    for _ in 1..<ScanReports.capacity { #expect(reports.take(PeerID(UUID()), Advertisement())) }
    #expect(!reports.wants(first, Advertisement()))
    #expect(reports.take(PeerID(UUID()), Advertisement()))
    // Told again rather than never.
    #expect(reports.take(first, Advertisement()))
    #expect(!reports.take(first, Advertisement()))
  }
}
