import CoreBluetooth
import Radio
import Testing

/// What a peripheral manager publishes, and what it refuses to.
@Suite(.timeLimit(.minutes(30))) struct PublishingTests {
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
}
