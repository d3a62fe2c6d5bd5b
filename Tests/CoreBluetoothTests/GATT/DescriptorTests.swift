import Radio
import Testing
import VirtualRadio

@testable import CoreBluetooth

/// Descriptors: the types of their values, and which of them are a program's own.
@Suite(.timeLimit(.minutes(30))) struct DescriptorTests {
  @Test(arguments: [
    CBUUIDCharacteristicExtendedPropertiesString, CBUUIDClientCharacteristicConfigurationString,
    CBUUIDServerCharacteristicConfigurationString,
  ])
  func bitsAreNumbers(type: String) {
    let value = CBDescriptor.interpret(Data([0x02, 0x01]), of: CBUUID(string: type))
    #expect(value as? NSNumber == 0x0102)
    #expect(value as? Int == 0x0102)
    // A peer may send anything.
    #expect(CBDescriptor.interpret(Data(), of: CBUUID(string: type)) as? Int == 0)
    #expect(CBDescriptor.interpret(Data([1, 0, 9, 9]), of: CBUUID(string: type)) as? Int == 1)
  }

  @Test(arguments: [
    CBUUIDCharacteristicFormatString, CBUUIDCharacteristicAggregateFormatString,
    CBUUIDCharacteristicValidRangeString, CBUUIDCharacteristicObservationScheduleString,
    "12345678-1234-1234-1234-123456789A01",
  ])
  func othersAreOctets(type: String) {
    #expect(CBDescriptor.interpret(Data([1, 2]), of: CBUUID(string: type)) as? Data == Data([1, 2]))
  }

  @Test func descriptionsAreText() {
    let type = CBUUID(string: CBUUIDCharacteristicUserDescriptionString)
    #expect(CBDescriptor.interpret(Data("né".utf8), of: type) as? String == "né")
    #expect(CBDescriptor.interpret(Data([65, 0xFF]), of: type) as? String == "A\u{FFFD}")
  }

  @Test func areServedBySystemAndProgram() throws {
    let text = CBMutableDescriptor(
      type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString),
      value: String(repeating: "long text ", count: 30))
    let format = Data([4, 0, 0xAD, 0x27, 1, 0, 0])
    let updates = CBMutableCharacteristic("AA02", [.read, .notify])
    updates.descriptors = [
      text, CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicFormatString), value: format),
    ]
    let plain = CBMutableCharacteristic("AA01", .read)
    let rig = GATTRig([CBMutableService("1234", [updates, plain])])
    let peripheral = try rig.explored()
    let (found, bare) = (try rig.find(updates, of: peripheral), try rig.find(plain, of: peripheral))
    peripheral.discoverDescriptors(for: found)
    peripheral.discoverDescriptors(for: bare)
    // The configuration descriptor follows from the properties.
    #expect(try rig.told(2) == [#"descriptors ["2902", "2901", "2904"]"#, "descriptors []"])
    let descriptors = try #require(found.descriptors)
    for descriptor in descriptors { peripheral.readValue(for: descriptor) }
    _ = try rig.told(3)
    #expect(descriptors[0].value as? NSNumber == 0)
    #expect(descriptors[1].value as? String == text.value as? String)
    #expect(descriptors[2].value as? Data == format)
    peripheral.setNotifyValue(true, for: found)
    peripheral.readValue(for: descriptors[0])
    #expect(try rig.told(2) == ["notifying true", "descriptor 1"])
    // Objects stay what they are.
    peripheral.discoverDescriptors(for: found)
    _ = try rig.told(1)
    #expect(zip(descriptors, found.descriptors ?? []).allSatisfy { $0 === $1 })
    #expect(descriptors[1].value as? String == text.value as? String)
    // A peer's descriptors are written by its own leave; the configuration never in this way.
    peripheral.writeValue(Data([1, 0]), for: descriptors[0])
    #expect(rig.phoneLog.take().count == 1)
    peripheral.writeValue(Data("other".utf8), for: descriptors[1])
    #expect(try rig.told(1) == ["wrote descriptor 2901 att error 3"])
    #expect(rig.owner.lines.all == ["subscribed AA02"])
  }

  /// Only these two kinds can be published, with values of their types.
  @Test(arguments: [
    ("2901", "text" as any Sendable, true), ("2904", Data(count: 7), true), ("2901", Data([65]), false),
    ("2904", "text", false), ("2900", NSNumber(value: 1), false), ("2902", NSNumber(value: 1), false),
    ("2905", Data([1]), false), ("12345678-1234-1234-1234-123456789A01", Data([1]), false),
  ])
  func publishesDescriptionAndFormat(type: String, value: any Sendable, isPublished: Bool) async throws {
    let rig = try await PeripheralRig()
    let characteristic = CBMutableCharacteristic("AA01", .read)
    characteristic.descriptors = [CBMutableDescriptor(type: CBUUID(string: type), value: value)]
    rig.manager.add(CBMutableService("1234", [characteristic]))
    await rig.drain()
    #expect(rig.recorder.lines.all == (isPublished ? [] : ["added 1234 error 1"]))
    #expect(rig.peripheral.commands.count == (isPublished ? 1 : 0))
    #expect(rig.log.all.count == (isPublished ? 0 : 1))
  }
}
