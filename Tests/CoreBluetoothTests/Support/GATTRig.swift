import CoreBluetooth
import Foundation
import Locking
import Radio
import Testing
import VirtualRadio

/// A phone, and a device with the services that a test gives it, on one simulated air whose time the test drives.
final class GATTRig: Sendable {
  /// What the device does with a read, or with one batch of writes.
  typealias Answer = @Sendable (CBPeripheralManager, [CBATTRequest]) -> Void

  let clock = VirtualClock(.lockStep)
  let air: VirtualAir
  let phoneRadio: VirtualRadio
  let deviceRadio: VirtualRadio
  let phone = CentralRecorder()
  let central: CBCentralManager
  let owner = PeripheralRecorder()
  let device: CBPeripheralManager
  /// What the managers have logged.
  let phoneLog = Lines()
  let deviceLog = Lines()
  private let services: [CBMutableService]
  private let answer: Answer?

  /// - Parameter answer: nil: the device holds requests and says nothing.
  init(
    _ services: [CBMutableService], _ kind: QueueKind = .serial,
    link: LinkParameters = LinkParameters(attMTU: 185), answer: Answer? = nil
  ) {
    self.services = services
    self.answer = answer
    air = VirtualAir(clock: clock, link: link)
    phoneRadio = air.makeRadio(name: "phone")
    deviceRadio = air.makeRadio(name: "device")
    // Nothing is told before the reaction is there.
    let queue = DispatchQueue(label: "device")
    queue.suspend()
    device = CBPeripheralManager(
      delegate: owner, queue: queue,
      options: [CBManagerOptionRadioKey: deviceRadio, CBManagerOptionLogHandlerKey: deviceLog.handler])
    central = CBCentralManager(
      delegate: phone, queue: TestQueue(kind).argument,
      options: [CBManagerOptionRadioKey: phoneRadio, CBManagerOptionLogHandlerKey: phoneLog.handler])
    owner.react { [weak self] line in self?.react(to: line) }
    queue.resume()
  }

  private func react(to line: String) {
    switch line.prefix(while: { $0 != " " }) {
    case "state" where device.state == .poweredOn: for service in services { device.add(service) }
    case "added" where line == services.last.map { "added \($0.uuid)" } && !device.isAdvertising:
      device.startAdvertising([CBAdvertisementDataLocalNameKey: "device"])
    case "read", "write":
      guard let answer else { return }
      let requests = owner.requests
      owner.letGoOfRequests()
      answer(device, requests)
    default: break
    }
  }

  /// Lets time pass until `condition` holds at rest.
  func run(
    within limit: Duration = .seconds(60), sourceLocation: SourceLocation = #_sourceLocation,
    until condition: () -> Bool
  ) throws {
    let isMet = try clock.run(until: condition, within: limit)
    try #require(isMet, "not within \(limit)", sourceLocation: sourceLocation)
  }

  /// Lets time pass until the phone has been told so many things, and takes them.
  func told(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) throws -> [String] {
    try run(sourceLocation: sourceLocation) { phone.lines.all.count >= count }
    return phone.lines.take()
  }

  /// The device, connected.
  func connected() throws -> CBPeripheral {
    try run { owner.lines.all.contains("advertising true") && central.state == .poweredOn }
    central.scanForPeripherals(withServices: nil)
    try run { !phone.peripherals.isEmpty }
    central.stopScan()
    let peripheral = try #require(phone.peripherals.first)
    peripheral.delegate = phone
    central.connect(peripheral)
    try run { peripheral.state == .connected }
    return peripheral
  }

  /// The device, connected, its services and their characteristics discovered.
  func explored() throws -> CBPeripheral {
    let peripheral = try connected()
    peripheral.discoverServices(nil)
    try run { peripheral.services != nil }
    let found = try #require(peripheral.services)
    for service in found { peripheral.discoverCharacteristics(nil, for: service) }
    try run { found.allSatisfy { $0.characteristics != nil } }
    _ = phone.lines.take()
    _ = owner.lines.take()
    return peripheral
  }

  /// What the phone has discovered of a local characteristic.
  func find(
    _ local: CBCharacteristic, of peripheral: CBPeripheral, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> CBCharacteristic {
    let all = (peripheral.services ?? []).flatMap { $0.characteristics ?? [] }
    return try #require(all.first { $0.uuid == local.uuid }, sourceLocation: sourceLocation)
  }
}

extension CBMutableService {
  /// A primary service with characteristics.
  convenience init(_ uuid: String, _ characteristics: [CBMutableCharacteristic]) {
    self.init(type: CBUUID(string: uuid), primary: true)
    self.characteristics = characteristics
  }
}

extension CBMutableCharacteristic {
  /// A characteristic without a fixed value, with the plain permissions that its properties need.
  convenience init(
    _ uuid: String, _ properties: CBCharacteristicProperties, permissions: CBAttributePermissions? = nil
  ) {
    var needed: CBAttributePermissions = []
    if properties.contains(.read) { needed.insert(.readable) }
    if !properties.isDisjoint(with: [.write, .writeWithoutResponse]) { needed.insert(.writeable) }
    self.init(
      type: CBUUID(string: uuid), properties: properties, value: nil, permissions: permissions ?? needed)
  }
}
