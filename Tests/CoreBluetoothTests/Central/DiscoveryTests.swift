import CoreBluetooth
import Radio
import Testing

@Suite(.timeLimit(.minutes(30))) struct DiscoveryTests {
  @Test(arguments: QueueKind.allCases)
  func answersInTheOrderOfTheRequests(kind: QueueKind) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored()
    rig.central.setScript(FakeDatabase.script(rig.peer))
    peripheral.readRSSI()
    peripheral.discoverIncludedServices([CBUUID(string: "180F")], for: objects.service)
    peripheral.discoverDescriptors(for: objects.notifying)
    peripheral.readValue(for: objects.plain)
    peripheral.writeValue(Data([9]), for: objects.data, type: .withResponse)
    peripheral.setNotifyValue(true, for: objects.notifying)
    peripheral.setNotifyValue(false, for: objects.notifying)
    await rig.drain()
    #expect(
      rig.recorder.lines.all == [
        "rssi -55", #"included ["180F"]"#, #"descriptors ["2902", "2901"]"#, "value 1,2,3", "wrote 2A39",
        "notifying true", "notifying false",
      ])
    #expect(rig.recorder.watch.isClean)
  }

  @Test func keepsObjectsOverRepeatedDiscovery() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.central.setScript(FakeDatabase.script(rig.peer))
    let services = try #require(peripheral.services)
    peripheral.discoverServices([CBUUID(string: "180F")])
    peripheral.discoverServices(nil)
    peripheral.discoverCharacteristics(nil, for: objects.service)
    peripheral.discoverCharacteristics([CBUUID(string: "2A19")], for: objects.service)
    peripheral.discoverIncludedServices(nil, for: objects.service)
    peripheral.discoverDescriptors(for: objects.notifying)
    await rig.drain()
    let descriptors = try #require(objects.notifying.descriptors)
    peripheral.discoverDescriptors(for: objects.notifying)
    await rig.drain()
    let again = try #require(peripheral.services)
    #expect(again.count == services.count)
    #expect(zip(again, services).allSatisfy { $0 === $1 })
    #expect(objects.service.characteristics?.count == 4)
    #expect(objects.service.characteristics?.contains { $0 === objects.plain } == true)
    #expect(objects.service.includedServices?.first === services.last)
    #expect(zip(objects.notifying.descriptors ?? [], descriptors).allSatisfy { $0 === $1 })
    #expect(objects.plain.service === objects.service)
    #expect(objects.service.peripheral === peripheral)
    #expect(descriptors.first?.characteristic === objects.notifying)
    #expect(objects.service.isPrimary)
    #expect(objects.data.properties == [.write, .writeWithoutResponse])
  }

  @Test func addsToWhatWasDiscovered() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected()
    rig.central.setScript(FakeDatabase.script(rig.peer))
    #expect(peripheral.services == nil)
    peripheral.discoverServices([CBUUID(string: "FFFF")])
    await rig.drain()
    #expect(peripheral.services == [])
    peripheral.discoverServices([CBUUID(string: "180F")])
    peripheral.discoverServices([CBUUID(string: "180D")])
    await rig.drain()
    #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F", "180D"])
    let service = try #require(peripheral.services?.last)
    #expect(service.characteristics == nil)
    #expect(rig.recorder.lines.all.suffix(3).first == "services []")
  }

  @Test func twoServicesOfOneTypeAreTwo() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected()
    let twin = RemoteService(handles: 50...60, uuid: FakeDatabase.service.uuid, isPrimary: true)
    peripheral.discoverServices(nil)
    let request = try #require(rig.takeRequests().last)
    await rig.post(.completed(request, rig.peer, .success(.services([FakeDatabase.service, twin]))))
    let services = try #require(peripheral.services)
    #expect(services.count == 2)
    peripheral.discoverCharacteristics(nil, for: services[1])
    #expect(
      rig.central.commands.last.map { command in
        if case .request(.discoverCharacteristics(of: twin, nil), _) = command { true } else { false }
      } == true)
  }

  @Test func changedServicesAreTakenOut() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    let other = try #require(peripheral.services?.last)
    await rig.post(.servicesChanged(rig.peer, [5...25]))
    #expect(rig.recorder.lines.take() == [#"modified ["180D"]"#])
    #expect(peripheral.services == [other])
    peripheral.readValue(for: objects.plain)
    peripheral.writeValue(Data(), for: objects.data, type: .withoutResponse)
    await rig.post(.notified(rig.peer, 7, Data([1])))
    #expect(rig.central.commands == [])
    #expect(rig.log.all.filter { $0.contains("does not have that attribute") }.count == 2)
    // What lies elsewhere goes on.
    peripheral.discoverCharacteristics(nil, for: other)
    #expect(rig.central.commands.count == 1)
  }

  @Test func attributesOfAnEarlierLinkAreVoid() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    await rig.post(.disconnected(rig.peer, RadioError(.peerTerminated), at: .zero))
    rig.manager.connect(peripheral)
    await rig.post(.connected(rig.peer, name: nil))
    _ = rig.central.takeCommands()
    peripheral.readValue(for: objects.plain)
    peripheral.writeValue(Data(), for: objects.data, type: .withoutResponse)
    peripheral.discoverCharacteristics(nil, for: objects.service)
    await rig.post(.notified(rig.peer, 3, Data([1])))
    #expect(rig.central.commands == [])
    #expect(rig.recorder.lines.all.last == "connected, connected")
    #expect(peripheral.services == nil)
  }

  @Test func dropsCommandsWithoutALink() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.manager.cancelPeripheralConnection(peripheral)
    _ = rig.central.takeCommands()
    for _ in 0..<2 {
      peripheral.readRSSI()
      peripheral.discoverServices(nil)
      peripheral.discoverCharacteristics(nil, for: objects.service)
      peripheral.discoverIncludedServices(nil, for: objects.service)
      peripheral.discoverDescriptors(for: objects.plain)
      peripheral.readValue(for: objects.plain)
      peripheral.writeValue(Data(), for: objects.data, type: .withResponse)
      peripheral.writeValue(Data(), for: objects.data, type: .withoutResponse)
      peripheral.setNotifyValue(true, for: objects.notifying)
      peripheral.openL2CAPChannel(0x80)
      #expect(!peripheral.canSendWriteWithoutResponse)
      await rig.post(.disconnected(rig.peer, nil, at: .zero))
    }
    #expect(rig.central.commands == [])
    #expect(rig.log.all.filter { $0.contains("only while it is connected") }.count == 20)
    #expect(rig.recorder.lines.all == ["disconnected, disconnected"])
  }

  @Test func tellsFailuresWithTheirCode() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    peripheral.discoverServices(nil)
    peripheral.readValue(for: objects.plain)
    peripheral.setNotifyValue(true, for: objects.notifying)
    peripheral.openL2CAPChannel(0x25)
    peripheral.readRSSI()
    let requests = rig.takeRequests()
    try #require(requests.count == 5)
    await rig.post(
      .completed(requests[0], rig.peer, .failure(.radio(RadioError(.notSupported)))),
      .completed(requests[1], rig.peer, .failure(.att(ATTErrorCode(rawValue: 0x80)))),
      .completed(requests[2], rig.peer, .failure(.att(.insufficientEncryption))),
      .completed(requests[3], rig.peer, .failure(.radio(RadioError(.psmNotSupported)))),
      .completed(requests[4], rig.peer, .failure(.radio(RadioError(.other)))),
      // An answer too many.
      .completed(requests[4], rig.peer, .success(.rssi(1))))
    #expect(
      rig.recorder.lines.all == [
        #"services ["180D", "180F"] link error 13"#, "value nil att error 128",
        "notifying false att error 15",
        "channel nil link error 13", "rssi 127 link error 0",
      ])
  }

  @Test func readsDescriptorsInTheirTypes() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.central.setScript(FakeDatabase.script(rig.peer))
    peripheral.discoverDescriptors(for: objects.notifying)
    await rig.drain()
    let (configuration, text) = try #require(
      objects.notifying.descriptors.flatMap { $0.count == 2 ? ($0[0], $0[1]) : nil })
    rig.central.setScript(nil)
    _ = rig.central.takeCommands()
    peripheral.readValue(for: configuration)
    peripheral.readValue(for: text)
    peripheral.writeValue(Data([1, 0]), for: configuration)
    peripheral.writeValue(Data(count: 513), for: text)
    peripheral.writeValue(Data([65]), for: text)
    let requests = rig.takeRequests()
    try #require(requests.count == 3)
    _ = rig.recorder.lines.take()
    await rig.post(
      .completed(requests[0], rig.peer, .success(.value(Data([1, 2])))),
      .completed(requests[1], rig.peer, .success(.value(Data("né".utf8)))),
      .completed(requests[2], rig.peer, .success(.done)))
    #expect(
      rig.recorder.lines.all == [
        "descriptor 513", "descriptor né", "wrote descriptor 2901 att error 13", "wrote descriptor 2901",
      ])
    #expect(configuration.value as? NSNumber == 0x0201)
    #expect(text.value as? String == "né")
    #expect(rig.log.all.contains { $0.contains("setNotifyValue") })
  }

  @Test func followsTheName() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected()
    #expect(peripheral.name == "bench")
    await rig.post(.nameChanged(rig.peer, "device"), .nameChanged(rig.peer, "device"))
    #expect(rig.recorder.lines.all.suffix(2) == ["connected, connected", "name device"])
    rig.manager.scanForPeripherals(withServices: nil)
    await rig.post(rig.sighting("advertised"))
    #expect(peripheral.name == "device")
    #expect(peripheral.description.contains("device"))
  }
}
