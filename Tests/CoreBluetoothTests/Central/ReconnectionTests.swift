import CoreBluetooth
import Locking
import Radio
import Testing
import VirtualRadio

/// Links that are made again by themselves.
@Suite(.timeLimit(.minutes(30))) struct ReconnectionTests {
  private static let option = [CBConnectPeripheralOptionEnableAutoReconnect: true]
  private static let lost = "disconnected, connecting, reconnecting error 6"

  @Test func theSameObjectsGoOnAfterALoss() throws {
    let rig = AirRig()
    let (peripheral, data, updates, fixed) = try rig.explored(options: Self.option)
    let service = try #require(data.service)
    let recorder = ReconnectionRecorder()
    rig.central.delegate = recorder
    recorder.react { line, peripheral in
      if line == Self.lost { #expect(peripheral.services?.first === service) }
    }
    peripheral.setNotifyValue(true, for: updates)
    try rig.run { updates.isNotifying }
    _ = rig.phone.lines.take()
    for round in 1...3 as ClosedRange<UInt8> {
      let before = CFAbsoluteTimeGetCurrent()
      rig.air.setInReach(false, of: rig.deviceRadio)
      try rig.run { recorder.lines.all.count == 2 * Int(round) - 1 }
      #expect(recorder.lines.all.last == Self.lost)
      let time = try #require(recorder.times.last)
      #expect((before - 0.001...CFAbsoluteTimeGetCurrent() + 0.001).contains(time))
      // However long it takes.
      try rig.clock.run(for: .seconds(7200))
      #expect(peripheral.state == .connecting)
      #expect(peripheral.services?.first === service)
      #expect(!updates.isNotifying)

      rig.air.setInReach(true, of: rig.deviceRadio)
      try rig.run { peripheral.state == .connected }
      #expect(recorder.lines.all.last == "connected, connected")
      #expect(peripheral.services?.first === service)
      #expect(service.characteristics?.contains(data) == true)
      #expect(peripheral.delegate === rig.phone)
      peripheral.writeValue(Data([round]), for: data, type: .withResponse)
      peripheral.readValue(for: fixed)
      peripheral.setNotifyValue(true, for: updates)
      try rig.run { rig.phone.lines.all.count == 3 }
      #expect(
        rig.phone.lines.take()
          == ["wrote \(data.uuid)", "value 102,105,120,101,100", "notifying true"])
      #expect(rig.device.received.last == Data([round]))
      // Discovery finds the same objects.
      peripheral.discoverServices(nil)
      try rig.run { rig.phone.lines.all.count == 1 }
      #expect(peripheral.services?.contains(service) == true)
      _ = rig.phone.lines.take()
    }
    #expect(rig.log.all == [])
  }

  /// Programs that were written before there was automatic reconnection connect by themselves.
  @Test func theOlderMethodExcludesIt() throws {
    let rig = AirRig()
    let (peripheral, data, _, _) = try rig.explored(options: Self.option)
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .disconnected }
    #expect(rig.phone.lines.take() == ["disconnected, disconnected link error 6"])
    #expect(peripheral.services == nil)
    rig.air.setInReach(true, of: rig.deviceRadio)
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.all == [])
    #expect(peripheral.state == .disconnected)
    peripheral.readValue(for: data)
    #expect(rig.log.all.count == 1)
  }

  @Test(arguments: [RadioError.Code.supervisionTimeout, .peerTerminated])
  func whoeverEndsTheLinkButThisSide(code: RadioError.Code) async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(code), at: .zero))
    #expect(peripheral.state == .connecting)
    #expect(rig.central.commands.last == .connect(rig.peer))
    await rig.post(.connected(rig.peer, name: "again"))
    #expect(recorder.lines.all.last == "connected, connected")
    #expect(peripheral.name == "again")
  }

  @Test(arguments: [nil, ["other": true], [CBConnectPeripheralOptionEnableAutoReconnect: false]])
  func notWithoutTheOption(options: [String: Bool]?) async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected(options: options)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(recorder.lines.all == ["disconnected, disconnected, for good error 6"])
    #expect(peripheral.services == nil)
    #expect(rig.central.commands.filter { $0 == .connect(rig.peer) }.count == 1)
  }

  /// The call that came last says how a connection is kept.
  @Test func connectingAgainReplacesTheOption() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    rig.manager.connect(peripheral)
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(recorder.lines.all == ["connected, connected", "disconnected, disconnected, for good error 6"])
  }

  @Test func withoutADelegateToo() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected(options: Self.option)
    rig.manager.delegate = nil
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(peripheral.state == .connecting)
    await rig.post(.connected(rig.peer, name: nil))
    #expect(peripheral.state == .connected)
  }

  // MARK: Ends

  @Test func cancellingEndsIt() throws {
    let rig = AirRig()
    let (peripheral, _, _, _) = try rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.central.delegate = recorder
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .connecting }
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.run { peripheral.state == .disconnected }
    rig.air.setInReach(true, of: rig.deviceRadio)
    try rig.clock.run(for: .seconds(60))
    #expect(recorder.lines.all == [Self.lost, "disconnected, disconnected, for good"])
    #expect(peripheral.services == nil)
    #expect(peripheral.state == .disconnected)
    // It was asked for that connection, not for the next one.
    rig.central.connect(peripheral)
    try rig.run { peripheral.state == .connected }
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .disconnected }
    #expect(recorder.lines.all.last == "disconnected, disconnected, for good error 6")
  }

  @Test func cancellingALinkIsNoLoss() throws {
    let rig = AirRig()
    let (peripheral, _, _, _) = try rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.central.delegate = recorder
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.clock.run(for: .seconds(60))
    #expect(recorder.lines.all == ["disconnected, disconnected, for good"])
  }

  @Test func cancellingInTheCallbackEndsIt() throws {
    let rig = AirRig()
    let (peripheral, _, _, _) = try rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.central.delegate = recorder
    recorder.react { [central = rig.central] line, peripheral in
      if line == Self.lost { central.cancelPeripheralConnection(peripheral) }
    }
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .disconnected }
    rig.air.setInReach(true, of: rig.deviceRadio)
    try rig.clock.run(for: .seconds(60))
    #expect(recorder.lines.all == [Self.lost, "disconnected, disconnected, for good"])
  }

  @Test(arguments: [AdapterState.poweredOff, .resetting])
  func powerEndsIt(state: AdapterState) throws {
    let rig = AirRig()
    let (peripheral, _, _, _) = try rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.central.delegate = recorder
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .connecting }
    rig.air.setPower(state, of: rig.phoneRadio)
    try rig.run { peripheral.state == .disconnected }
    #expect(peripheral.services == nil)
    rig.air.setPower(.poweredOn, of: rig.phoneRadio)
    rig.air.setInReach(true, of: rig.deviceRadio)
    try rig.clock.run(for: .seconds(60))
    #expect(recorder.lines.all == [Self.lost, "state \(name(of: state))", "state poweredOn"])
    #expect(peripheral.state == .disconnected)
  }

  @Test func aConnectionThatCannotBeEndsIt() async throws {
    let rig = try await CentralRig()
    let (peripheral, _) = try await rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(peripheral.services?.count == 2)
    await rig.post(.connectionFailed(rig.peer, RadioError(.unknownPeer)))
    #expect(recorder.lines.all == [Self.lost, "failed, disconnected error 12"])
    #expect(peripheral.services == nil)
  }

  @Test func theManagerHoldsThePeripheral() async throws {
    let rig = try await CentralRig(holds: false)
    let recorder = ReconnectionRecorder()
    weak var weakly: CBPeripheral?
    rig.recorder.react(nil)
    do {
      rig.central.setKnown([KnownPeer(id: rig.peer, name: nil)])
      let peripheral = try #require(
        rig.manager.retrievePeripherals(withIdentifiers: [rig.peer.uuid]).first)
      weakly = peripheral
      rig.manager.delegate = recorder
      rig.manager.connect(peripheral, options: Self.option)
      await rig.post(.connected(rig.peer, name: nil))
    }
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(weakly?.state == .connecting)
    #expect(!rig.central.commands.contains(.cancel(rig.peer)))
    recorder.react { [manager = rig.manager] line, peripheral in
      if line.hasPrefix("connected") { manager.cancelPeripheralConnection(peripheral) }
    }
    await rig.post(.connected(rig.peer, name: nil))
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(recorder.lines.all.last == "disconnected, disconnected, for good")
    await rig.drain()
    #expect(weakly == nil)
  }

  // MARK: Between the loss and the program's link

  @Test func nothingIsTakenMeanwhile() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    peripheral.readValue(for: objects.plain)
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    peripheral.readValue(for: objects.plain)
    _ = rig.central.takeCommands()
    await rig.post(.connected(rig.peer, name: nil))
    // The link is there, and what is known is being compared.
    #expect(peripheral.state == .connecting)
    peripheral.readValue(for: objects.plain)
    peripheral.writeValue(Data([1]), for: objects.data, type: .withoutResponse)
    #expect(!peripheral.canSendWriteWithoutResponse)
    await rig.post(.notified(rig.peer, 3, Data([1])), .readyToWrite(rig.peer))
    #expect(rig.central.commands.count == 1)
    #expect(rig.recorder.lines.all == [])
    #expect(rig.log.all.filter { $0.contains("only while it is connected") }.count == 3)
    // Lost once more: the program hears of the first loss only.
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(rig.central.commands.last == .connect(rig.peer))
    #expect(recorder.lines.all == [Self.lost])
    #expect(peripheral.services?.count == 2)
    rig.central.setScript(FakeDatabase.script(rig.peer))
    await rig.post(.connected(rig.peer, name: nil))
    #expect(recorder.lines.all == [Self.lost, "connected, connected"])
    #expect(objects.service.characteristics?.count == 4)
    peripheral.readValue(for: objects.plain)
    await rig.drain()
    #expect(rig.recorder.lines.all == ["value 1,2,3"])
  }

  /// An answer that says only that the link is gone is no word on the database.
  @Test func theEndOfTheLinkChangesNothing() async throws {
    let rig = try await CentralRig()
    let (peripheral, _) = try await rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    await rig.post(.connected(rig.peer, name: nil))
    let check = try #require(rig.takeRequests().last)
    await rig.post(
      .completed(check, rig.peer, .failure(.radio(RadioError(.notConnected)))),
      .disconnected(rig.peer, RadioError(.peerTerminated), at: .zero))
    #expect(recorder.lines.all == [Self.lost])
    #expect(peripheral.services?.count == 2)
    #expect(rig.central.commands.last == .connect(rig.peer))
  }

  @Test func cancellingDuringTheComparison() async throws {
    let rig = try await CentralRig()
    let (peripheral, _) = try await rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    await rig.post(.connected(rig.peer, name: nil))
    let check = try #require(rig.takeRequests().last)
    rig.manager.cancelPeripheralConnection(peripheral)
    await rig.post(
      .completed(check, rig.peer, .failure(.radio(RadioError(.cancelled)))),
      .disconnected(rig.peer, nil, at: .zero))
    #expect(recorder.lines.all == [Self.lost, "disconnected, disconnected, for good"])
    #expect(peripheral.services == nil)
  }

  // MARK: Another database than before

  /// A device that has got new firmware has other attributes under the handles that were known.
  @Test func whatIsNoLongerThereIsTakenOut() throws {
    let rig = AirRig()
    let (peripheral, data, _, _) = try rig.explored(options: Self.option)
    let service = try #require(data.service)
    let recorder = ReconnectionRecorder()
    rig.central.delegate = recorder
    recorder.react { line, peripheral in
      if line.hasPrefix("connected") { #expect(peripheral.services == []) }
    }
    rig.air.setInReach(false, of: rig.deviceRadio)
    try rig.run { peripheral.state == .connecting }
    // Nothing tells that side of the end before its own timeout.
    try rig.clock.run(for: .seconds(60))
    let other = CBMutableService(type: CBUUID(string: "FFA0"), primary: true)
    rig.device.manager.removeAllServices()
    rig.device.manager.add(other)
    rig.air.setInReach(true, of: rig.deviceRadio)
    try rig.run { peripheral.state == .connected && !rig.phone.lines.all.isEmpty }
    #expect(recorder.lines.all == [Self.lost, "connected, connected"])
    #expect(rig.phone.lines.take() == ["modified [\"\(service.uuid)\"]"])
    peripheral.writeValue(Data([1]), for: data, type: .withResponse)
    try rig.clock.run(for: .seconds(60))
    #expect(rig.device.received == [])
    #expect(rig.log.all.contains { $0.contains("does not have that attribute") })
    peripheral.discoverServices(nil)
    try rig.run { peripheral.services?.contains { $0.uuid == other.uuid } == true }
  }

  @Test func changesThatAreToldDuringTheComparison() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored(options: Self.option)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    await rig.post(.connected(rig.peer, name: nil), .servicesChanged(rig.peer, [1...20]))
    #expect(rig.recorder.lines.all == [])
    let check = try #require(rig.takeRequests().last)
    rig.central.setScript(FakeDatabase.script(rig.peer))
    await rig.post(.completed(check, rig.peer, .success(.services([FakeDatabase.other]))))
    #expect(recorder.lines.all.last == "connected, connected")
    #expect(rig.recorder.lines.all == ["modified [\"180D\"]"])
    #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F"])
    #expect(objects.service.peripheral === peripheral)
  }

  private func name(of state: AdapterState) -> String {
    state == .poweredOff ? "poweredOff" : "resetting"
  }
}
