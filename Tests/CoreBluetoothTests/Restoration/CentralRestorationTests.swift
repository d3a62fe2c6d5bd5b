import CoreBluetooth
import Foundation
import Radio
import Testing

@Suite(.timeLimit(.minutes(30))) struct CentralRestorationTests {
  @Test(arguments: QueueKind.allCases)
  func tellsBeforeTheFirstStateAndAsksTheRadioAgain(kind: QueueKind) async throws {
    let program = RestoringCentral()
    try await program.start(kind)
    let connected = try await program.connected()
    let other = PeerID(UUID())
    let pending = try await program.discovered(other, name: "far")
    program.manager?.connect(pending)
    program.manager?.scanForPeripherals(
      withServices: [CBUUID(string: "180D")], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
    await program.queue.drain()
    #expect(connected.state == .connected)
    program.stop()

    let commands = Lines()
    try await program.start(kind) { [weak program] line in
      guard let program else { return }
      guard let manager = program.recorder.manager else { return }
      let asked = program.radio.central?.commands.count ?? 0
      commands.append("\(manager.state), scanning \(manager.isScanning), asked \(asked)")
    }
    #expect(
      program.recorder.lines.all == [
        "restored peripherals [\"bench connecting\", \"far connecting\"] scan [\"180D\"] options [\"kCBScanOptionAllowDuplicates\"]",
        "state poweredOn",
      ])
    #expect(program.recorder.watch.isClean)
    #expect(commands.all == ["unknown, scanning true, asked 0", "poweredOn, scanning true, asked 3"])
    #expect(
      try program.central.commands == [
        .connect(program.peer), .connect(other),
        .startScan(ScanFilter(services: [BluetoothUUID(0x180D as UInt16)], allowDuplicates: true)),
      ])
    #expect(program.recorder.peripherals.map(\.identifier) == [program.peer.uuid, other.uuid])
  }

  @Test(arguments: [true, false])
  func onlyWhatHasContentIsInTheDictionary(scans: Bool) async throws {
    let program = RestoringCentral()
    try await program.start()
    if scans {
      program.manager?.scanForPeripherals(withServices: [])
    } else {
      program.manager?.connect(try await program.discovered())
    }
    program.stop()
    try await program.start()
    #expect(
      program.recorder.lines.all.first == (scans ? "restored" : "restored peripherals [\"bench connecting\"]")
    )
    #expect(program.manager?.isScanning == scans)
  }

  @Test func nothingIsToldWhereNothingWasSaved() async throws {
    let program = RestoringCentral()
    try await program.start()
    _ = try await program.discovered()
    program.stop()
    try await program.start()
    #expect(program.recorder.lines.all == ["state poweredOn"])
    #expect(program.folder.files == [])
    #expect(program.log.all == [])
  }

  @Test(arguments: [true, false])
  func aPendingConnectionGoesOn(asksAgain: Bool) async throws {
    let program = try await RestoringCentral.ended(.waiting)
    try await program.start()
    let peripheral = try #require(program.recorder.peripherals.first)
    // This run's radio has not heard of it.
    let known = program.manager?.retrievePeripherals(withIdentifiers: [UUID(), program.peer.uuid])
    #expect(known?.map { $0 === peripheral } == [true])
    if asksAgain { program.manager?.connect(peripheral) }
    #expect(try program.central.commands == [.connect(program.peer)])
    try await program.post(.connected(program.peer, name: "bench"))
    #expect(program.recorder.lines.all.last == "connected, connected")
    #expect(peripheral.state == .connected)
    // It is the same in the third run.
    program.stop()
    try await program.start()
    #expect(program.recorder.lines.all.first == "restored peripherals [\"bench connecting\"]")
  }

  @Test func aPendingConnectionCanBeCancelled() async throws {
    let program = try await RestoringCentral.ended(.waiting)
    let files = Lines()
    try await program.start { [weak program] line in
      guard let program else { return }
      files.append("\(line): \(program.folder.files)")
    }
    let peripheral = try #require(program.recorder.peripherals.first)
    program.manager?.cancelPeripheralConnection(peripheral)
    #expect(peripheral.state == .disconnecting)
    try await program.post(.disconnected(program.peer, nil, at: .zero))
    // Forgotten before the program is told.
    #expect(files.all.last == "disconnected, disconnected: []")
    #expect(try program.central.commands == [.connect(program.peer), .cancel(program.peer)])
    program.stop()
    try await program.start()
    #expect(program.recorder.lines.all == ["state poweredOn"])
  }

  @Test func whatWasKnownIsThereBeforeTheLinkAndNotifiesAfterIt() async throws {
    let program = try await RestoringCentral.ended(.subscribed)

    try await program.start(first: nil)
    let (peripheral, objects) = try program.restored()
    #expect(peripheral.services?.map(\.uuid.uuidString) == ["180D", "180F"])
    #expect(objects.service.includedServices?.first === peripheral.services?.last)
    #expect(objects.service.characteristics?.count == 4)
    #expect(objects.notifying.isNotifying)
    #expect(!objects.indicating.isNotifying)
    #expect(objects.notifying.descriptors?.map(\.uuid.uuidString) == ["2902", "2901"])
    #expect(objects.plain.descriptors == nil)
    #expect(objects.notifying.service === objects.service)
    #expect(objects.service.peripheral === peripheral)
    // Not before there is a link.
    peripheral.readValue(for: objects.plain)
    #expect(program.log.all.last?.contains("only while it is connected") == true)

    try program.central.setScript(FakeDatabase.script(program.peer))
    try program.central.set(.poweredOn)
    try await program.post(.connected(program.peer, name: nil))
    #expect(program.recorder.lines.all.last == "connected, connected")
    #expect(try program.requests().last == .setNotify(FakeDatabase.notifying, .notify))
    #expect(try program.requests().dropLast().allSatisfy { if case .setNotify = $0 { false } else { true } })
    try await program.post(.notified(program.peer, FakeDatabase.notifying.handle, Data([5, 6])))
    #expect(program.recorder.lines.all.last == "value 5,6")
    #expect(objects.notifying.value == Data([5, 6]))
    #expect(peripheral.services?.first === objects.service)
    peripheral.readValue(for: objects.plain)
    await program.queue.drain()
    #expect(program.recorder.lines.all.last == "value 1,2,3")
    // Discovering again makes no new objects.
    peripheral.discoverCharacteristics(nil, for: objects.service)
    await program.queue.drain()
    #expect(objects.service.characteristics?.first === objects.notifying)
  }

  @Test func aDeviceWithOtherFirmwareIsNotTakenForTheOldOne() async throws {
    let program = try await RestoringCentral.ended(.subscribed)
    try await program.start()
    let (peripheral, objects) = try program.restored()
    let peer = program.peer
    try program.central.setScript { central, command in
      guard case .request(let request, let id) = command else { return }
      // The same services, but the handles of one mean something else now.
      var reply = FakeDatabase.reply(to: request)
      if case .characteristics(var found) = reply, !found.isEmpty {
        found[0].uuid = BluetoothUUID(0x2A39 as UInt16)
        reply = .characteristics(found)
      }
      central.post(.completed(id, peer, .success(reply)))
    }
    try await program.post(.connected(peer, name: nil))
    #expect(program.recorder.lines.all.suffix(2) == ["connected, connected", "modified [\"180D\"]"])
    #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F"])
    #expect(!objects.notifying.isNotifying)
    #expect(try !program.requests().contains(.setNotify(FakeDatabase.notifying, .notify)))
    let before = try program.requests().count
    peripheral.writeValue(Data([1]), for: objects.data, type: .withResponse)
    #expect(try program.requests().count == before)
    #expect(program.log.all.last?.contains("does not have that attribute") == true)
  }

  @Test func aSubscriptionThatCannotBeHadAgainIsTold() async throws {
    let program = try await RestoringCentral.ended(.subscribed)
    try await program.start()
    let (_, objects) = try program.restored()
    let peer = program.peer
    try program.central.setScript { central, command in
      guard case .request(let request, let id) = command else { return }
      if case .setNotify = request {
        central.post(.completed(id, peer, .failure(.att(.insufficientAuthentication))))
      } else {
        central.post(.completed(id, peer, .success(FakeDatabase.reply(to: request))))
      }
    }
    try await program.post(.connected(peer, name: nil))
    #expect(program.recorder.lines.all.suffix(2) == ["connected, connected", "notifying false att error 5"])
    #expect(!objects.notifying.isNotifying)
    #expect(program.saved?.contains("\"isNotifying\" : true") == false)
  }

  @Test func aLinkThatIsLostBeforeTheProgramKnowsOfItIsMadeAgain() async throws {
    let program = try await RestoringCentral.ended(.subscribed)
    try await program.start()
    let (peripheral, objects) = try program.restored()
    // No answer comes before the link is lost.
    try await program.post(
      .connected(program.peer, name: nil),
      .disconnected(program.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(program.recorder.lines.all.last == "state poweredOn")
    #expect(peripheral.state == .connecting)
    #expect(objects.notifying.isNotifying)
    #expect(try program.central.commands.filter { $0 == .connect(program.peer) }.count == 2)
    try program.central.setScript(FakeDatabase.script(program.peer))
    try await program.post(.connected(program.peer, name: nil))
    #expect(program.recorder.lines.all.last == "connected, connected")
    #expect(try program.requests().last == .setNotify(FakeDatabase.notifying, .notify))
  }

  @Test func whatTheProgramDoesNotHoldEnds() async throws {
    let program = try await RestoringCentral.ended(.waiting)
    try await program.start(first: nil, holds: false)
    #expect(program.recorder.lines.all == ["restored peripherals [\"bench connecting\"]"])
    #expect(program.log.all.last?.contains("Keep a reference") == true)
    try program.central.set(.poweredOn)
    await program.queue.drain()
    #expect(try program.central.commands == [])
    #expect(program.folder.files == [])
    // The device can be connected to as any other.
    let peripheral = try await program.discoveredAndHeld()
    program.manager?.connect(peripheral)
    #expect(try program.central.commands.last == .connect(program.peer))
  }

  @Test(arguments: [[AdapterState.poweredOff], [.unsupported, .resetting, .poweredOff], [.unauthorized]])
  func waitsForTheFirstPoweredOn(states: [AdapterState]) async throws {
    let program = try await RestoringCentral.ended(.subscribed)
    let before = program.saved
    for isLast in [false, true] {
      try await program.start(first: nil)
      for state in states { try program.central.set(state) }
      await program.queue.drain()
      let (peripheral, objects) = try program.restored()
      #expect(peripheral.state == .connecting)
      #expect(objects.notifying.isNotifying)
      #expect(try program.central.commands == [])
      // An end in between loses nothing.
      #expect(program.saved == before)
      guard isLast else {
        program.stop()
        continue
      }
      try program.central.set(.poweredOn)
      await program.queue.drain()
      #expect(try program.central.commands == [.connect(program.peer)])
      // From now on the usual rules hold.
      try program.central.set(.poweredOff)
      await program.queue.drain()
      #expect(peripheral.state == .disconnected)
      #expect(peripheral.services == nil)
    }
  }

  @Test(arguments: [AdapterState.poweredOff, .unsupported])
  func whatWasThereWhenBluetoothWentIsSavedUntilItIsBack(state: AdapterState) async throws {
    let program = RestoringCentral()
    try await program.start()
    _ = try await program.connected()
    try program.central.set(state)
    await program.queue.drain()
    #expect(program.folder.files == [RestoringCentral.file])
    try program.central.set(.poweredOn)
    await program.queue.drain()
    #expect(program.folder.files == [])
  }

  @Test func aDelegateWithoutTheMethodDropsTheState() async throws {
    let program = RestoringCentral()
    try await program.start()
    program.manager?.connect(try await program.discovered())
    program.manager?.scanForPeripherals(withServices: nil)
    program.stop()
    let plain = PlainCentralDelegate()
    try await program.start(delegate: plain)
    #expect(plain.lines.all == ["state poweredOn"])
    #expect(program.manager?.isScanning == false)
    #expect(try program.central.commands == [])
    #expect(program.log.all.count { $0.contains("willRestoreState") } == 1)
    #expect(program.folder.files == [])
  }

  @Test func optionsOfTheConnectionHoldOn() async throws {
    let program = RestoringCentral()
    try await program.start()
    _ = try await program.connected(options: [
      CBConnectPeripheralOptionEnableAutoReconnect: true, CBConnectPeripheralOptionStartDelayKey: 0,
    ])
    program.stop()
    let delegate = ReconnectingDelegate()
    try await program.start(delegate: delegate)
    try await program.post(
      .connected(program.peer, name: nil),
      .disconnected(program.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(delegate.restored.count == 1)
    #expect(delegate.lines.all == ["disconnected, reconnecting true"])
    #expect(try program.central.commands.filter { $0 == .connect(program.peer) }.count == 2)
    // Still wanted, so still saved.
    #expect(program.saved?.contains("\"\(CBConnectPeripheralOptionEnableAutoReconnect)\" : 1") == true)
  }

  @Test func aSubscriptionIsDurableBeforeItIsTold() async throws {
    let program = RestoringCentral()
    let seen = Lines()
    try await program.start { [weak program] line in
      guard let program else { return }
      guard line.hasPrefix("notifying") else { return }
      seen.append("\(line): \(program.saved?.contains("\"isNotifying\" : true") ?? false)")
    }
    let (peripheral, objects) = try await program.subscribed()
    peripheral.setNotifyValue(false, for: objects.notifying)
    await program.queue.drain()
    #expect(seen.all == ["notifying true: true", "notifying false: false"])
  }

  /// A lost link is no request to forget, but without another request nothing is left to restore.
  @Test(arguments: [true, false])
  func aLostLinkIsForgottenUnlessAskedForAgain(asksAgain: Bool) async throws {
    let program = RestoringCentral()
    try await program.start()
    let peripheral = try await program.connected()
    program.recorder.react { [weak program] line in
      guard let program else { return }
      if asksAgain, line.hasPrefix("disconnected") { program.manager?.connect(peripheral) }
    }
    try await program.post(.disconnected(program.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(program.folder.files == (asksAgain ? [RestoringCentral.file] : []))
  }

  @Test func everythingGoesWithTheProgramsReferences() async throws {
    let program = try await RestoringCentral.ended(.subscribed)
    weak var manager: CBCentralManager?
    weak var peripheral: CBPeripheral?
    weak var service: CBService?
    try await program.start(first: nil)
    do {
      let (found, objects) = try program.restored()
      manager = program.manager
      peripheral = found
      service = objects.service
    }
    program.stop()
    await program.queue.drain()
    #expect(manager == nil)
    #expect(peripheral == nil)
    #expect(service == nil)
    #expect(program.radio.counts.counts.watches == 0)
  }
}

extension RestoringCentral {
  /// The device's object, found by a recorder that holds it.
  fileprivate func discoveredAndHeld() async throws -> CBPeripheral {
    let holder = CentralRecorder()
    manager?.delegate = holder
    manager?.scanForPeripherals(withServices: nil)
    try await post(
      .discovered(Sighting(peer: peer, advertisement: Advertisement(), rssi: nil, isConnectable: true)))
    return try #require(holder.peripherals.first)
  }
}
