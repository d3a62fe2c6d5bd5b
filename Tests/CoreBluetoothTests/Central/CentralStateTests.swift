import CoreBluetooth
import Radio
import Testing

@Suite(.timeLimit(.minutes(30))) struct CentralStateTests {
  @Test(arguments: QueueKind.allCases)
  func tellsItsFirstStateLater(kind: QueueKind) async throws {
    let radio = FakeRadio()
    let recorder = CentralRecorder()
    let queue = TestQueue(kind)
    let manager = CBCentralManager(
      delegate: recorder, queue: queue.argument, options: [CBManagerOptionRadioKey: radio])
    if kind != .main { queue.queue.sync(flags: .barrier) {} }
    await queue.drain()
    #expect(recorder.lines.all == ["state poweredOn"])
    #expect(manager.state == .poweredOn)
    #expect(recorder.watch.isClean)
  }

  @Test func isUnknownUntilTheRadioSpeaks() async throws {
    let rig = try await CentralRig(first: nil)
    #expect(rig.manager.state == .unknown)
    #expect(rig.recorder.lines.all == [])
    await rig.post(.adapterStateChanged(.unknown), .adapterStateChanged(.poweredOff))
    #expect(rig.recorder.lines.all == ["state poweredOff"])
  }

  @Test(arguments: [AdapterState.unknown, .resetting, .unsupported, .unauthorized, .poweredOff])
  func dropsCommandsUnlessPoweredOn(state: AdapterState) async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    rig.central.set(state)
    await rig.drain()
    _ = rig.central.takeCommands()
    rig.manager.scanForPeripherals(withServices: nil)
    rig.manager.stopScan()
    rig.manager.connect(peripheral)
    rig.manager.cancelPeripheralConnection(peripheral)
    #expect(rig.manager.retrievePeripherals(withIdentifiers: [rig.peer.uuid]) == [])
    #expect(
      rig.manager.retrieveConnectedPeripherals(withServices: [CBUUID(string: "180D")]) == [])
    await rig.drain()
    #expect(rig.central.commands == [])
    #expect(!rig.manager.isScanning)
    #expect(peripheral.state == .disconnected)
    let misuses = rig.log.all.filter { $0.hasPrefix("API MISUSE") && $0.contains("powered on") }
    #expect(misuses.count == 6)
  }

  @Test(arguments: [AdapterState.poweredOff, .resetting, .unauthorized, .unsupported, .unknown])
  func losesEverythingWithThePower(state: AdapterState) async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    let pending = PeerID(UUID())
    rig.manager.scanForPeripherals(withServices: nil)
    await rig.post(rig.sighting("second", of: pending))
    let second = try #require(rig.recorder.peripherals.last)
    rig.manager.connect(second)
    peripheral.readValue(for: objects.plain)
    let request = try #require(rig.takeRequests().last)
    _ = rig.recorder.lines.take()

    rig.central.set(state)
    await rig.post(
      .completed(request, rig.peer, .success(.value(Data()))), .notified(rig.peer, 3, Data([1])),
      .connected(pending, name: nil), rig.sighting())
    #expect(rig.recorder.lines.take() == ["state \(state)"])
    #expect(rig.manager.authorization == (state == .unauthorized ? .denied : .allowedAlways))
    #expect(peripheral.state == .disconnected)
    #expect(second.state == .disconnected)
    #expect(peripheral.services == nil)
    #expect(!objects.notifying.isNotifying)
    #expect(!rig.manager.isScanning)

    _ = rig.central.takeCommands()
    rig.central.set(.poweredOn)
    await rig.drain()
    // Nothing comes back by itself.
    #expect(rig.central.commands == [])
    rig.manager.connect(peripheral)
    await rig.post(.connected(rig.peer, name: nil))
    if state == .poweredOff {
      #expect(rig.recorder.lines.all == ["state poweredOn", "connected, connected"])
    } else {
      // Below poweredOff, objects of before are void: the device must be found anew.
      #expect(rig.recorder.lines.all == ["state poweredOn"])
      #expect(rig.log.all.contains { $0.contains("does not know that peripheral") })
      #expect(try await rig.discovered() !== peripheral)
    }
  }

  @Test func reportsOnlyChanges() async throws {
    let rig = try await CentralRig()
    for state in [AdapterState.poweredOn, .poweredOff, .poweredOff, .poweredOn] { rig.central.set(state) }
    await rig.drain()
    #expect(rig.recorder.lines.all == ["state poweredOn", "state poweredOff", "state poweredOn"])
  }

  @Test func scansUntilStopped() async throws {
    let rig = try await CentralRig()
    let options: [String: Any] = [
      CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: true),
      CBCentralManagerScanOptionSolicitedServiceUUIDsKey: [CBUUID(string: "180F")],
    ]
    rig.manager.scanForPeripherals(withServices: [CBUUID(string: "180D")], options: options)
    #expect(rig.manager.isScanning)
    let service = BluetoothUUID(0x180D as UInt16)
    await rig.post(rig.sighting(services: [service]), rig.sighting(nil, services: [service]))
    rig.recorder.react { [manager = rig.manager] _ in manager.stopScan() }
    await rig.post(rig.sighting(services: [service]), rig.sighting(services: [service]))
    #expect(!rig.manager.isScanning)
    #expect(
      rig.recorder.lines.all
        == ["state poweredOn", "discovered bench -40", "discovered bench -40", "discovered bench -40"])
    #expect(rig.recorder.peripherals.count == 1)
    let filter = ScanFilter(
      services: [service], solicitedServices: [BluetoothUUID(0x180F as UInt16)], allowDuplicates: true)
    #expect(rig.central.commands == [.startScan(filter), .stopScan])
  }

  @Test func retrievesWhatTheRadioKnows() async throws {
    let rig = try await CentralRig()
    let other = PeerID(UUID())
    rig.central.setKnown(
      [KnownPeer(id: rig.peer, name: "bench"), KnownPeer(id: other, name: nil)],
      connected: [KnownPeer(id: other, name: "held elsewhere")])
    let known = rig.manager.retrievePeripherals(withIdentifiers: [rig.peer.uuid, UUID()])
    #expect(known.map(\.identifier) == [rig.peer.uuid])
    #expect(known.first?.name == "bench")
    #expect(try await rig.discovered() === known.first)
    let connected = rig.manager.retrieveConnectedPeripherals(withServices: [CBUUID(string: "180D")])
    #expect(connected.map(\.identifier) == [other.uuid])
    #expect(connected.first?.state == .disconnected)
    #expect(rig.manager.retrieveConnectedPeripherals(withServices: []) == [])
  }

  @Test func deliversAdvertisementsInTheirTypes() async throws {
    final class Keeper: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
      // Written on the manager's queue, read after it was drained.
      var data: [[String: Any]] = []
      func centralManagerDidUpdateState(_ central: CBCentralManager) {}
      func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
      ) { data.append(advertisementData) }
    }
    let rig = try await CentralRig()
    let keeper = Keeper()
    rig.manager.delegate = keeper
    rig.manager.scanForPeripherals(withServices: nil)
    let service = BluetoothUUID(0x180D as UInt16)
    await rig.post(
      .discovered(
        Sighting(
          peer: rig.peer,
          advertisement: Advertisement(
            localName: "bench", services: [service], solicitedServices: [service],
            overflowServices: [service],
            serviceData: [service: Data([7])], manufacturerData: Data([0xE0, 0, 9]), txPower: 4),
          rssi: nil, isConnectable: true)),
      .discovered(
        Sighting(peer: rig.peer, advertisement: Advertisement(), rssi: nil, isConnectable: false)))
    let full = try #require(keeper.data.first)
    let uuids = [CBUUID(string: "180D")]
    #expect(full[CBAdvertisementDataLocalNameKey] as? String == "bench")
    #expect(full[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] == uuids)
    #expect(full[CBAdvertisementDataSolicitedServiceUUIDsKey] as? [CBUUID] == uuids)
    #expect(full[CBAdvertisementDataOverflowServiceUUIDsKey] as? [CBUUID] == uuids)
    #expect((full[CBAdvertisementDataServiceDataKey] as? [CBUUID: Data])?[uuids[0]] == Data([7]))
    #expect(full[CBAdvertisementDataManufacturerDataKey] as? Data == Data([0xE0, 0, 9]))
    #expect(full[CBAdvertisementDataTxPowerLevelKey] as? Int == 4)
    #expect(full[CBAdvertisementDataTxPowerLevelKey] as? NSNumber == 4)
    #expect(full[CBAdvertisementDataIsConnectable] as? Bool == true)
    let empty = try #require(keeper.data.last)
    #expect(Array(empty.keys) == [CBAdvertisementDataIsConnectable])
    #expect(empty[CBAdvertisementDataIsConnectable] as? Int == 0)
  }
}
