import CoreBluetooth
import Dispatch
import Radio
import Testing
import VirtualRadio

/// Advertising, power, channels, and the end of a peripheral manager.
@Suite(.timeLimit(.minutes(30))) struct PeripheralManagerTests {
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

  /// Commands that the program gives before it has heard that Bluetooth is off.
  @Test func whatCrossesALossOfPowerIsAnswered() throws {
    let clock = VirtualClock(.lockStep)
    let air = VirtualAir(clock: clock, link: LinkParameters())
    let radio = air.makeRadio(name: "device")
    let recorder = PeripheralRecorder()
    let queue = DispatchQueue(label: "device")
    let example = LocalExample()
    // Nothing is told before the reaction is there.
    queue.suspend()
    let manager = CBPeripheralManager(
      delegate: recorder, queue: queue, options: [CBManagerOptionRadioKey: radio])
    recorder.react { line in
      guard line == "state poweredOn" else { return }
      air.setPower(.poweredOff, of: radio)
      manager.add(example.service)
      manager.startAdvertising(nil)
      manager.publishL2CAPChannel(withEncryption: false)
    }
    queue.resume()
    let answers = ["added 1234 error 3", "advertising false error 3", "published 0 error 3"]
    #expect(try clock.run(until: { recorder.lines.all.count == 5 }, within: .seconds(60)))
    #expect(recorder.lines.take() == ["state poweredOn", "state poweredOff"] + answers)
    recorder.react(nil)
    // The same commands once more, with power.
    air.setPower(.poweredOn, of: radio)
    #expect(try clock.run(until: { manager.state == .poweredOn }, within: .seconds(60)))
    manager.add(example.service)
    manager.startAdvertising(nil)
    #expect(try clock.run(until: { manager.isAdvertising }, within: .seconds(60)))
    #expect(recorder.lines.all == ["state poweredOn", "added 1234", "advertising true"])
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

  @Test(arguments: [
    (CBPeripheralManagerConnectionLatency.low, LinkLatency.low), (.medium, .medium), (.high, .high),
  ])
  func wishesForALatency(latency: CBPeripheralManagerConnectionLatency, wish: LinkLatency) async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    await rig.post(.subscribed(central: rig.central, local.characteristics[1].id))
    let central = try #require(example.updates.subscribedCentrals?.first)
    rig.manager.setDesiredConnectionLatency(latency, for: central)
    #expect(rig.peripheral.commands == [.latency(wish, rig.central)])
  }

  /// Options for alerts and permissions of other systems are taken, and nothing is said about them.
  @Test(arguments: [true, false])
  func optionsOfOtherSystemsChangeNothing(isOn: Bool) async throws {
    let (recorder, central, log) = (PeripheralRecorder(), CentralRecorder(), Lines())
    let queue = TestQueue(.serial)
    // The option for alerts has one string in both roles.
    let options: [String: Any] = [
      CBManagerOptionRadioKey: FakeRadio(first: .poweredOff), CBManagerOptionLogHandlerKey: log.handler,
      CBCentralManagerOptionShowPowerAlertKey: isOn, CBCentralManagerOptionDeviceAccessForMedia: isOn,
    ]
    let managers: [CBManager] = [
      CBPeripheralManager(delegate: recorder, queue: queue.queue, options: options),
      CBCentralManager(delegate: central, queue: queue.queue, options: options),
    ]
    await queue.drain()
    #expect(managers.allSatisfy { $0.state == .poweredOff })
    #expect(recorder.lines.all + central.lines.all == ["state poweredOff", "state poweredOff"])
    #expect(log.all == [])
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
