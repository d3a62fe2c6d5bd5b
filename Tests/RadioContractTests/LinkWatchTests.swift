import BlockingTests
import Foundation
import Radio
import Testing

/// Links of the host, as those see them who did not make them.
@Suite("Contract: links of the host", .blocking, .timeLimit(.minutes(30))) struct LinkWatchTests {
  private static let unknown = BluetoothUUID(UInt16(0xFFAA))

  private struct Scene {
    let world: any RadioWorld
    let phone: Phone
    let device: Device
    let peer: PeerID
    /// Another program on the phone's host.
    let program: any CentralRadio

    init(_ kind: RadioUnderTest) throws {
      world = kind.makeWorld()
      phone = Phone(world)
      device = try Device(world)
      peer = try phone.find(Device.service)
      program = phone.radio.makeCentral { [world] _ in world.noteProgress() }
    }

    /// What the phone was told: true for each link that came, false for each that went.
    var told: [Bool] {
      phone.log.compactMap { event in
        if case .hostLinkChanged(let known, let isUp) = event, known.id == peer, known.name != nil {
          isUp
        } else {
          nil
        }
      }
    }

    /// Waits until that was told, and nothing else.
    func expect(_ expected: [Bool], sourceLocation: SourceLocation = #_sourceLocation) {
      _ = world.wait(within: Phone.patience) { told.count >= expected.count }
      _ = world.wait(within: .milliseconds(250)) { told.count > expected.count }
      #expect(told == expected, sourceLocation: sourceLocation)
    }

    func waitForLink(_ isUp: Bool) throws {
      let radio = program
      try #require(world.wait(within: Phone.patience) { (radio.attMTU(of: peer) != nil) == isUp })
    }
  }

  @Test(arguments: RadioUnderTest.allCases, [true, false])
  func linksOfOtherProgramsAreTold(_ kind: RadioUnderTest, byService: Bool) throws {
    let scene = try Scene(kind)
    let filter =
      byService
      ? LinkFilter(services: [Self.unknown, Device.service])
      : LinkFilter(services: [Self.unknown], peers: [PeerID(UUID()), scene.peer])
    try scene.phone.central.watchLinks(filter)
    scene.program.connect(scene.peer)
    scene.expect([true])
    scene.program.cancelConnection(scene.peer)
    scene.expect([true, false])
    #expect(!scene.phone.log.contains { $0.kind == "connected" || $0.kind == "disconnected" })
    // Nobody asked any more.
    try scene.phone.central.watchLinks(nil)
    scene.program.connect(scene.peer)
    try scene.waitForLink(true)
    scene.expect([true, false])
  }

  @Test(arguments: RadioUnderTest.allCases)
  func otherPeersAreNot(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind)
    try scene.phone.central.watchLinks(LinkFilter(services: [Self.unknown], peers: [PeerID(UUID())]))
    scene.program.connect(scene.peer)
    try scene.waitForLink(true)
    scene.expect([])
  }

  @Test(arguments: RadioUnderTest.allCases)
  func ownLinksAreToldToo(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind)
    try scene.phone.central.watchLinks(LinkFilter(peers: [scene.peer]))
    try scene.phone.connect(scene.peer)
    scene.expect([true])
    // One link, however many use it.
    scene.program.connect(scene.peer)
    try scene.phone.central.cancelConnection(scene.peer)
    scene.expect([true])
    scene.program.cancelConnection(scene.peer)
    scene.expect([true, false])
  }

  @Test(arguments: RadioUnderTest.allCases)
  func aLinkThatIsThereCountsWhenItEnds(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind)
    scene.program.connect(scene.peer)
    try scene.waitForLink(true)
    try scene.phone.central.watchLinks(LinkFilter(services: [Device.service]))
    scene.expect([])
    scene.world.takeAway(scene.device.radio)
    scene.expect([false])
  }

  @Test(
    .disabled(
      if: BlueZWorld.isHere, "bluetoothd finds services by itself, and knows them before they are asked for"),
    arguments: RadioUnderTest.allCases)
  func servicesThatAreFoundOverTheLinkCount(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind)
    try scene.device.peripheral.stopAdvertising()
    try scene.device.peripheral.startAdvertising(Advertisement(localName: "D"))
    try scene.phone.central.startScan(ScanFilter())
    try scene.phone.expect("sighting without services", after: 1) { event in
      if case .discovered(let sighting) = event, sighting.advertisement.services.isEmpty { true } else { nil }
    }
    try scene.phone.central.stopScan()
    try scene.phone.central.watchLinks(LinkFilter(services: [Device.service]))
    try scene.phone.connect(scene.peer)
    #expect(try scene.phone.central.connectedPeers(withServices: [Device.service]) == [])
    scene.expect([])
    try scene.phone.ask(.discoverServices(nil), of: scene.peer)
    scene.expect([true])
    #expect(
      try scene.phone.central.connectedPeers(withServices: [Self.unknown, Device.service]).map(\.id)
        == [scene.peer])
    #expect(try scene.phone.central.connectedPeers(withServices: []) == [])
    try scene.phone.central.cancelConnection(scene.peer)
    scene.expect([true, false])
  }

  @Test(arguments: RadioUnderTest.allCases)
  func powerEndsIt(_ kind: RadioUnderTest) throws {
    let scene = try Scene(kind)
    try scene.phone.central.watchLinks(LinkFilter(peers: [scene.peer]))
    scene.program.connect(scene.peer)
    scene.expect([true])
    for state in [AdapterState.poweredOff, .poweredOn] {
      let start = scene.phone.log.count
      scene.world.setPower(state == .poweredOn, of: scene.phone.radio)
      try scene.phone.expect("\(state)", after: start) { event in
        if case .adapterStateChanged(state) = event { true } else { nil }
      }
    }
    // bluetoothd may end links before it says that there is no power.
    let told = scene.told
    #expect(told == [true] || kind == .bluez && told == [true, false])
    scene.program.connect(scene.peer)
    try scene.waitForLink(true)
    scene.expect(told)
  }
}
