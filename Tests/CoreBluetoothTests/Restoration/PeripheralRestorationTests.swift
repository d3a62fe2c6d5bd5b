import CoreBluetooth
import Foundation
import Radio
import Testing

@Suite(.timeLimit(.minutes(30))) struct PeripheralRestorationTests {
  /// Everything that can be published, in two services of which one includes the other.
  private func publishEverything(_ program: RestoringPeripheral) async throws {
    let fixed = CBMutableCharacteristic(
      type: CBUUID(string: "2A29"), properties: .read, value: Data([1, 2]), permissions: .readable)
    fixed.descriptors = [
      CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "né"),
      CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicFormatString), value: Data(count: 7)),
    ]
    let secure = CBMutableCharacteristic(
      type: CBUUID(string: "12345678-1234-1234-1234-123456789A01"),
      properties: [.write, .notifyEncryptionRequired], value: nil, permissions: [.writeEncryptionRequired])
    let included = CBMutableService(type: CBUUID(string: "180F"), primary: false)
    let service = CBMutableService(type: CBUUID(string: "180A"), primary: true)
    service.characteristics = [fixed, secure]
    service.includedServices = [included]
    try await program.add(included)
    try await program.add(service)
  }

  @Test(arguments: QueueKind.allCases)
  func tellsBeforeTheFirstStateAndPublishesAgain(kind: QueueKind) async throws {
    let program = RestoringPeripheral()
    try await program.start(kind)
    #expect(program.recorder.lines.all == ["state poweredOn"])
    try await publishEverything(program)
    try await program.advertise([
      CBAdvertisementDataLocalNameKey: "bench", CBAdvertisementDataServiceUUIDsKey: [CBUUID(string: "180A")],
    ])
    let before = try program.added()
    program.stop()

    try await program.start(kind)
    #expect(
      program.recorder.lines.all == [
        "restored services [\"180F\", \"180A\"] name bench advertised [\"180A\"]", "state poweredOn",
      ])
    #expect(program.recorder.watch.isClean)
    let after = try program.added()
    try #require(after.count == 2)
    for (new, old) in zip(after, before) {
      #expect(new.uuid == old.uuid)
      #expect(new.isPrimary == old.isPrimary)
      for (new, old) in zip(new.characteristics, old.characteristics) {
        var same = new
        same.id = old.id
        #expect(same == old)
      }
      #expect(new.characteristics.count == old.characteristics.count)
    }
    #expect(after[1].includedServices == [after[0].id])
    #expect(
      try program.peripheral.commands.last
        == .startAdvertising(
          Advertisement(localName: "bench", services: [BluetoothUUID(0x180A as UInt16)])))
    // The radio's answers are to what the program did not ask.
    try await program.post(
      .serviceAdded(after[0].id, .success(())), .serviceAdded(after[1].id, .success(())),
      .advertisingStarted(.success(())))
    #expect(program.recorder.lines.all.count == 2)
    #expect(program.manager?.isAdvertising == true)
  }

  /// Bluetooth that goes off again before it has taken what is restored.
  @Test func whatMeetsNoPowerIsPublishedWithTheNext() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await publishEverything(program)
    program.stop()
    try await program.start()
    let given = try program.added()
    try #require(given.count == 2)
    let powerless = RadioError(.notPoweredOn)
    try await program.post(
      .serviceAdded(given[0].id, .success(())), .adapterStateChanged(.poweredOff),
      .serviceAdded(given[1].id, .failure(powerless)))
    #expect(try program.added() == given)
    try await program.post(.adapterStateChanged(.poweredOn))
    #expect(try program.added() == given + [given[1]])
    try await program.post(.serviceAdded(given[1].id, .success(())))
    // Once.
    try await program.post(.adapterStateChanged(.poweredOff), .adapterStateChanged(.poweredOn))
    #expect(try program.added().count == 3)
    #expect(!program.recorder.lines.all.contains { $0.hasPrefix("added") })
    program.stop()
    try await program.start()
    #expect(try program.added().count == 2)
  }

  @Test func whatIsRestoredIsThereInTheCallback() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await program.advertise(nil)
    program.stop()
    let seen = Lines()
    try await program.start { [weak program] line in
      guard let program else { return }
      guard let manager = program.recorder.manager else { return seen.append("\(line), no manager") }
      seen.append("\(line), \(manager.state), advertising \(manager.isAdvertising)")
    }
    // Nothing of the advertisement has content, but it goes on.
    #expect(
      seen.all == [
        "restored, unknown, advertising true", "state poweredOn, poweredOn, advertising true",
      ])
    #expect(try program.peripheral.commands == [.startAdvertising(Advertisement())])
  }

  @Test func nothingIsToldWhereNothingWasSaved() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    program.stop()
    try await program.start()
    #expect(program.recorder.lines.all == ["state poweredOn"])
    #expect(program.folder.files == [])
    #expect(program.log.all == [])
  }

  @Test func restoredObjectsAreTheOnesHandedOver() async throws {
    let program = RestoringPeripheral()
    let example = LocalExample()
    try await program.start()
    try await program.add(example.service)
    program.stop()
    try await program.start()
    let service = try #require(program.recorder.restoredServices.first)
    let data = try #require(service.characteristics?.first as? CBMutableCharacteristic)
    let local = try #require(try program.added().first)
    let peer = PeerID(UUID())
    try await program.post(
      .read(ServerRequestID(1), central: peer, local.characteristics[0].id, offset: 0))
    let request = try #require(program.recorder.requests.first)
    #expect(request.characteristic === data)
    #expect(request.characteristic.service === service)
    request.value = Data([7])
    program.manager?.respond(to: request, withResult: .success)
    #expect(try program.peripheral.commands.last == .respondRead(ServerRequestID(1), Data([7])))

    // Adding again is an error; another of the same type is not, but hardly meant.
    program.manager?.add(service)
    await program.queue.drain()
    #expect(program.recorder.lines.all.last == "added 1234 error 1")
    #expect(program.log.all.last?.contains("has that service already") == true)
    try await program.add(LocalExample().service)
    #expect(program.recorder.lines.all.last == "added 1234")
    #expect(program.log.all.last?.contains("restored and is there already") == true)
    // Updates go to the restored characteristic.
    let updates = try #require(service.characteristics?.last as? CBMutableCharacteristic)
    #expect(program.manager?.updateValue(Data([1]), for: updates, onSubscribedCentrals: nil) == true)
    program.manager?.remove(service)
    #expect(try program.peripheral.commands.last == .remove(local.id))
  }

  @Test func whatWasTakenBackIsForgotten() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    let example = LocalExample()
    try await program.add(example.service)
    try await program.advertise(nil)
    #expect(program.folder.files == [RestoringPeripheral.file])
    program.manager?.stopAdvertising()
    program.manager?.remove(example.service)
    await program.queue.drain()
    #expect(program.folder.files == [])
    try await program.add(LocalExample().service)
    #expect(program.folder.files == [RestoringPeripheral.file])
    program.manager?.removeAllServices()
    program.stop()
    #expect(program.folder.files == [])
    try await program.start()
    #expect(program.recorder.lines.all == ["state poweredOn"])
  }

  @Test func subscribersOfTheFormerRunAreToldOff() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    let local = try await program.add(LocalExample().service)
    let peers = [PeerID(UUID()), PeerID(UUID())]
    for peer in peers { try await program.post(.subscribed(central: peer, local.characteristics[1].id)) }
    program.manager?.stopAdvertising()
    // Saved late, since it is the peer's doing, but at the latest with the next change.
    try await program.advertise(nil)
    program.stop()

    let seen = Lines()
    try await program.start { [weak program] line in
      guard let program else { return }
      let updates = program.recorder.restoredServices.first?.characteristics?.last
      let centrals = (updates as? CBMutableCharacteristic)?.subscribedCentrals
      seen.append("\(line): \(centrals?.map { peers.firstIndex(of: PeerID($0.identifier)) ?? -1 } ?? [])")
    }
    let updates = "AA02"
    #expect(
      seen.all == [
        "restored services [\"1234\"]: [0, 1]", "state poweredOn: [0, 1]", "unsubscribed \(updates): [1]",
        "unsubscribed \(updates): []",
      ])
    let again = try #require(try program.added().first)
    try await program.post(.subscribed(central: peers[1], again.characteristics[1].id))
    #expect(program.recorder.lines.all.last == "subscribed \(updates)")
  }

  @Test(arguments: [[AdapterState.poweredOff], [.unsupported, .resetting, .poweredOff], [.unauthorized]])
  func waitsForTheFirstPoweredOn(states: [AdapterState]) async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await program.add(LocalExample().service)
    try await program.advertise(nil)
    let before = program.saved
    program.stop()
    try await program.start(first: nil)
    #expect(program.recorder.lines.all == ["restored services [\"1234\"]"])
    for state in states { try program.peripheral.set(state) }
    await program.queue.drain()
    #expect(try program.peripheral.commands == [])
    #expect(program.manager?.isAdvertising == true)
    // A second end in between loses nothing.
    #expect(program.saved == before)
    program.stop()
    try await program.start(first: nil)
    for state in states + [.poweredOn] { try program.peripheral.set(state) }
    await program.queue.drain()
    #expect(try program.peripheral.commands.count == 2)
    // From now on the usual rules hold.
    try program.peripheral.set(.poweredOff)
    await program.queue.drain()
    #expect(program.manager?.isAdvertising == false)
  }

  @Test func whatWasThereWhenBluetoothWentIsSavedUntilItIsBack() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await program.add(LocalExample().service)
    try await program.advertise(nil)
    try program.peripheral.set(.unsupported)
    await program.queue.drain()
    #expect(program.folder.files == [RestoringPeripheral.file])
    try program.peripheral.set(.poweredOn)
    await program.queue.drain()
    #expect(program.folder.files == [])
  }

  @Test func theRadiosRefusalIsTold() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await program.add(LocalExample().service)
    try await program.advertise(nil)
    program.stop()
    try await program.start()
    let local = try #require(try program.added().first)
    try await program.post(
      .serviceAdded(local.id, .failure(RadioError(.outOfSpace))),
      .advertisingStarted(.failure(RadioError(.outOfSpace))))
    #expect(program.recorder.lines.all.suffix(2) == ["added 1234 error 4", "advertising false error 4"])
    #expect(program.folder.files == [])
  }

  @Test func stoppingBeforeTheRadioHasAnsweredStops() async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await program.advertise(nil)
    program.stop()
    try await program.start()
    program.manager?.startAdvertising(nil)
    await program.queue.drain()
    #expect(program.recorder.lines.all.last == "advertising true error 9")
    program.manager?.stopAdvertising()
    #expect(program.manager?.isAdvertising == false)
    program.manager?.startAdvertising(nil)
    _ = program.recorder.lines.take()
    // The first answer is to the restored advertising, the second to the program's.
    try await program.post(.advertisingStarted(.success(())))
    #expect(program.recorder.lines.all == [])
    #expect(program.manager?.isAdvertising == false)
    try await program.post(.advertisingStarted(.success(())))
    #expect(program.recorder.lines.all == ["advertising true"])
  }

  @Test(arguments: [true, false])
  func aDelegateWithoutTheMethodDropsTheState(hasDelegate: Bool) async throws {
    let program = RestoringPeripheral()
    try await program.start()
    try await program.add(LocalExample().service)
    try await program.advertise(nil)
    program.stop()
    let plain = PlainPeripheralDelegate()
    try await program.start(first: nil, delegate: plain)
    if !hasDelegate {
      program.stop()
      let queue = DispatchQueue(label: "suspended")
      queue.suspend()
      let radio = FakeRadio()
      let manager = CBPeripheralManager(
        delegate: plain, queue: queue,
        options: [
          CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: program.log.handler,
          CBPeripheralManagerOptionRestoreIdentifierKey: "bench",
          CBManagerOptionStateDirectoryKey: program.folder.path,
        ])
      manager.delegate = nil
      queue.resume()
      await withCheckedContinuation { done in queue.async { done.resume() } }
      #expect(radio.peripheral?.commands == [])
      #expect(!manager.isAdvertising)
    } else {
      #expect(program.manager?.isAdvertising == false)
      try program.peripheral.set(.poweredOn)
      await program.queue.drain()
      #expect(plain.lines.all == ["state poweredOn"])
      #expect(try program.peripheral.commands == [])
    }
    #expect(program.log.all.count { $0.contains("willRestoreState") } == 1)
    #expect(program.folder.files == [])
  }

  /// What a program asks inside a callback is on the disk before the next one runs.
  @Test func whatWasAskedForIsDurableBeforeItsAnswer() async throws {
    let program = RestoringPeripheral()
    let seen = Lines()
    try await program.start(first: nil) { [weak program] line in
      guard let program else { return }
      seen.append("\(line): \(program.saved?.contains("\"1234\"") ?? false)")
      guard line == "state poweredOn" else { return }
      program.manager?.add(LocalExample().service)
      // The radio answers at once, before anything else can get in between.
      if case .add(let local)? = program.radio.peripheral?.commands.last {
        program.radio.peripheral?.post(.serviceAdded(local.id, .success(())))
      }
    }
    try program.peripheral.set(.poweredOn)
    await program.queue.drain()
    #expect(seen.all == ["state poweredOn: false", "added 1234: true"])
  }

  @Test func twoManagersCannotHaveOneIdentifier() async throws {
    let first = RestoringPeripheral()
    try await first.start()
    try await first.add(LocalExample().service)
    let log = Lines()
    let radio = FakeRadio()
    let second = CBPeripheralManager(
      delegate: nil, queue: DispatchQueue(label: "second"),
      options: [
        CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: log.handler,
        CBPeripheralManagerOptionRestoreIdentifierKey: "bench",
        CBManagerOptionStateDirectoryKey: first.folder.path,
      ])
    #expect(log.all.count == 1)
    #expect(log.all.first?.contains("\"bench\" is in use by process \(getpid())") == true)
    withExtendedLifetime(second) {}
    #expect(first.saved?.contains("\"1234\"") == true)
  }

  @Test(arguments: ["", 7] as [any Sendable])
  func whatIsNoIdentifierIsAMisuse(identifier: any Sendable) async throws {
    let program = RestoringPeripheral()
    try await program.start(identifier: identifier)
    try await program.add(LocalExample().service)
    #expect(program.log.all.count == 1)
    #expect(program.log.all.first?.hasPrefix("API MISUSE") == true)
    #expect(program.folder.files == [])
  }
}
