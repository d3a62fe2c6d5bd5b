import CoreBluetooth
import Locking
import Foundation
import Radio
import Testing
import VirtualRadio

/// A phone and a device, each a program on Core Bluetooth, on one simulated air whose time the test drives.
final class AirRig: Sendable {
  let clock = VirtualClock(.lockStep)
  let air: VirtualAir
  let phoneRadio: VirtualRadio
  let deviceRadio: VirtualRadio
  let phone = CentralRecorder()
  let device: DeviceProgram
  let central: CBCentralManager
  let log = Lines()

  init(
    _ kind: QueueKind = .serial, link: LinkParameters = LinkParameters(attMTU: 185),
    phoneLink: LinkParameters? = nil, faults: FaultPlan = FaultPlan()
  ) {
    air = VirtualAir(clock: clock, link: link, faults: faults)
    phoneRadio = air.makeRadio(name: "phone", link: phoneLink)
    deviceRadio = air.makeRadio(name: "device")
    device = DeviceProgram(radio: deviceRadio)
    central = CBCentralManager(
      delegate: phone, queue: TestQueue(kind).argument,
      options: [CBManagerOptionRadioKey: phoneRadio, CBManagerOptionLogHandlerKey: log.handler])
  }

  /// Lets time pass until `condition` holds at rest.
  func run(
    within limit: Duration = .seconds(60), sourceLocation: SourceLocation = #_sourceLocation,
    until condition: () -> Bool
  ) throws {
    let isMet = try clock.run(until: condition, within: limit)
    try #require(isMet, "not within \(limit)", sourceLocation: sourceLocation)
  }

  /// The device, connected.
  func connected(options: [String: Any]? = nil) throws -> CBPeripheral {
    try run { device.recorder.lines.all.contains("advertising true") && central.state == .poweredOn }
    central.scanForPeripherals(withServices: [DeviceProgram.service])
    try run { !phone.peripherals.isEmpty }
    central.stopScan()
    let peripheral = try #require(phone.peripherals.first)
    peripheral.delegate = phone
    central.connect(peripheral, options: options)
    try run { peripheral.state == .connected }
    return peripheral
  }

  /// The device and its characteristics.
  func explored(options: [String: Any]? = nil) throws -> (
    CBPeripheral, data: CBCharacteristic, updates: CBCharacteristic, fixed: CBCharacteristic
  ) {
    let peripheral = try connected(options: options)
    peripheral.discoverServices([DeviceProgram.service])
    try run { peripheral.services != nil }
    let service = try #require(peripheral.services?.first)
    peripheral.discoverCharacteristics(nil, for: service)
    try run { service.characteristics != nil }
    func find(_ uuid: CBUUID) throws -> CBCharacteristic {
      try #require(service.characteristics?.first { $0.uuid == uuid })
    }
    _ = phone.lines.take()
    return (
      peripheral, try find(DeviceProgram.dataID), try find(DeviceProgram.updatesID),
      try find(DeviceProgram.fixedID)
    )
  }
}

/// The program of a device: takes values, answers reads, offers a channel.
final class DeviceProgram: Sendable {
  static let service = CBUUID(string: "12345678-1234-1234-1234-123456789ABC")
  static let dataID = CBUUID(string: "12345678-1234-1234-1234-123456789A01")
  static let updatesID = CBUUID(string: "12345678-1234-1234-1234-123456789A02")
  static let fixedID = CBUUID(string: "12345678-1234-1234-1234-123456789A03")

  let recorder = PeripheralRecorder()
  let queue = DispatchQueue(label: "device")
  let manager: CBPeripheralManager
  let updates = CBMutableCharacteristic(type: updatesID, properties: .notify, value: nil, permissions: [])
  private let state = PosixMutex<(received: [Data], readable: Data)>(([], Data()))

  init(radio: VirtualRadio) {
    // Nothing is told before the reaction is there.
    queue.suspend()
    manager = CBPeripheralManager(
      delegate: recorder, queue: queue, options: [CBManagerOptionRadioKey: radio])
    recorder.react { [weak self] line in self?.react(to: line) }
    queue.resume()
  }

  /// Values in the order in which they came.
  var received: [Data] { state.withLock { $0.received } }

  func setReadable(_ value: Data) { state.withLock { $0.readable = value } }

  private func react(to line: String) {
    switch line.prefix(while: { $0 != " " }) {
    case "state" where manager.state == .poweredOn: publish()
    case "added":
      manager.startAdvertising([
        CBAdvertisementDataLocalNameKey: "device", CBAdvertisementDataServiceUUIDsKey: [Self.service],
      ])
    case "write":
      let requests = recorder.requests
      state.withLock { state in
        // The parts of one long write are one value.
        let whole = requests.reduce(into: Data()) { $0 += $1.value ?? Data() }
        state.received.append(whole)
      }
      if let first = requests.first { manager.respond(to: first, withResult: .success) }
      recorder.letGoOfRequests()
    case "read":
      let value = state.withLock { $0.readable }
      for request in recorder.requests {
        let isInside = request.offset <= value.count
        request.value = isInside ? Data(value.dropFirst(request.offset)) : nil
        manager.respond(to: request, withResult: isInside ? .success : .invalidOffset)
      }
      recorder.letGoOfRequests()
    default: break
    }
  }

  private func publish() {
    let data = CBMutableCharacteristic(
      type: Self.dataID, properties: [.read, .write, .writeWithoutResponse], value: nil,
      permissions: [.readable, .writeable])
    let fixed = CBMutableCharacteristic(
      type: Self.fixedID, properties: .read, value: Data("fixed".utf8), permissions: .readable)
    let service = CBMutableService(type: Self.service, primary: true)
    service.characteristics = [data, updates, fixed]
    manager.add(service)
    manager.publishL2CAPChannel(withEncryption: false)
  }
}
