import CoreBluetooth
import Radio
import Testing
import VirtualRadio

/// Values that a device pushes, over a simulated link.
@Suite(.timeLimit(.minutes(30))) struct NotificationTests {
  private static func number(_ value: Data?) -> Int? {
    value.flatMap { $0.count >= 2 ? Int($0[$0.startIndex]) | Int($0[$0.startIndex + 1]) << 8 : nil }
  }

  /// Sends numbers as long as there is room, and goes on when there is room again.
  private final class Counter: Sendable {
    private let next = Shared(0)
    private let refusals = Shared(0)
    let device: CBPeripheralManager
    let characteristic: CBMutableCharacteristic
    let total: Int

    init(_ rig: GATTRig, _ characteristic: CBMutableCharacteristic, total: Int) {
      device = rig.device
      self.characteristic = characteristic
      self.total = total
    }

    var refusalCount: Int { refusals.value }

    func pump() {
      next.withLock { next in
        while next < total {
          let value = Data([UInt8(next & 0xFF), UInt8(next >> 8), 1, 2, 3])
          guard device.updateValue(value, for: characteristic, onSubscribedCentrals: nil) else {
            return refusals.withLock { $0 += 1 }
          }
          next += 1
        }
      }
    }
  }

  /// Each packet is one call, in order, and the value stays what it is while the call runs; reads in between take their turns.
  @Test(arguments: QueueKind.allCases, [CBCharacteristicProperties.notify, .indicate])
  func eachValueIsToldOnce(kind: QueueKind, property: CBCharacteristicProperties) throws {
    let total = property == .notify ? 2000 : 200
    let updates = CBMutableCharacteristic("AA02", property.union(.read))
    let other = CBMutableCharacteristic("AA01", .read)
    let rig = GATTRig([CBMutableService("1234", [updates, other])], kind) { device, requests in
      requests[0].value = Data([9])
      device.respond(to: requests[0], withResult: .success)
    }
    let peripheral = try rig.explored()
    let (found, neighbour) = (try rig.find(updates, of: peripheral), try rig.find(other, of: peripheral))
    peripheral.setNotifyValue(true, for: found)
    #expect(try rig.told(1) == ["notifying true"])
    let counter = Counter(rig, updates, total: total)
    let got = Shared<[Int]>([])
    let hasChanged = Shared(false)
    rig.phone.react { line in
      guard line.hasPrefix("value"), line != "value 9", let value = found.value else { return }
      if let number = Self.number(value) {
        got.withLock { $0.append(number) }
        if number.isMultiple(of: 10) { peripheral.readValue(for: neighbour) }
      }
      if found.value != value { hasChanged.value = true }
    }
    rig.owner.react { line in
      if line == "ready" { return counter.pump() }
      for request in rig.owner.requests {
        request.value = Data([9])
        rig.device.respond(to: request, withResult: .success)
      }
      rig.owner.letGoOfRequests()
    }
    counter.pump()
    try rig.run { got.value.count >= total && rig.phone.lines.all.count >= total + total / 10 }
    #expect(got.value == Array(0..<total))
    #expect(rig.phone.lines.all.count { $0 == "value 9" } == total / 10)
    #expect(!hasChanged.value)
    #expect(counter.refusalCount > 0)
    #expect(rig.phone.watch.isClean)
    rig.owner.react(nil)
  }

  /// One value for several subscribers is cut for each; who is not subscribed, or not named, gets nothing.
  @Test func goesToTheSubscribersThatAreNamed() throws {
    let updates = CBMutableCharacteristic("AA02", .notify)
    let rig = GATTRig([CBMutableService("1234", [updates])])
    let peripheral = try rig.explored()
    let found = try rig.find(updates, of: peripheral)
    // Without subscribers there is nothing to do, and it is done.
    #expect(rig.device.updateValue(Data([0]), for: updates, onSubscribedCentrals: nil))
    peripheral.setNotifyValue(true, for: found)
    #expect(try rig.told(1) == ["notifying true"])
    // A second phone on a link with the smallest ATT MTU.
    let small = CentralRecorder()
    let radio = rig.air.makeRadio(name: "small", link: LinkParameters(attMTU: 23))
    let manager = CBCentralManager(
      delegate: small, queue: DispatchQueue(label: "small"), options: [CBManagerOptionRadioKey: radio])
    try rig.run { manager.state == .poweredOn }
    manager.scanForPeripherals(withServices: nil)
    try rig.run { small.peripherals.contains { $0.identifier == peripheral.identifier } }
    manager.stopScan()
    let twin = try #require(small.peripherals.first { $0.identifier == peripheral.identifier })
    twin.delegate = small
    manager.connect(twin)
    try rig.run { twin.state == .connected }
    twin.discoverServices([CBUUID(string: "1234")])
    try rig.run { twin.services != nil }
    twin.discoverCharacteristics(nil, for: try #require(twin.services?.first))
    try rig.run { twin.services?.first?.characteristics != nil }
    let twinFound = try rig.find(updates, of: twin)
    twin.setNotifyValue(true, for: twinFound)
    try rig.run { updates.subscribedCentrals?.count == 2 }
    let centrals = try #require(updates.subscribedCentrals)
    #expect(centrals.map(\.maximumUpdateValueLength) == [182, 20])
    #expect(rig.device.updateValue(Data(count: 300), for: updates, onSubscribedCentrals: nil))
    try rig.run { found.value?.count == 182 && twinFound.value?.count == 20 }
    #expect(rig.device.updateValue(Data([1, 2]), for: updates, onSubscribedCentrals: [centrals[1]]))
    try rig.run { twinFound.value?.count == 2 }
    #expect(rig.device.updateValue(Data([1]), for: updates, onSubscribedCentrals: []))
    twin.setNotifyValue(false, for: twinFound)
    try rig.run { updates.subscribedCentrals == [centrals[0]] }
    #expect(rig.device.updateValue(Data([1, 2, 3]), for: updates, onSubscribedCentrals: centrals))
    try rig.run { found.value?.count == 3 }
    #expect(twinFound.value?.count == 2)
    #expect(rig.phone.lines.all.count == 2)
  }

  @Test(arguments: [true, false])
  func subscriptionsEndWithTheLink(isLost: Bool) throws {
    let updates = ["AA01", "AA02", "AA03"].map { CBMutableCharacteristic($0, .notify) }
    let rig = GATTRig([CBMutableService("1234", updates)])
    let peripheral = try rig.explored()
    let found = try updates.map { try rig.find($0, of: peripheral) }
    for characteristic in found.prefix(2) { peripheral.setNotifyValue(true, for: characteristic) }
    #expect(try rig.told(2) == ["notifying true", "notifying true"])
    #expect(rig.owner.lines.take() == ["subscribed AA01", "subscribed AA02"])
    if isLost {
      rig.air.setInReach(false, of: rig.phoneRadio)
    } else {
      rig.central.cancelPeripheralConnection(peripheral)
    }
    try rig.run { rig.owner.lines.all.count == 2 && peripheral.state == .disconnected }
    #expect(rig.owner.lines.take().sorted() == ["unsubscribed AA01", "unsubscribed AA02"])
    #expect(updates.allSatisfy { $0.subscribedCentrals == [] })
    #expect(found.allSatisfy { !$0.isNotifying })
    // The next link starts without subscriptions.
    rig.air.setInReach(true, of: rig.phoneRadio)
    rig.central.connect(peripheral)
    try rig.run { peripheral.state == .connected }
    #expect(rig.device.updateValue(Data([1]), for: updates[0], onSubscribedCentrals: nil))
    try rig.clock.run(for: .seconds(5))
    #expect(!rig.phone.lines.all.contains { $0.hasPrefix("value") })
  }

  @Test func notificationsArePreferredToIndications() throws {
    let both = CBMutableCharacteristic("AA02", [.notify, .indicate])
    let rig = GATTRig([CBMutableService("1234", [both])])
    let peripheral = try rig.explored()
    let found = try rig.find(both, of: peripheral)
    peripheral.discoverDescriptors(for: found)
    peripheral.setNotifyValue(true, for: found)
    #expect(try rig.told(2) == [#"descriptors ["2902"]"#, "notifying true"])
    let configuration = try #require(found.descriptors?.first)
    peripheral.readValue(for: configuration)
    #expect(try rig.told(1) == ["descriptor 1"])
    // Twice is once.
    peripheral.setNotifyValue(true, for: found)
    peripheral.setNotifyValue(false, for: found)
    peripheral.setNotifyValue(false, for: found)
    peripheral.readValue(for: configuration)
    #expect(
      try rig.told(4) == ["notifying true", "notifying false", "notifying false", "descriptor 0"])
    #expect(rig.owner.lines.all == ["subscribed AA02", "unsubscribed AA02"])
  }
}
