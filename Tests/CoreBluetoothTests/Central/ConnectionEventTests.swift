import CoreBluetooth
import Foundation
import Radio
import Testing
import VirtualRadio

/// Links that another manager makes, and what a program hears and gets of them.
@Suite(.timeLimit(.minutes(30))) struct ConnectionEventTests {
  private static let other = CBUUID(string: "FFA0")

  /// Another program on the phone, and the device as that one sees it.
  private struct Other {
    let recorder = CentralRecorder()
    let manager: CBCentralManager

    init(_ rig: AirRig) {
      manager = CBCentralManager(
        delegate: recorder, queue: DispatchQueue(label: "other"),
        options: [CBManagerOptionRadioKey: rig.phoneRadio])
    }

    func found(_ rig: AirRig) throws -> CBPeripheral {
      try rig.run {
        rig.device.recorder.lines.all.contains("advertising true") && manager.state == .poweredOn
          && rig.central.state == .poweredOn
      }
      manager.scanForPeripherals(withServices: [DeviceProgram.service])
      try rig.run { !recorder.peripherals.isEmpty }
      manager.stopScan()
      _ = rig.phone.lines.take()
      return try #require(recorder.peripherals.first)
    }

    func connect(_ peripheral: CBPeripheral, _ rig: AirRig) throws {
      manager.connect(peripheral)
      try rig.run { peripheral.state == .connected }
      try rig.clock.run(for: .seconds(1))
    }

    func disconnect(_ peripheral: CBPeripheral, _ rig: AirRig) throws {
      manager.cancelPeripheralConnection(peripheral)
      try rig.run { peripheral.state == .disconnected }
      try rig.clock.run(for: .seconds(1))
    }
  }

  /// Which devices a program asks for.
  enum Match: CaseIterable, Sendable {
    case service, peripheral, either, otherService, otherPeripheral, nothing

    var isMet: Bool { self == .service || self == .peripheral || self == .either }

    func options(_ peripheral: CBPeripheral) -> [CBConnectionEventMatchingOption: Any]? {
      switch self {
      case .service: [.serviceUUIDs: [ConnectionEventTests.other, DeviceProgram.service]]
      case .peripheral: [.peripheralUUIDs: [UUID(), peripheral.identifier]]
      case .either:
        [.serviceUUIDs: [ConnectionEventTests.other], .peripheralUUIDs: [peripheral.identifier]]
      case .otherService: [.serviceUUIDs: [ConnectionEventTests.other]]
      case .otherPeripheral: [.peripheralUUIDs: [UUID()]]
      case .nothing: [:]
      }
    }
  }

  @Test(arguments: Match.allCases)
  func tellsOfLinksOfTheHost(match: Match) throws {
    let rig = AirRig()
    let other = Other(rig)
    let theirs = try other.found(rig)
    rig.central.registerForConnectionEvents(options: match.options(theirs))
    try other.connect(theirs, rig)
    try other.disconnect(theirs, rig)
    #expect(
      rig.phone.lines.take()
        == (match.isMet
          ? ["peerConnected device, disconnected", "peerDisconnected device, disconnected"] : []))
    #expect(!other.recorder.lines.all.contains { $0.hasPrefix("peer") })
    if let ours = rig.phone.peripherals.first {
      #expect(ours.identifier == theirs.identifier)
      #expect(ours !== theirs)
    }
    rig.central.registerForConnectionEvents(options: nil)
    try other.connect(theirs, rig)
    #expect(rig.phone.lines.all == [])
    #expect(rig.log.all == [])
  }

  /// One link serves both managers; the events are those of the link.
  @Test func joinsALinkThatIsThere() throws {
    let rig = AirRig()
    let other = Other(rig)
    let theirs = try other.found(rig)
    rig.central.registerForConnectionEvents(options: [.serviceUUIDs: [DeviceProgram.service]])
    try other.connect(theirs, rig)
    let ours = try #require(rig.phone.peripherals.first)
    let retrieved = rig.central.retrieveConnectedPeripherals(
      withServices: [Self.other, DeviceProgram.service])
    #expect(retrieved.count == 1 && retrieved.first === ours)
    #expect(ours.state == .disconnected)
    #expect(rig.central.retrieveConnectedPeripherals(withServices: [Self.other]) == [])
    #expect(rig.central.retrieveConnectedPeripherals(withServices: []) == [])
    // Commands need a connection of this manager.
    ours.discoverServices(nil)
    #expect(rig.log.take().count == 1)
    rig.central.connect(ours)
    try rig.run { ours.state == .connected }
    try other.disconnect(theirs, rig)
    #expect(ours.state == .connected)
    #expect(rig.phone.lines.take() == ["peerConnected device, disconnected", "connected, connected"])
    #expect(
      rig.central.retrieveConnectedPeripherals(withServices: [DeviceProgram.service]).first === ours)
    rig.central.cancelPeripheralConnection(ours)
    try rig.clock.run(for: .seconds(1))
    // Those are told by two, in any order.
    #expect(rig.phone.lines.all.count == 2)
    #expect(rig.phone.lines.all.contains("disconnected, disconnected"))
    #expect(rig.phone.lines.all.contains { $0.hasPrefix("peerDisconnected device") })
    #expect(rig.central.retrieveConnectedPeripherals(withServices: [DeviceProgram.service]) == [])
    #expect(rig.phone.watch.isClean)
  }

  @Test func lastsWhileBluetoothIsOff() throws {
    let rig = AirRig()
    // Before the first state is known.
    rig.central.registerForConnectionEvents(options: [.serviceUUIDs: [DeviceProgram.service]])
    let other = Other(rig)
    let theirs = try other.found(rig)
    try other.connect(theirs, rig)
    #expect(rig.phone.lines.take() == ["peerConnected device, disconnected"])
    rig.air.setPower(.poweredOff, of: rig.phoneRadio)
    rig.air.setPower(.poweredOn, of: rig.phoneRadio)
    try rig.run { rig.central.state == .poweredOn && other.manager.state == .poweredOn }
    try other.connect(theirs, rig)
    #expect(
      rig.phone.lines.all == ["state poweredOff", "state poweredOn", "peerConnected device, disconnected"])
    #expect(rig.log.all == [])
  }

  @Test func matchesAtMostFourServices() async throws {
    let rig = try await CentralRig()
    let services = (0..<6 as Range<UInt16>).map { BluetoothUUID(0xFFA0 + $0) }
    rig.manager.registerForConnectionEvents(
      options: [.serviceUUIDs: services.map { CBUUID(string: $0.description) }])
    #expect(rig.central.takeCommands() == [.watchLinks(LinkFilter(services: Array(services.prefix(4))))])
    #expect(rig.log.all.count == 1)
    #expect(rig.log.all.first?.contains("at most 4 services") == true)
  }

  /// What the radio had posted before it heard that nobody asks any more.
  @Test func nothingComesAfterTheEnd() async throws {
    let rig = try await CentralRig()
    rig.manager.registerForConnectionEvents(options: [.peripheralUUIDs: [rig.peer.uuid]])
    let peer = KnownPeer(id: rig.peer, name: "bench")
    await rig.post(.hostLinkChanged(peer, isUp: true))
    rig.manager.registerForConnectionEvents()
    await rig.post(.hostLinkChanged(peer, isUp: false))
    #expect(rig.recorder.lines.all == ["state poweredOn", "peerConnected bench, disconnected"])
    #expect(
      rig.central.commands == [.watchLinks(LinkFilter(peers: [rig.peer])), .watchLinks(nil)])
  }
}
