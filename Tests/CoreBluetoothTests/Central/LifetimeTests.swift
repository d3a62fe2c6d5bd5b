import CoreBluetooth
import Radio
import Testing

@Suite(.timeLimit(.minutes(30))) struct LifetimeTests {
  @Test func releasingAPendingPeripheralCancels() async throws {
    let rig = try await CentralRig()
    rig.manager.connect(try await rig.discovered())
    rig.recorder.letGo()
    await rig.drain()
    #expect(rig.central.commands.last == .cancel(rig.peer))
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(!rig.recorder.lines.all.contains { $0.hasPrefix("disconnected") })
    #expect(rig.log.all.contains { $0.contains("Keep a reference") })
  }

  /// The program that finds the device again before the end of the old connection was heard of.
  @Test func aSuccessorStartsAfresh() async throws {
    let rig = try await CentralRig()
    rig.manager.connect(try await rig.discovered())
    rig.queue.queue.suspend()
    rig.recorder.letGo()
    rig.manager.scanForPeripherals(withServices: nil)
    rig.central.post(rig.sighting())
    rig.queue.queue.resume()
    await rig.drain()
    let second = try #require(rig.recorder.peripherals.last)
    #expect(rig.central.commands.filter { $0 == .cancel(rig.peer) }.count == 1)
    rig.manager.connect(second)
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(rig.central.commands.last == .connect(rig.peer))
    await rig.post(.connected(rig.peer, name: nil))
    #expect(second.state == .connected)
    #expect(!rig.recorder.lines.all.contains { $0.hasPrefix("disconnected") })
  }

  @Test func keepsAConnectedPeripheral() async throws {
    let rig = try await CentralRig()
    weak var weakly: CBPeripheral?
    weakly = try await rig.connected()
    rig.recorder.letGo()
    await rig.drain()
    #expect(weakly != nil)
    #expect(!rig.central.commands.contains(.cancel(rig.peer)))
    await rig.post(.disconnected(rig.peer, RadioError(.peerTerminated), at: .zero))
    #expect(rig.recorder.lines.all.last == "disconnected, disconnected link error 7")
    await rig.drain()
    #expect(weakly == nil)
  }

  @Test func discoversManyDevicesWithoutHoldingThem() async throws {
    let rig = try await CentralRig(holds: false)
    weak var first: CBPeripheral?
    rig.recorder.react { _ in }
    rig.manager.scanForPeripherals(withServices: nil)
    for _ in 0..<100 { rig.central.post(rig.sighting(of: PeerID(UUID()))) }
    await rig.drain()
    first = rig.manager.retrievePeripherals(withIdentifiers: []).first
    #expect(first == nil)
    #expect(rig.recorder.lines.all.count == 101)
  }

  @Test func everythingGoesWithTheProgramsReferences() async throws {
    weak var manager: CBCentralManager?
    weak var peripheral: CBPeripheral?
    weak var service: CBService?
    weak var characteristic: CBCharacteristic?
    weak var client: FakeCentral?
    let radio: FakeRadio
    do {
      let rig = try await CentralRig()
      radio = rig.radio
      let (found, objects) = try await rig.explored()
      rig.central.setScript(FakeDatabase.script(rig.peer))
      // Services that include each other.
      found.discoverIncludedServices(nil, for: objects.service)
      if let other = found.services?.last { found.discoverIncludedServices(nil, for: other) }
      await rig.drain()
      manager = rig.manager
      peripheral = found
      service = found.services?.last
      characteristic = objects.data
      client = rig.central
      #expect(radio.counts.counts.watches == 1)
    }
    #expect(manager == nil)
    #expect(client == nil)
    #expect(peripheral == nil)
    #expect(service == nil)
    #expect(characteristic == nil)
    #expect(radio.counts.counts.watches == 0)
  }

  @Test func releasingTheManagerEndsItsLinks() async throws {
    let radio = FakeRadio()
    let recorder = CentralRecorder()
    let queue = TestQueue(.serial)
    let peer = PeerID(UUID())
    var manager: CBCentralManager? = CBCentralManager(
      delegate: recorder, queue: queue.queue, options: [CBManagerOptionRadioKey: radio])
    let central = try #require(radio.central)
    await queue.drain()
    manager?.scanForPeripherals(withServices: nil)
    central.post(
      .discovered(Sighting(peer: peer, advertisement: Advertisement(), rssi: nil, isConnectable: true)))
    await queue.drain()
    let peripheral = try #require(recorder.peripherals.first)
    manager?.connect(peripheral)
    central.post(.connected(peer, name: nil))
    await queue.drain()
    #expect(peripheral.state == .connected)
    manager = nil
    #expect(central.commands.suffix(2) == [.stopScan, .cancel(peer)])
    #expect(peripheral.state == .disconnected)
    peripheral.readRSSI()
    central.post(.notified(peer, 3, Data()))
    await queue.drain()
    #expect(recorder.lines.all.last == "connected, connected")
    #expect(radio.counts.counts.activities == 0)
  }

  @Test func holdsDelegatesWeakly() async throws {
    let rig = try await CentralRig()
    weak var weakly: CentralRecorder?
    let peripheral = try await rig.connected()
    do {
      let delegate = CentralRecorder()
      rig.manager.delegate = delegate
      peripheral.delegate = delegate
      weakly = delegate
      #expect(rig.manager.delegate === delegate)
    }
    await rig.post(.notified(rig.peer, 3, Data()), .disconnected(rig.peer, nil, at: .zero))
    #expect(weakly == nil)
    #expect(rig.manager.delegate == nil)
    #expect(peripheral.delegate == nil)
  }
}
