import CoreBluetooth
import Radio
import Testing
import VirtualRadio

/// One answer for each request, in the order of the requests, whatever the device does with them.
@Suite(.timeLimit(.minutes(30))) struct ResponseTests {
  /// A characteristic and the device that serves it.
  private static func rig(_ kind: QueueKind = .serial, answer: GATTRig.Answer? = nil) throws -> (
    GATTRig, CBPeripheral, CBCharacteristic
  ) {
    let characteristic = CBMutableCharacteristic("AA01", [.read, .write, .writeWithoutResponse, .notify])
    let rig = GATTRig([CBMutableService("1234", [characteristic])], kind, answer: answer)
    let peripheral = try rig.explored()
    return (rig, peripheral, try rig.find(characteristic, of: peripheral))
  }

  /// Two writes to one characteristic: answers belong to requests by their order, not by what they were written to.
  @Test(arguments: QueueKind.allCases)
  func twoWritesHaveTwoAnswers(kind: QueueKind) throws {
    let (rig, peripheral, found) = try Self.rig(kind) { device, requests in
      device.respond(
        to: requests[0], withResult: requests[0].value == Data([1]) ? .success : .writeNotPermitted)
    }
    for octet in [1, 2, 1, 1, 2] as [UInt8] {
      peripheral.writeValue(Data([octet]), for: found, type: .withResponse)
    }
    let (good, bad) = ("wrote AA01", "wrote AA01 att error 3")
    #expect(try rig.told(5) == [good, bad, good, good, bad])
    #expect(rig.owner.lines.all.count == 5)
    #expect(rig.phone.watch.isClean)
  }

  @Test(arguments: QueueKind.allCases)
  func answersComeInTheOrderOfTheRequests(kind: QueueKind) throws {
    let (rig, peripheral, found) = try Self.rig(kind) { device, requests in
      if requests[0].value == nil { requests[0].value = Data([5]) }
      device.respond(to: requests[0], withResult: .success)
    }
    peripheral.writeValue(Data(count: 400), for: found, type: .withResponse)
    peripheral.readValue(for: found)
    peripheral.writeValue(Data(count: 600), for: found, type: .withResponse)
    peripheral.discoverDescriptors(for: found)
    peripheral.setNotifyValue(true, for: found)
    peripheral.readRSSI()
    peripheral.setNotifyValue(false, for: found)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    #expect(
      try rig.told(8) == [
        "wrote AA01", "value 5", "wrote AA01 att error 13", #"descriptors ["2902"]"#, "notifying true",
        "rssi -50", "notifying false", "wrote AA01",
      ])
    #expect(rig.phone.watch.isClean)
  }

  @Test func theFirstResponseCounts() throws {
    let (rig, peripheral, found) = try Self.rig { device, requests in
      requests[0].value = Data([1])
      device.respond(to: requests[0], withResult: .success)
      requests[0].value = Data([2])
      device.respond(to: requests[0], withResult: .readNotPermitted)
    }
    peripheral.readValue(for: found)
    #expect(try rig.told(1) == ["value 1"])
    #expect(rig.deviceLog.all.count == 1)
    #expect(rig.deviceLog.all.first?.contains("second response") == true)
    // The late one did not answer the next request either.
    peripheral.readValue(for: found)
    #expect(try rig.told(1) == ["value 1"])
  }

  /// A device that keeps a request to itself loses the link: no later request could be told from the old one.
  @Test(arguments: [true, false])
  func silenceEndsTheLinkAfterThirtySeconds(isWrite: Bool) throws {
    let (rig, peripheral, found) = try Self.rig()
    peripheral.setNotifyValue(true, for: found)
    #expect(try rig.told(1) == ["notifying true"])
    let start = rig.clock.now
    if isWrite {
      peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    } else {
      peripheral.readValue(for: found)
    }
    peripheral.readRSSI()
    try rig.run { !rig.owner.requests.isEmpty }
    try rig.clock.run(for: .seconds(29))
    #expect(peripheral.state == .connected)
    #expect(rig.phone.lines.all == [])
    try rig.run { peripheral.state == .disconnected }
    #expect(rig.clock.now - start < .seconds(32))
    // The end of the link is all that is told.
    #expect(rig.phone.lines.take() == ["disconnected, disconnected link error 6"])
    try rig.run { rig.owner.lines.all.last == "unsubscribed AA01" }
    // An answer that comes now finds nobody, on the next link either.
    let late = try #require(rig.owner.requests.first)
    rig.owner.letGoOfRequests()
    rig.central.connect(peripheral)
    try rig.run { peripheral.state == .connected }
    rig.device.respond(to: late, withResult: .success)
    try rig.clock.run(for: .seconds(5))
    #expect(rig.phone.lines.all == ["connected, connected"])
  }

  /// The end of the link is all that is told of what was pending, whoever ends it; and the next link works.
  @Test(arguments: QueueKind.allCases, [true, false])
  func whatIsPendingEndsWithTheLink(kind: QueueKind, isLost: Bool) throws {
    let (rig, peripheral, found) = try Self.rig(kind)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    peripheral.readValue(for: found)
    peripheral.setNotifyValue(true, for: found)
    peripheral.discoverServices(nil)
    try rig.run { !rig.owner.requests.isEmpty }
    if isLost {
      rig.air.setInReach(false, of: rig.deviceRadio)
    } else {
      rig.central.cancelPeripheralConnection(peripheral)
    }
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.take() == ["disconnected, disconnected" + (isLost ? " link error 6" : "")])
    rig.air.setInReach(true, of: rig.deviceRadio)
    rig.central.connect(peripheral)
    try rig.run { peripheral.state == .connected }
    peripheral.discoverServices(nil)
    #expect(try rig.told(2) == ["connected, connected", #"services ["1234"]"#])
  }

  /// Other than a request that is held, one that is released cannot be answered any more: it is refused at once.
  @Test func requestsThatAreReleasedAreRefused() throws {
    let (rig, peripheral, found) = try Self.rig { _, _ in }
    peripheral.readValue(for: found)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    peripheral.writeValue(Data([1]), for: found, type: .withoutResponse)
    #expect(try rig.told(2) == ["value nil att error 14", "wrote AA01 att error 14"])
    #expect(rig.deviceLog.all.count == 2)
    #expect(rig.clock.now < .seconds(30))
  }

  @Test(arguments: [0x01, 0x0E, 0x12, 0x80, 0x9F, 0xE0, 0xFF])
  func errorsKeepTheirNumber(number: Int) throws {
    let code = try #require(CBATTError.Code(rawValue: number))
    let errors = Shared<[String]>([])
    let (rig, peripheral, found) = try Self.rig { device, requests in
      device.respond(to: requests[0], withResult: code)
    }
    let listener = ErrorListener(errors)
    peripheral.delegate = listener
    peripheral.readValue(for: found)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    peripheral.writeValue(Data(count: 300), for: found, type: .withResponse)
    try rig.run { errors.value.count == 3 }
    #expect(errors.value == Array(repeating: "\(CBATTErrorDomain) \(number)", count: 3))
  }

  private final class ErrorListener: NSObject, CBPeripheralDelegate {
    private let errors: Shared<[String]>
    init(_ errors: Shared<[String]>) { self.errors = errors }

    private func note(_ error: (any Error)?) {
      guard let error = error as? CBATTError else { return }
      errors.withLock { $0.append("\(CBATTError.errorDomain) \(error.errorCode)") }
    }

    func peripheral(
      _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) { note(error) }

    func peripheral(
      _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) { note(error) }
  }

  /// What a device does with a command that makes it start anew.
  enum Reset: CaseIterable, Sendable {
    case answersThenLeaves, leaves, answersAndStays
  }

  /// A write that makes the device restart: answered or not, there is one end of the link, and nothing after it.
  @Test(arguments: QueueKind.allCases, Reset.allCases)
  func theLinkMayEndBeforeTheAnswer(kind: QueueKind, reset: Reset) throws {
    let (rig, peripheral, found) = try Self.rig(kind)
    peripheral.writeValue(Data([1]), for: found, type: .withResponse)
    try rig.run { !rig.owner.requests.isEmpty }
    let request = try #require(rig.owner.requests.first)
    if reset != .leaves {
      rig.device.respond(to: request, withResult: .success)
      try rig.run { !rig.phone.lines.all.isEmpty }
    }
    if reset == .answersAndStays {
      try rig.clock.run(for: .seconds(10))
      #expect(peripheral.state == .connected)
      rig.central.cancelPeripheralConnection(peripheral)
    } else {
      rig.air.setPower(.poweredOff, of: rig.deviceRadio)
    }
    try rig.run { peripheral.state == .disconnected }
    rig.device.respond(to: request, withResult: .success)
    try rig.clock.run(for: .seconds(60))
    let expected: [String] =
      switch reset {
      case .answersThenLeaves: ["wrote AA01", "disconnected, disconnected link error 7"]
      case .leaves: ["disconnected, disconnected link error 7"]
      case .answersAndStays: ["wrote AA01", "disconnected, disconnected"]
      }
    #expect(rig.phone.lines.all == expected)
    #expect(peripheral.services == nil)
    #expect(rig.phone.watch.isClean)
  }
}
