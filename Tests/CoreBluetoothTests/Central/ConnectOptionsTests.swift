import CoreBluetooth
import Radio
import Testing
import VirtualRadio

/// What a program may say about a connection.
@Suite(.timeLimit(.minutes(30))) struct ConnectOptionsTests {
  /// The device, found and ready to be connected to.
  private func found(_ rig: AirRig) throws -> CBPeripheral {
    let peripheral = try rig.connected()
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.run { peripheral.state == .disconnected && rig.device.manager.isAdvertising }
    _ = rig.phone.lines.take()
    return peripheral
  }

  @Test(arguments: [3, 3.0, NSNumber(value: 3)] as [any Sendable])
  func waitsBeforeItConnects(delay: any Sendable) throws {
    let rig = AirRig()
    let peripheral = try found(rig)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: delay])
    #expect(peripheral.state == .connecting)
    try rig.clock.run(for: .milliseconds(2999))
    #expect(peripheral.state == .connecting)
    try rig.clock.run(for: .milliseconds(500))
    #expect(peripheral.state == .connected)
    #expect(rig.phone.lines.all == ["connected, connected"])
    #expect(rig.log.all == [])
  }

  @Test(arguments: [0, -5, Double.nan, "soon"] as [any Sendable])
  func doesNotWaitForNoTime(delay: any Sendable) throws {
    let rig = AirRig()
    let peripheral = try found(rig)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: delay])
    try rig.clock.run(for: .milliseconds(500))
    #expect(peripheral.state == .connected)
  }

  @Test(arguments: [Double.infinity, 1e300, 1e9])
  func aDelayWithoutAnEndCanBeCancelled(delay: Double) throws {
    let rig = AirRig()
    let peripheral = try found(rig)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: delay])
    try rig.clock.run(for: .seconds(3600))
    #expect(peripheral.state == .connecting)
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.clock.run(for: .seconds(3600))
    #expect(peripheral.state == .disconnected)
    #expect(rig.phone.lines.all == ["disconnected, disconnected"])
  }

  @Test func cancellingADelayedConnectionIsToldOnce() throws {
    let rig = AirRig()
    let peripheral = try found(rig)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 5])
    rig.central.cancelPeripheralConnection(peripheral)
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.take() == ["disconnected, disconnected"])
    // And the next one is not touched by it.
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 5])
    rig.central.cancelPeripheralConnection(peripheral)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 2])
    #expect(peripheral.state == .connecting)
    try rig.clock.run(for: .milliseconds(1999))
    #expect(rig.phone.lines.all.count == 1)
    #expect(rig.phone.lines.take().allSatisfy { $0.hasPrefix("disconnected, ") })
    try rig.clock.run(for: .milliseconds(500))
    #expect(rig.phone.lines.all == ["connected, connected"])
  }

  @Test func theLastCallCounts() throws {
    let rig = AirRig()
    let peripheral = try found(rig)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 3600])
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 5])
    try rig.clock.run(for: .milliseconds(4999))
    #expect(peripheral.state == .connecting)
    try rig.clock.run(for: .milliseconds(500))
    #expect(peripheral.state == .connected)
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.run { peripheral.state == .disconnected && rig.device.manager.isAdvertising }
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 3600])
    rig.central.connect(peripheral)
    try rig.clock.run(for: .milliseconds(500))
    #expect(peripheral.state == .connected)
  }

  @Test func powerEndsTheDelay() throws {
    let rig = AirRig()
    let peripheral = try found(rig)
    rig.central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 5])
    rig.air.setPower(.poweredOff, of: rig.phoneRadio)
    rig.air.setPower(.poweredOn, of: rig.phoneRadio)
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.all == ["state poweredOff", "state poweredOn"])
    #expect(peripheral.state == .disconnected)
  }

  @Test func releasingThePeripheralEndsTheDelay() async throws {
    let rig = try await CentralRig(holds: false)
    do {
      rig.central.setKnown([KnownPeer(id: rig.peer, name: nil)])
      let peripheral = try #require(
        rig.manager.retrievePeripherals(withIdentifiers: [rig.peer.uuid]).first)
      rig.manager.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 5])
    }
    await rig.drain()
    #expect(rig.log.all.filter { $0.contains("was released") }.count == 1)
    #expect(rig.central.commands == [])
    // Its successor is not waiting for anything.
    let next = try #require(rig.manager.retrievePeripherals(withIdentifiers: [rig.peer.uuid]).first)
    #expect(next.state == .disconnected)
  }

  @Test func saysOnceWhatLinuxDoesNotHave() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    let absent = [
      CBConnectPeripheralOptionEnableTransportBridgingKey, CBConnectPeripheralOptionRequiresANCS,
    ]
    for value in [false, true, true] as [Any] + [NSNumber(value: true), NSNumber(value: false)] {
      rig.manager.connect(
        peripheral, options: Dictionary(uniqueKeysWithValues: absent.map { ($0, value) }))
    }
    #expect(rig.log.all.count == 2)
    for key in absent {
      #expect(rig.log.all.filter { $0.contains(key) && $0.contains("does not exist on Linux") }.count == 1)
    }
    #expect(rig.central.commands.last == .connect(rig.peer))
    #expect(!peripheral.ancsAuthorized)
  }

  @Test func alertsAreAcceptedInSilence() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    rig.manager.connect(
      peripheral,
      options: [
        CBConnectPeripheralOptionNotifyOnConnectionKey: true,
        CBConnectPeripheralOptionNotifyOnDisconnectionKey: NSNumber(value: true),
        CBConnectPeripheralOptionNotifyOnNotificationKey: 1,
      ])
    await rig.post(.connected(rig.peer, name: nil))
    #expect(peripheral.state == .connected)
    #expect(rig.log.all == [])
  }
}
