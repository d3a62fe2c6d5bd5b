import BlockingTests
import Foundation
import Radio
import Testing

/// Scans: who is reported, and how often.
@Suite("Contract: scans", .blocking, .timeLimit(.minutes(30))) struct ScanTests {
  private static let offered = BluetoothUUID(UInt16(0xFFB0))
  private static let other = BluetoothUUID(UInt16(0xFFB1))
  /// Longer than two advertising intervals.
  private static let quiet = Duration.milliseconds(250)

  private struct Scene {
    let kind: RadioUnderTest
    let world: any RadioWorld
    let phone: Phone
    let device: Device

    init(_ kind: RadioUnderTest, _ advertisement: Advertisement) throws {
      self.kind = kind
      world = kind.makeWorld()
      phone = Phone(world)
      device = try Device(world)
      try advertise(advertisement)
    }

    /// Advertises something else, and returns when it is on the air in the place of what was before.
    func advertise(_ advertisement: Advertisement) throws {
      let start = device.log.count
      try device.peripheral.stopAdvertising()
      try device.peripheral.startAdvertising(advertisement)
      try device.expect("advertising", after: start) { event in
        if case .advertisingStarted(.success) = event { true } else { nil }
      }
      if kind.delay > .zero { _ = world.wait(within: kind.delay) { false } }
    }

    var sightings: [Sighting] {
      phone.log.compactMap { if case .discovered(let sighting) = $0 { sighting } else { nil } }
    }

    /// Waits for a number of sightings, and whether there are no more than that. What comes after one that is missing is not worth its wait.
    func expect(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
      _ = world.wait(within: kind.patience) { sightings.count >= count }
      _ = world.wait(within: quiet) { sightings.count > count }
      try #require(
        sightings.count == count, "reported: \(sightings.map(\.advertisement))",
        sourceLocation: sourceLocation
      )
    }
  }

  @Test(arguments: RadioUnderTest.allCases)
  func aPeerIsReportedAgainWhenItSaysMore(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind, Advertisement(services: [Self.offered]))
    try scene.phone.central.startScan(ScanFilter())
    try scene.expect(1)
    try scene.advertise(Advertisement(localName: "D", services: [Self.offered]))
    try scene.expect(2)
    #expect(scene.sightings.last?.advertisement.localName == "D")
    try scene.advertise(Advertisement(localName: "other", services: [Self.other]))
    try scene.expect(2)
    // A scan that replaces the first starts afresh.
    try scene.phone.central.startScan(ScanFilter())
    try scene.expect(3)
  }

  @Test(arguments: RadioUnderTest.allCases)
  func everyAdvertisementIsReportedOnRequest(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind, Advertisement(services: [Self.offered]))
    try scene.phone.central.startScan(ScanFilter(allowDuplicates: true))
    try #require(scene.world.wait(within: kind.patience) { scene.sightings.count >= 5 })
    // Both the end and the replacement hold at once, but for what was posted before: the answer to a request comes after that.
    try scene.phone.central.startScan(ScanFilter(services: [Self.other], allowDuplicates: true))
    _ = try scene.phone.answer(scene.phone.send(.readRSSI, to: PeerID(UUID())))
    let count = scene.sightings.count
    try scene.expect(count)
    try scene.phone.central.stopScan()
    try scene.phone.central.stopScan()
    try scene.advertise(Advertisement(services: [Self.other]))
    try scene.expect(count)
  }

  @Test(
    arguments: RadioUnderTest.allCases,
    [
      (ScanFilter(services: [other]), false), (ScanFilter(services: [other, offered]), true),
      (ScanFilter(services: [other], solicitedServices: [offered]), true),
      (ScanFilter(services: [other], solicitedServices: [other]), false),
    ])
  func filtersLookForWhatIsOfferedOrSolicited(
    _ kind: RadioUnderTest, _ look: (filter: ScanFilter, isSeen: Bool)
  ) throws {
    var contents = Advertisement(services: [Self.offered])
    if !look.filter.solicitedServices.isEmpty { contents = Advertisement(solicitedServices: [Self.offered]) }
    let scene = try Scene(kind, contents)
    try scene.phone.central.startScan(look.filter)
    let isSeen = look.isSeen && (look.filter.solicitedServices.isEmpty || kind.hearsSolicitations)
    if isSeen {
      _ = scene.world.wait(within: kind.patience) { !scene.sightings.isEmpty }
    } else {
      _ = scene.world.wait(within: Self.quiet) { false }
    }
    #expect(scene.sightings.isEmpty != isSeen)
    // A radio that has no overflow area offers what is in it like everything else.
    try scene.advertise(Advertisement(overflowServices: [Self.other]))
    try scene.expect(isSeen && kind.hasOverflowArea ? 2 : 1)
  }
}
