import CoreBluetooth
import Radio
import Testing

@Suite(.timeLimit(.minutes(15))) struct PeripheralManagerTests {
  @Test(arguments: QueueKind.allCases)
  func publishesWhatItWasGiven(kind: QueueKind) async throws {
    let rig = try await PeripheralRig(kind)
    let fixed = CBMutableCharacteristic(
      type: CBUUID(string: "2A29"), properties: .read, value: Data([1, 2]), permissions: .readable)
    fixed.descriptors = [
      CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "né"),
      CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicFormatString), value: Data(count: 7)),
    ]
    let secure = CBMutableCharacteristic(
      type: CBUUID(string: "AA03"), properties: [.write, .notifyEncryptionRequired], value: nil,
      permissions: [.writeEncryptionRequired])
    let included = CBMutableService(type: CBUUID(string: "180F"), primary: false)
    let service = CBMutableService(type: CBUUID(string: "180A"), primary: true)
    service.characteristics = [fixed, secure]
    service.includedServices = [included]
    #expect(fixed.service === service)
    #expect(fixed.descriptors?.first?.characteristic === fixed)
    rig.manager.add(included)
    rig.manager.add(service)
    let added = rig.peripheral.commands.compactMap { command -> LocalService? in
      if case .add(let service) = command { service } else { nil }
    }
    try #require(added.count == 2)
    #expect(!added[0].isPrimary)
    let local = added[1]
    #expect(local.includedServices == [added[0].id])
    try #require(local.characteristics.count == 2)
    #expect(local.characteristics[0].staticValue == Data([1, 2]))
    #expect(local.characteristics[0].descriptors.map(\.value) == [Data("né".utf8), Data(count: 7)])
    #expect(local.characteristics[1].properties == [.write, .notify])
    #expect(local.characteristics[1].permissions == [.writeEncrypted])
    #expect(local.characteristics[1].notifyRequiresEncryption)
    #expect(local.characteristics[1].staticValue == nil)
    await rig.post(
      .serviceAdded(added[0].id, .success(())), .serviceAdded(local.id, .failure(RadioError(.outOfSpace))))
    #expect(rig.recorder.lines.all == ["added 180F", "added 180A error 4"])
    #expect(rig.recorder.watch.isClean)
    // What failed can be tried again, what was withdrawn too.
    rig.manager.add(service)
    rig.manager.remove(included)
    rig.manager.add(included)
    #expect(rig.peripheral.commands.count == 5)
    #expect(rig.peripheral.commands[3] == .remove(added[0].id))
  }

  /// Services that cannot be published, and the error that the program is told.
  static let refusals: [(String, @Sendable () -> CBMutableService, Int)] = [
    ("reserved", { CBMutableService(type: CBUUID(string: "1800"), primary: true) }, 8),
    (
      "not read-only",
      {
        service(
          CBMutableCharacteristic(
            type: CBUUID(string: "AA01"), properties: [.read, .write], value: Data(), permissions: .readable))
      }, 1
    ),
    (
      "writeable",
      {
        service(
          CBMutableCharacteristic(
            type: CBUUID(string: "AA01"), properties: .read, value: Data(),
            permissions: [.readable, .writeable]))
      }, 1
    ),
    (
      "too long",
      {
        service(
          CBMutableCharacteristic(
            type: CBUUID(string: "AA01"), properties: .read, value: Data(count: 513), permissions: .readable))
      }, 1
    ),
    (
      "broadcast",
      {
        service(
          CBMutableCharacteristic(
            type: CBUUID(string: "AA01"), properties: .broadcast, value: nil, permissions: .readable))
      }, 1
    ),
    (
      "configuration",
      {
        let characteristic = CBMutableCharacteristic(
          type: CBUUID(string: "AA01"), properties: .notify, value: nil, permissions: [])
        characteristic.descriptors = [CBMutableDescriptor(type: CBUUID(string: "2902"), value: Data([1, 0]))]
        return service(characteristic)
      }, 1
    ),
    (
      "included unknown",
      {
        let service = CBMutableService(type: CBUUID(string: "1234"), primary: true)
        service.includedServices = [CBMutableService(type: CBUUID(string: "180F"), primary: false)]
        return service
      }, 1
    ),
  ]

  private static func service(_ characteristic: CBMutableCharacteristic) -> CBMutableService {
    let service = CBMutableService(type: CBUUID(string: "1234"), primary: true)
    service.characteristics = [characteristic]
    return service
  }

  @Test(arguments: refusals.indices)
  func refusesWhatCannotBePublished(index: Int) async throws {
    let (_, make, code) = Self.refusals[index]
    let rig = try await PeripheralRig()
    let service = make()
    rig.manager.add(service)
    await rig.drain()
    #expect(rig.recorder.lines.all == ["added \(service.uuid) error \(code)"])
    #expect(rig.peripheral.commands == [])
    #expect(rig.log.all.count == 1)
  }

  @Test func refusesAServiceTwice() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    _ = try await rig.add(example.service)
    rig.manager.add(example.service)
    let thief = CBMutableService(type: CBUUID(string: "4321"), primary: true)
    thief.characteristics = [example.data]
    rig.manager.add(thief)
    await rig.drain()
    #expect(rig.recorder.lines.all == ["added 1234 error 1", "added 4321 error 1"])
    #expect(rig.peripheral.commands == [])
  }

  // MARK: Requests

  @Test func answersReads() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    await rig.post(
      .read(ServerRequestID(1), central: rig.central, local.characteristics[0].id, offset: 0),
      .read(ServerRequestID(2), central: rig.central, local.characteristics[0].id, offset: 22),
      .read(ServerRequestID(3), central: rig.central, LocalCharacteristicID(99), offset: 0))
    #expect(rig.recorder.lines.all == ["read AA01 from 0", "read AA01 from 22"])
    let requests = rig.recorder.requests
    try #require(requests.count == 2)
    #expect(requests[0].characteristic === example.data)
    #expect(requests[0].central === requests[1].central)
    #expect(requests[0].central.identifier == rig.central.uuid)
    #expect(requests[0].value == nil)
    requests[0].value = Data([7])
    rig.manager.respond(to: requests[0], withResult: .success)
    rig.manager.respond(to: requests[0], withResult: .success)
    rig.manager.respond(to: requests[1], withResult: .invalidOffset)
    #expect(
      rig.peripheral.commands == [
        .refuseRead(ServerRequestID(3), .attributeNotFound), .respondRead(ServerRequestID(1), Data([7])),
        .refuseRead(ServerRequestID(2), .invalidOffset),
      ])
    #expect(rig.log.all.filter { $0.contains("once") }.count == 1)
  }

  @Test func answersBatchesAsOne() async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let id = local.characteristics[0].id
    let parts = [0, 18, 36].map { ServerWrite(characteristic: id, offset: $0, value: Data(count: 18)) }
    await rig.post(
      .write(ServerRequestID(1), central: rig.central, parts, needsResponse: true),
      .write(ServerRequestID(2), central: rig.central, [parts[0]], needsResponse: false),
      .write(ServerRequestID(3), central: rig.central, [parts[0]], needsResponse: true))
    #expect(
      rig.recorder.lines.all == [
        "write AA01+0:18 AA01+18:18 AA01+36:18", "write AA01+0:18", "write AA01+0:18",
      ])
    let requests = rig.recorder.requests
    try #require(requests.count == 5)
    rig.manager.respond(to: requests[0], withResult: .success)
    rig.manager.respond(to: requests[1], withResult: .success)
    rig.manager.respond(to: requests[3], withResult: .success)
    rig.manager.respond(to: requests[4], withResult: try #require(CBATTError.Code(rawValue: 0x80)))
    #expect(
      rig.peripheral.commands == [
        .respondWrites(ServerRequestID(1), nil), .respondWrites(ServerRequestID(2), nil),
        .respondWrites(ServerRequestID(3), ATTErrorCode(rawValue: 0x80)),
      ])
    #expect(rig.log.all.count == 1)
  }

  /// Nobody can answer a request that was let go of: the peer must not wait for its whole transaction time.
  @Test func answersForThoseWhoForget() async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let id = local.characteristics[0].id
    let write = ServerWrite(characteristic: id, offset: 0, value: Data([1]))
    await rig.post(
      .read(ServerRequestID(1), central: rig.central, id, offset: 0),
      .write(ServerRequestID(2), central: rig.central, [write, write], needsResponse: true),
      .write(ServerRequestID(3), central: rig.central, [write], needsResponse: false))
    #expect(rig.peripheral.commands == [])
    rig.recorder.letGo()
    #expect(
      rig.peripheral.commands == [
        .refuseRead(ServerRequestID(1), .unlikelyError), .respondWrites(ServerRequestID(2), .unlikelyError),
        .respondWrites(ServerRequestID(3), nil),
      ])
    #expect(rig.log.all.count == 2)
  }

  private final class Bare: NSObject, CBPeripheralManagerDelegate {
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}
  }

  @Test(arguments: [true, false])
  func refusesForADelegateThatDoesNotAnswer(hasDelegate: Bool) async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let bare = Bare()
    rig.manager.delegate = hasDelegate ? bare : nil
    let id = local.characteristics[0].id
    await rig.post(
      .read(ServerRequestID(1), central: rig.central, id, offset: 0),
      .write(
        ServerRequestID(2), central: rig.central, [ServerWrite(characteristic: id, offset: 0, value: Data())],
        needsResponse: true))
    #expect(
      rig.peripheral.commands == [
        .refuseRead(ServerRequestID(1), .requestNotSupported),
        .respondWrites(ServerRequestID(2), .requestNotSupported),
      ])
    withExtendedLifetime(bare) {}
  }

  @Test func refusesTheRequestOfAnotherManager() async throws {
    let (rig, other) = (try await PeripheralRig(), try await PeripheralRig())
    let local = try await other.add(LocalExample().service)
    await other.post(
      .read(ServerRequestID(1), central: other.central, local.characteristics[0].id, offset: 0))
    let request = try #require(other.recorder.requests.first)
    rig.manager.respond(to: request, withResult: .success)
    #expect(rig.peripheral.commands == [])
    #expect(other.peripheral.commands == [])
    #expect(rig.log.all.count == 1)
  }

  // MARK: Updates

  @Test func knowsItsSubscribers() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    let id = local.characteristics[1].id
    let second = PeerID(UUID())
    #expect(example.updates.subscribedCentrals == [])
    await rig.post(
      .subscribed(central: rig.central, id), .subscribed(central: second, id),
      .subscribed(central: second, id), .unsubscribed(central: PeerID(UUID()), id))
    #expect(example.updates.subscribedCentrals?.map(\.identifier) == [rig.central.uuid, second.uuid])
    await rig.post(.unsubscribed(central: rig.central, id))
    #expect(example.updates.subscribedCentrals?.map(\.identifier) == [second.uuid])
    #expect(rig.recorder.lines.all == ["subscribed AA02", "subscribed AA02", "unsubscribed AA02"])
    let central = try #require(example.updates.subscribedCentrals?.first)
    for (mtu, limit) in [(23, 20), (185, 182), (517, 512)] {
      rig.peripheral.setMTU(mtu)
      #expect(central.maximumUpdateValueLength == limit)
    }
    rig.peripheral.setMTU(nil)
    #expect(central.maximumUpdateValueLength == 20)
    rig.manager.remove(example.service)
    #expect(example.updates.subscribedCentrals == [])
  }

  @Test func updatesUntilTheQueueIsFull() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    let id = local.characteristics[1].id
    await rig.post(.subscribed(central: rig.central, id))
    let central = try #require(example.updates.subscribedCentrals?.first)
    #expect(rig.manager.updateValue(Data([1]), for: example.updates, onSubscribedCentrals: nil))
    #expect(rig.manager.updateValue(Data([2]), for: example.updates, onSubscribedCentrals: [central]))
    rig.peripheral.setRoom(false)
    #expect(!rig.manager.updateValue(Data([3]), for: example.updates, onSubscribedCentrals: nil))
    rig.peripheral.setRoom(true)
    await rig.post(.readyToNotify)
    #expect(rig.recorder.lines.all.last == "ready")
    #expect(
      rig.peripheral.commands == [.notify(Data([1]), id, nil), .notify(Data([2]), id, [rig.central])])
    let stranger = CBMutableCharacteristic(
      type: CBUUID(string: "AA02"), properties: .notify, value: nil, permissions: [])
    #expect(!rig.manager.updateValue(Data(), for: stranger, onSubscribedCentrals: nil))
    #expect(rig.log.all.count == 1)
  }

  // MARK: Advertising, power, channels

  @Test func advertisesOnce() async throws {
    let rig = try await PeripheralRig()
    rig.manager.startAdvertising([
      CBAdvertisementDataLocalNameKey: "bench", CBAdvertisementDataServiceUUIDsKey: [CBUUID(string: "1234")],
      CBAdvertisementDataTxPowerLevelKey: 4,
    ])
    #expect(!rig.manager.isAdvertising)
    rig.manager.startAdvertising(nil)
    await rig.post(.advertisingStarted(.success(())))
    rig.manager.startAdvertising(nil)
    await rig.drain()
    #expect(rig.manager.isAdvertising)
    #expect(
      rig.recorder.lines.all == ["advertising false error 9", "advertising true", "advertising true error 9"])
    #expect(
      rig.peripheral.takeCommands() == [
        .startAdvertising(Advertisement(localName: "bench", services: [BluetoothUUID(0x1234 as UInt16)]))
      ])
    #expect(rig.log.all.count == 1)
    rig.manager.stopAdvertising()
    #expect(!rig.manager.isAdvertising)
    rig.manager.startAdvertising(nil)
    await rig.post(.advertisingStarted(.failure(RadioError(.outOfSpace))))
    #expect(!rig.manager.isAdvertising)
    #expect(rig.recorder.lines.all.last == "advertising false error 4")
    #expect(rig.peripheral.commands == [.stopAdvertising, .startAdvertising(Advertisement())])
  }

  /// The answer to a start that was taken back says nothing about the next.
  @Test func anOldStartDoesNotCount() async throws {
    let rig = try await PeripheralRig()
    rig.manager.startAdvertising(nil)
    rig.manager.stopAdvertising()
    rig.manager.startAdvertising(nil)
    await rig.post(.advertisingStarted(.success(())))
    #expect(!rig.manager.isAdvertising)
    await rig.post(.advertisingStarted(.success(())))
    #expect(rig.manager.isAdvertising)
  }

  @Test(arguments: [AdapterState.poweredOff, .resetting])
  func losesWhatThePowerHeld(state: AdapterState) async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    await rig.post(.subscribed(central: rig.central, local.characteristics[1].id))
    rig.manager.startAdvertising(nil)
    await rig.post(.advertisingStarted(.success(())))
    rig.peripheral.set(state)
    await rig.drain()
    _ = rig.peripheral.takeCommands()
    #expect(!rig.manager.isAdvertising)
    #expect(example.updates.subscribedCentrals == [])
    rig.manager.startAdvertising(nil)
    rig.manager.stopAdvertising()
    rig.manager.add(example.service)
    rig.manager.remove(example.service)
    rig.manager.removeAllServices()
    rig.manager.publishL2CAPChannel(withEncryption: false)
    rig.manager.unpublishL2CAPChannel(0x80)
    #expect(!rig.manager.updateValue(Data(), for: example.updates, onSubscribedCentrals: nil))
    #expect(rig.peripheral.commands == [])
    #expect(rig.log.all.filter { $0.contains("powered on") }.count == 8)
    rig.peripheral.set(.poweredOn)
    await rig.drain()
    rig.manager.add(example.service)
    await rig.drain()
    // Off keeps the services; below that they are gone and are added anew.
    #expect(rig.peripheral.commands.count == (state == .poweredOff ? 0 : 1))
    #expect(rig.manager.state == .poweredOn)
  }

  @Test func publishesChannels() async throws {
    let rig = try await PeripheralRig()
    rig.manager.publishL2CAPChannel(withEncryption: true)
    rig.manager.unpublishL2CAPChannel(0x81)
    #expect(rig.peripheral.commands == [.publish(true), .unpublish(0x81)])
    await rig.post(
      .channelPublished(.success(0x80)), .channelPublished(.failure(RadioError(.noResources))),
      .channelUnpublished(0x80, .success(())),
      .channelOpened(central: rig.central, 0x80, FakeChannel(psm: 0x80, peer: rig.central)))
    #expect(
      rig.recorder.lines.all == ["published 128", "published 0 error 4", "unpublished 128", "channel 128"])
    let channel = try #require(rig.recorder.channels.first)
    #expect(channel.peer is CBCentral)
    #expect(channel.peer.identifier == rig.central.uuid)
  }

  @Test func everythingGoesWithTheProgramsReferences() async throws {
    weak var manager: CBPeripheralManager?
    weak var service: CBMutableService?
    weak var central: CBCentral?
    weak var client: FakePeripheral?
    let radio: FakeRadio
    do {
      let rig = try await PeripheralRig()
      radio = rig.radio
      let example = LocalExample()
      let local = try await rig.add(example.service)
      await rig.post(
        .subscribed(central: rig.central, local.characteristics[1].id),
        .read(ServerRequestID(1), central: rig.central, local.characteristics[0].id, offset: 0))
      rig.manager.setDesiredConnectionLatency(
        .low, for: try #require(example.updates.subscribedCentrals?.first))
      #expect(rig.peripheral.commands == [.latency(.low, rig.central)])
      manager = rig.manager
      service = example.service
      central = example.updates.subscribedCentrals?.first
      client = rig.peripheral
      #expect(radio.counts.counts.watches == 1)
    }
    #expect(manager == nil)
    #expect(service == nil)
    #expect(central == nil)
    #expect(client == nil)
    #expect(radio.counts.counts == FakeClock.Counts(activitiesBegun: radio.counts.counts.activitiesBegun))
  }
}
