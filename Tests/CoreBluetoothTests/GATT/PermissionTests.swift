import CoreBluetooth
import Radio
import Testing
import VirtualRadio

/// What the system refuses by itself, on either side of a link.
@Suite(.timeLimit(.minutes(30))) struct PermissionTests {
  private static let answer: GATTRig.Answer = { device, requests in
    if requests[0].value == nil { requests[0].value = Data([1]) }
    device.respond(to: requests[0], withResult: .success)
  }

  @Test func withoutPermissionNobodyIsAsked() throws {
    let characteristic = CBMutableCharacteristic(
      "AA01", [.read, .write, .writeWithoutResponse], permissions: [])
    let rig = GATTRig([CBMutableService("1234", [characteristic])], answer: Self.answer)
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.writeValue(Data([1]), for: found, type: .withoutResponse)
    peripheral.readValue(for: found)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    peripheral.writeValue(Data(count: 400), for: found, type: .withResponse)
    #expect(
      try rig.told(3) == ["value nil att error 2", "wrote AA01 att error 3", "wrote AA01 att error 3"])
    #expect(rig.owner.lines.all == [])
    #expect(peripheral.state == .connected)
  }

  @Test(arguments: [true, false])
  func encryptionIsRequired(isEncrypted: Bool) throws {
    let characteristic = CBMutableCharacteristic(
      "AA01", [.read, .write, .notifyEncryptionRequired],
      permissions: [.readEncryptionRequired, .writeEncryptionRequired])
    let indicating = CBMutableCharacteristic("AA02", .indicateEncryptionRequired)
    let rig = GATTRig(
      [CBMutableService("1234", [characteristic, indicating])],
      link: LinkParameters(attMTU: 185, isEncrypted: isEncrypted), answer: Self.answer)
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    let indicated = try rig.find(indicating, of: peripheral)
    // What is local of the properties does not go on the air.
    #expect(found.properties == [.read, .write, .notify])
    #expect(indicated.properties == .indicate)
    peripheral.readValue(for: found)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    peripheral.setNotifyValue(true, for: found)
    peripheral.setNotifyValue(true, for: indicated)
    let refused = [
      "value nil att error 15", "wrote AA01 att error 15", "notifying false att error 15",
      "notifying false att error 15",
    ]
    let taken = ["value 1", "wrote AA01", "notifying true", "notifying true"]
    #expect(try rig.told(4) == (isEncrypted ? taken : refused))
    #expect(rig.owner.lines.all.count == (isEncrypted ? 4 : 0))
    #expect(found.isNotifying == isEncrypted)
    #expect(characteristic.subscribedCentrals?.count == (isEncrypted ? 1 : 0))
  }

  /// What a characteristic cannot do is not asked for, where the system can know, and costs one line in the log.
  @Test func missingPropertiesAreIgnoredWithAWarning() throws {
    let characteristic = CBMutableCharacteristic("AA01", [.read, .write])
    let rig = GATTRig([CBMutableService("1234", [characteristic])], answer: Self.answer)
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.writeValue(Data([1]), for: found, type: .withoutResponse)
    #expect(rig.phoneLog.take().count == 1)
    peripheral.setNotifyValue(true, for: found)
    #expect(try rig.told(1) == ["notifying false att error 6"])
    peripheral.readValue(for: found)
    #expect(try rig.told(1) == ["value 1"])
    #expect(rig.owner.lines.all == ["read AA01 from 0"])
  }

  /// Without a link each command is dropped with one line, and nothing is told.
  @Test func commandsWithoutALinkAreDropped() throws {
    let characteristic = CBMutableCharacteristic("AA01", [.read, .write, .writeWithoutResponse, .notify])
    let rig = GATTRig([CBMutableService("1234", [characteristic])], answer: Self.answer)
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    rig.central.cancelPeripheralConnection(peripheral)
    #expect(try rig.told(1) == ["disconnected, disconnected"])
    let commands: [() -> Void] = [
      { peripheral.readRSSI() }, { peripheral.discoverServices(nil) },
      { peripheral.readValue(for: found) }, { peripheral.setNotifyValue(true, for: found) },
      { peripheral.writeValue(Data([1]), for: found, type: .withResponse) },
      { peripheral.writeValue(Data([1]), for: found, type: .withoutResponse) },
      { peripheral.openL2CAPChannel(0x80) },
    ]
    for command in commands {
      command()
      let lines = rig.phoneLog.take()
      #expect(lines.count == 1)
      #expect(lines.first?.contains("API MISUSE") == true)
    }
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.all == [])
    #expect(rig.owner.lines.all == [])
  }
}
