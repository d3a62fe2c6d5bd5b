import CoreBluetooth
import Radio
import Testing
import VirtualRadio

/// Values of any length, whole and at every offset, over a simulated link.
@Suite(.timeLimit(.minutes(30))) struct LongValueTests {
  private static func pattern(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
  }

  /// Serves one value from each offset, and takes writes into it at theirs.
  private static func memory(_ value: Shared<Data>) -> GATTRig.Answer {
    { device, requests in
      guard let first = requests.first else { return }
      let result = value.withLock { value -> CBATTError.Code in
        for request in requests {
          guard request.offset <= value.count else { return .invalidOffset }
          if let octets = request.value {
            value = value.prefix(request.offset) + octets
          } else {
            request.value = Data(value.dropFirst(request.offset))
          }
        }
        return .success
      }
      device.respond(to: first, withResult: result)
    }
  }

  @Test(arguments: [23, 64, 185, 517], [0, 1, 21, 22, 23, 44, 100, 512])
  func readsOnFromEachOffset(mtu: Int, count: Int) throws {
    let value = Shared(Self.pattern(count))
    let characteristic = CBMutableCharacteristic("AA01", .read)
    let rig = GATTRig(
      [CBMutableService("1234", [characteristic])], link: LinkParameters(attMTU: mtu),
      answer: Self.memory(value))
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.readValue(for: found)
    #expect(try rig.told(1).count == 1)
    #expect(found.value == Self.pattern(count))
    // Read Blob goes on while packets come full, up to the longest value that there is.
    let packets = count == 512 ? (511 + mtu - 1) / (mtu - 1) : count / (mtu - 1) + 1
    #expect(rig.owner.lines.all == (0..<packets).map { "read AA01 from \($0 * (mtu - 1))" })
  }

  @Test func tellsAnInvalidOffsetAndKeepsTheOldValue() throws {
    let isRefusing = Shared(false)
    let characteristic = CBMutableCharacteristic("AA01", .read)
    let rig = GATTRig([CBMutableService("1234", [characteristic])]) { device, requests in
      requests[0].value = Data([7])
      device.respond(
        to: requests[0], withResult: isRefusing.value ? .invalidOffset : .success)
    }
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.readValue(for: found)
    #expect(try rig.told(1) == ["value 7"])
    isRefusing.value = true
    peripheral.readValue(for: found)
    #expect(try rig.told(1) == ["value 7 att error 7"])
  }

  @Test func servesFixedValuesWithoutTheProgram() throws {
    let fixed = CBMutableCharacteristic(
      type: CBUUID(string: "AA02"), properties: .read, value: Self.pattern(300), permissions: .readable)
    let rig = GATTRig([CBMutableService("1234", [fixed])], link: LinkParameters(attMTU: 23))
    let peripheral = try rig.explored()
    let found = try rig.find(fixed, of: peripheral)
    // What was published is what counts.
    fixed.value = Data("later".utf8)
    fixed.permissions = []
    peripheral.readValue(for: found)
    _ = try rig.told(1)
    #expect(found.value == Self.pattern(300))
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    #expect(try rig.told(1) == ["wrote AA02 att error 3"])
    #expect(rig.owner.lines.all == [])
  }

  /// A value that exceeds one packet is prepared in parts and executed at once: one batch, in the order of the offsets.
  @Test(arguments: [(20, [20]), (21, [18, 3]), (36, [18, 18]), (100, [18, 18, 18, 18, 18, 10])])
  func writesLongValuesAsOneBatch(count: Int, parts: [Int]) throws {
    let value = Shared(Data())
    let characteristic = CBMutableCharacteristic("AA01", .write)
    let rig = GATTRig(
      [CBMutableService("1234", [characteristic])], link: LinkParameters(attMTU: 23),
      answer: Self.memory(value))
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.writeValue(Self.pattern(count), for: found, type: .withResponse)
    #expect(try rig.told(1) == ["wrote AA01"])
    var offset = 0
    let expected = parts.map { part -> String in
      defer { offset += part }
      return "AA01+\(offset):\(part)"
    }
    #expect(rig.owner.lines.all == ["write " + expected.joined(separator: " ")])
    #expect(value.value == Self.pattern(count))
    // A write changes nothing of what was read.
    #expect(found.value == nil)
  }

  @Test func theLongestWriteFitsAndOneOctetMoreDoesNot() throws {
    let value = Shared(Data())
    let characteristic = CBMutableCharacteristic("AA01", [.read, .write])
    let rig = GATTRig(
      [CBMutableService("1234", [characteristic])], link: LinkParameters(attMTU: 23),
      answer: Self.memory(value))
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.writeValue(Self.pattern(512), for: found, type: .withResponse)
    peripheral.writeValue(Self.pattern(513), for: found, type: .withResponse)
    peripheral.readValue(for: found)
    let lines = try rig.told(3)
    #expect(lines.prefix(2) == ["wrote AA01", "wrote AA01 att error 13"])
    #expect(lines.count == 3)
    #expect(found.value == Self.pattern(512))
  }

  @Test func aRefusedBatchFailsAsAWhole() throws {
    let characteristic = CBMutableCharacteristic("AA01", .write)
    let rig = GATTRig(
      [CBMutableService("1234", [characteristic])], link: LinkParameters(attMTU: 23)
    ) { device, requests in
      // The one that cannot be taken stands for all.
      device.respond(to: requests[requests.count - 1], withResult: .insufficientResources)
    }
    let peripheral = try rig.explored()
    let found = try rig.find(characteristic, of: peripheral)
    peripheral.writeValue(Self.pattern(60), for: found, type: .withResponse)
    #expect(try rig.told(1) == ["wrote AA01 att error 17"])
    #expect(rig.owner.lines.all.count == 1)
    #expect(rig.deviceLog.all == [])
  }
}
