import CoreBluetooth
import Foundation
import Radio
import Testing
import VirtualRadio

/// A phone and a device that are started again in turn, on one simulated air in lock-step time.
@Suite(.timeLimit(.minutes(30))) struct RestorationOnAirTests {
  /// The air, and the two programs as they run now.
  private final class Bench: @unchecked Sendable {
    let clock = VirtualClock(.lockStep)
    let folder = StateFolder()
    let log = Lines()
    let air: VirtualAir
    let phoneRadio, deviceRadio: VirtualRadio
    // Sendable: the test changes them from one thread.
    private(set) var phone = CentralRecorder()
    private(set) var device = PeripheralRecorder()
    private(set) var central: CBCentralManager?
    private(set) var manager: CBPeripheralManager?

    init() {
      air = VirtualAir(clock: clock, link: LinkParameters(attMTU: 185))
      phoneRadio = air.makeRadio(name: "phone")
      deviceRadio = air.makeRadio(name: "device")
    }

    func startPhone() {
      phone = CentralRecorder()
      central = CBCentralManager(
        delegate: phone, queue: DispatchQueue(label: "phone"),
        options: [
          CBManagerOptionRadioKey: phoneRadio, CBManagerOptionLogHandlerKey: log.handler,
          CBCentralManagerOptionRestoreIdentifierKey: "phone", CBManagerOptionStateDirectoryKey: folder.path,
        ])
    }

    func stopPhone() {
      central = nil
      phone.letGo()
    }

    func startDevice() {
      device = PeripheralRecorder()
      manager = CBPeripheralManager(
        delegate: device, queue: DispatchQueue(label: "device"),
        options: [
          CBManagerOptionRadioKey: deviceRadio, CBManagerOptionLogHandlerKey: log.handler,
          CBPeripheralManagerOptionRestoreIdentifierKey: "device",
          CBManagerOptionStateDirectoryKey: folder.path,
        ])
    }

    func stopDevice() { manager = nil }

    func run(sourceLocation: SourceLocation = #_sourceLocation, until condition: () -> Bool) throws {
      let isMet = try clock.run(until: condition, within: .seconds(120))
      try #require(
        isMet, "\(phone.lines.all) \(device.lines.all) \(log.all)", sourceLocation: sourceLocation)
    }

    /// The device publishes a service that notifies.
    @discardableResult func publish() throws -> CBMutableCharacteristic {
      startDevice()
      try run { manager?.state == .poweredOn }
      let example = LocalExample()
      manager?.add(example.service)
      manager?.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [CBUUID(string: "1234")]])
      try run { device.lines.all.contains("advertising true") }
      return example.updates
    }

    /// The phone finds the device, and subscribes to its updates.
    func subscribe() throws -> (CBPeripheral, CBCharacteristic) {
      startPhone()
      try run { central?.state == .poweredOn }
      central?.scanForPeripherals(withServices: [CBUUID(string: "1234")])
      try run { !phone.peripherals.isEmpty }
      central?.stopScan()
      let peripheral = try #require(phone.peripherals.first)
      peripheral.delegate = phone
      central?.connect(peripheral)
      try run { peripheral.state == .connected }
      return (peripheral, try subscribe(peripheral))
    }

    @discardableResult func subscribe(_ peripheral: CBPeripheral) throws -> CBCharacteristic {
      peripheral.discoverServices([CBUUID(string: "1234")])
      try run { peripheral.services?.isEmpty == false }
      let service = try #require(peripheral.services?.first)
      peripheral.discoverCharacteristics(nil, for: service)
      try run { service.characteristics != nil }
      let updates = try #require(service.characteristics?.last)
      peripheral.setNotifyValue(true, for: updates)
      try run { phone.lines.all.contains("notifying true") && isSubscribed }
      return updates
    }

    var isSubscribed: Bool { device.lines.all.contains("subscribed AA02") }

    func update(_ value: [UInt8], _ updates: CBMutableCharacteristic) throws {
      #expect(manager?.updateValue(Data(value), for: updates, onSubscribedCentrals: nil) == true)
      let line = "value \(value.map { String($0) }.joined(separator: ","))"
      try run { phone.lines.all.contains(line) }
    }

    var restoredUpdates: CBMutableCharacteristic? {
      device.restoredServices.first?.characteristics?.last as? CBMutableCharacteristic
    }
  }

  @Test func aCentralGoesOnAfterEachEnd() throws {
    let bench = Bench()
    let updates = try bench.publish()
    _ = try bench.subscribe()
    for round in 1...3 {
      bench.stopPhone()
      try bench.run { bench.device.lines.all.contains("unsubscribed AA02") }
      _ = bench.device.lines.take()
      bench.startPhone()
      try bench.run { bench.phone.lines.all.contains("connected, connected") && bench.isSubscribed }
      try bench.update([UInt8(round)], updates)
      #expect(
        bench.phone.lines.all == [
          "restored peripherals [\"device connecting\"]", "state poweredOn", "connected, connected",
          "value \(round)",
        ])
      #expect(bench.phone.peripherals.first?.identifier == bench.deviceRadio.peerID.uuid)
      #expect(bench.log.all == [])
    }
  }

  @Test func aPeripheralGoesOnAfterItsEnd() throws {
    let bench = Bench()
    try bench.publish()
    let (peripheral, _) = try bench.subscribe()
    bench.phone.react { line in
      if line.hasPrefix("disconnected") { bench.central?.connect(peripheral) }
    }
    bench.stopDevice()
    // Its radio is still there, and with it the link; what it had published is gone.
    bench.air.setPower(.unsupported, of: bench.deviceRadio)
    try bench.run { bench.phone.lines.all.contains { $0.hasPrefix("disconnected") } }
    bench.startDevice()
    bench.air.setPower(.poweredOn, of: bench.deviceRadio)
    try bench.run { bench.phone.lines.all.last == "connected, connected" }
    #expect(bench.device.lines.all.first?.hasPrefix("restored services [\"1234\"] advertised") == true)
    #expect(bench.manager?.isAdvertising == true)
    #expect(bench.device.lines.all.contains("unsubscribed AA02"))
    peripheral.discoverServices(nil)
    try bench.run { peripheral.services?.isEmpty == false }
    bench.phone.react(nil)
  }

  /// The adapter of a device that was started anew publishes what is restored at other handles than before.
  @Test func bothGoOnAfterTheirEnds() throws {
    let bench = Bench()
    try bench.publish()
    _ = try bench.subscribe()
    bench.stopPhone()
    bench.stopDevice()
    bench.startPhone()
    bench.startDevice()
    try bench.run { bench.phone.lines.all.contains("modified [\"1234\"]") }
    #expect(bench.phone.lines.all.suffix(2) == ["connected, connected", "modified [\"1234\"]"])
    let peripheral = try #require(bench.phone.peripherals.first)
    try bench.subscribe(peripheral)
    try bench.update([9], try #require(bench.restoredUpdates))
  }

  @Test(arguments: [false, true])
  func aDeviceOutOfReachIsWaitedFor(isGone: Bool) throws {
    let bench = Bench()
    try bench.publish()
    _ = try bench.subscribe()
    bench.air.setInReach(false, of: bench.deviceRadio)
    if isGone { bench.stopDevice() }
    bench.stopPhone()
    bench.startPhone()
    try bench.run { bench.phone.lines.all.contains("state poweredOn") }
    bench.stopPhone()
    bench.startPhone()
    if isGone { bench.startDevice() }
    try bench.run { bench.central?.state == .poweredOn }
    #expect(bench.phone.peripherals.first?.state == .connecting)
    bench.air.setInReach(true, of: bench.deviceRadio)
    try bench.run { bench.phone.lines.all.contains("connected, connected") }
  }
}
