import CoreBluetooth
import Radio
import Testing
import VirtualRadio

/// Services of a device: which are found, and what happens when they change under a link.
@Suite(.timeLimit(.minutes(30))) struct ServiceChangeTests {
  private static let answer: GATTRig.Answer = { device, requests in
    if requests[0].value == nil { requests[0].value = Data([1]) }
    device.respond(to: requests[0], withResult: .success)
  }

  @Test func findsIncludedServices() throws {
    let level = CBMutableCharacteristic("2A19", .read)
    let battery = CBMutableService(type: CBUUID(string: "180F"), primary: false)
    battery.characteristics = [level]
    let plain = CBMutableService("180A", [CBMutableCharacteristic("2A29", .read)])
    let main = CBMutableService("1234", [CBMutableCharacteristic("AA01", .read)])
    main.includedServices = [battery, plain]
    let rig = GATTRig([battery, plain, main], answer: Self.answer)
    let peripheral = try rig.explored()
    // Secondary services, and those of the system, are not among them.
    let services = try #require(peripheral.services)
    #expect(services.map(\.uuid.uuidString) == ["180A", "1234"])
    #expect(services.allSatisfy { $0.isPrimary })
    #expect(services[1].includedServices == nil)
    peripheral.discoverIncludedServices([CBUUID(string: "180F")], for: services[1])
    peripheral.discoverIncludedServices(nil, for: services[1])
    peripheral.discoverIncludedServices(nil, for: services[0])
    #expect(
      try rig.told(3) == [#"included ["180F"]"#, #"included ["180F", "180A"]"#, "included []"])
    let included = try #require(services[1].includedServices)
    #expect(!included[0].isPrimary)
    #expect(included[1] === services[0])
    peripheral.discoverCharacteristics(nil, for: included[0])
    #expect(try rig.told(1) == [#"characteristics ["2A19"]"#])
    peripheral.readValue(for: try #require(included[0].characteristics?.first))
    #expect(try rig.told(1) == ["value 1"])
    #expect(peripheral.services?.count == 2)
  }

  @Test(arguments: QueueKind.allCases)
  func aServiceIsRemovedUnderALink(kind: QueueKind) throws {
    let gone = CBMutableCharacteristic("AA01", [.read, .writeWithoutResponse, .notify])
    let kept = CBMutableCharacteristic("BB01", .read)
    let service = CBMutableService("1234", [gone])
    let rig = GATTRig([service, CBMutableService("4321", [kept])], kind, answer: Self.answer)
    let peripheral = try rig.explored()
    let (old, other) = (try rig.find(gone, of: peripheral), try rig.find(kept, of: peripheral))
    peripheral.setNotifyValue(true, for: old)
    #expect(try rig.told(1) == ["notifying true"])
    // Let the phone learn what it wants for itself, Service Changed among it.
    try rig.clock.run(for: .seconds(5))
    _ = rig.phone.lines.take()
    let objects = try #require(peripheral.services)
    rig.device.remove(service)
    #expect(gone.subscribedCentrals == [])
    #expect(try rig.told(1) == [#"modified ["1234"]"#])
    #expect(peripheral.services == [objects[1]])
    #expect(!old.isNotifying)
    // The objects that are gone are good for nothing; a line in the log says so, and no request is made.
    peripheral.readValue(for: old)
    peripheral.writeValue(Data([1]), for: old, type: .withoutResponse)
    peripheral.discoverCharacteristics(nil, for: objects[0])
    #expect(rig.phoneLog.take().count == 3)
    #expect(!rig.device.updateValue(Data([1]), for: gone, onSubscribedCentrals: nil))
    peripheral.readValue(for: other)
    #expect(try rig.told(1) == ["value 1"])
    // It comes back under other handles, as other objects.
    rig.device.add(service)
    #expect(try rig.told(1) == ["modified []"])
    peripheral.discoverServices(nil)
    #expect(try rig.told(1).count == 1)
    let again = try #require(peripheral.services?.first { $0.uuid == service.uuid })
    #expect(again !== objects[0])
    #expect(peripheral.services?.contains { $0 === objects[1] } == true)
    peripheral.discoverCharacteristics(nil, for: again)
    _ = try rig.told(1)
    peripheral.readValue(for: try #require(again.characteristics?.first))
    #expect(try rig.told(1) == ["value 1"])
    #expect(rig.phone.watch.isClean)
  }

  /// A request that waits for a program which withdraws the service is answered for it.
  @Test(arguments: [true, false])
  func aServiceIsRemovedUnderARequest(removesAll: Bool) throws {
    let characteristic = CBMutableCharacteristic("AA01", [.read, .write])
    let service = CBMutableService("1234", [characteristic])
    let rig = GATTRig([service])
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    try rig.clock.run(for: .seconds(5))
    _ = rig.phone.lines.take()
    peripheral.readValue(for: found)
    try rig.run { !rig.owner.requests.isEmpty }
    if removesAll { rig.device.removeAllServices() } else { rig.device.remove(service) }
    #expect(try rig.told(2).sorted() == [#"modified ["1234"]"#, "value nil att error 1"])
    let late = try #require(rig.owner.requests.first)
    rig.device.respond(to: late, withResult: .success)
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.all == [])
    #expect(peripheral.state == .connected)
    #expect(peripheral.services == [])
  }

  @Test func objectsStayTheSameOverRepeatedDiscovery() throws {
    let characteristic = CBMutableCharacteristic("AA01", [.read, .notify])
    let rig = GATTRig([CBMutableService("1234", [characteristic])], answer: Self.answer)
    let peripheral = try rig.explored()
    let (service, found) = (
      try #require(peripheral.services?.first), try rig.find(characteristic, of: peripheral)
    )
    peripheral.readValue(for: found)
    peripheral.setNotifyValue(true, for: found)
    _ = try rig.told(2)
    peripheral.discoverServices([CBUUID(string: "1234")])
    peripheral.discoverServices(nil)
    peripheral.discoverCharacteristics([CBUUID(string: "AA01")], for: service)
    peripheral.discoverCharacteristics(nil, for: service)
    _ = try rig.told(4)
    #expect(peripheral.services?.count == 1)
    #expect(peripheral.services?.first === service)
    #expect(service.characteristics?.count == 1)
    #expect(service.characteristics?.first === found)
    #expect(found.value == Data([1]))
    #expect(found.isNotifying)
    #expect(found.service === service)
    #expect(service.peripheral === peripheral)
    // Services of which there are none: no error, and nothing is added.
    peripheral.discoverServices([CBUUID(string: "FFFF")])
    #expect(try rig.told(1) == [#"services ["1234"]"#])
  }
}
