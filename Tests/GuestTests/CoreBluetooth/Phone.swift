import BlueZRadio
import CoreBluetooth
import Dispatch
import Foundation
import Locking
import Testing

/// A central on Core Bluetooth, on hci0, whose callbacks are awaited.
final class Phone: NSObject, Sendable {
  enum Event: Sendable {
    case state(CBManagerState)
    case discovered(CBPeripheral)
    case connected
    case failedToConnect(Failure?)
    case disconnected(Failure?)
    case services(Failure?)
    case characteristics(Failure?)
    case descriptors(Failure?)
    case value(CBUUID, Data?, Failure?)
    case descriptorValue(Failure?)
    case written(CBUUID, Failure?)
    case notifying(CBUUID, Failure?)
    case channel(CBL2CAPChannel?, Failure?)
  }

  let events = Events<Event>()
  /// What Core Bluetooth has to say of this program's mistakes.
  let log = PosixMutex<[String]>([])
  private let holder = PosixMutex<CBCentralManager?>(nil)

  var manager: CBCentralManager {
    get throws { try #require(holder.withLock { $0 }) }
  }

  /// Returns once the adapter is on.
  static func start() async throws -> Phone {
    let phone = Phone()
    let handler = CBLogHandler { [weak phone] line in phone?.log.withLock { $0.append(line) } }
    let manager = CBCentralManager(
      delegate: phone, queue: DispatchQueue(label: "phone"),
      options: [
        CBManagerOptionRadioKey: try BlueZRadio(adapter: "hci0"), CBManagerOptionLogHandlerKey: handler,
      ])
    phone.holder.withLock { $0 = manager }
    try await phone.isOn()
    return phone
  }

  func isOn() async throws {
    try await events.first { if case .state(.poweredOn) = $0 { () } else { nil } }
  }

  /// The device that advertises a service.
  func find(_ service: CBUUID) async throws -> CBPeripheral {
    try manager.scanForPeripherals(withServices: [service])
    let peripheral = try await events.first {
      if case .discovered(let peripheral) = $0 { peripheral } else { nil }
    }
    try manager.stopScan()
    peripheral.delegate = self
    return peripheral
  }

  /// Discovers the characteristics of a service.
  func discover(_ service: CBUUID, of peripheral: CBPeripheral) async throws {
    peripheral.discoverServices([service])
    let missing = try await events.first {
      if case .services(let failure) = $0 { Optional(failure) } else { nil }
    }
    #expect(missing == nil)
    peripheral.discoverCharacteristics(nil, for: try #require(peripheral.services?.first))
    let failure = try await events.first {
      if case .characteristics(let failure) = $0 { Optional(failure) } else { nil }
    }
    #expect(failure == nil)
  }

  /// Finds, connects and discovers.
  func connect(_ service: CBUUID) async throws -> CBPeripheral {
    let peripheral = try await find(service)
    try manager.connect(peripheral)
    try await events.first { if case .connected = $0 { () } else { nil } }
    try await discover(service, of: peripheral)
    return peripheral
  }

  func disconnect(_ peripheral: CBPeripheral) async throws {
    try manager.cancelPeripheralConnection(peripheral)
    try await events.first { if case .disconnected = $0 { () } else { nil } }
  }

  /// Reads a value.
  func read(_ characteristic: CBCharacteristic, of peripheral: CBPeripheral) async throws -> Data {
    peripheral.readValue(for: characteristic)
    let uuid = characteristic.uuid
    let result = try await events.first { event -> Result<Data, Failure>? in
      guard case .value(uuid, let data, let failure) = event else { return nil }
      return failure.map { .failure($0) } ?? .success(data ?? Data())
    }
    return try result.get()
  }

  /// Writes with response.
  func write(_ data: Data, to characteristic: CBCharacteristic, of peripheral: CBPeripheral) async throws
    -> Failure?
  {
    peripheral.writeValue(data, for: characteristic, type: .withResponse)
    let uuid = characteristic.uuid
    return try await events.first {
      if case .written(uuid, let failure) = $0 { Optional(failure) } else { nil }
    }
  }
}

extension CBPeripheral {
  /// A characteristic that was discovered.
  func characteristic(_ uuid: CBUUID) throws -> CBCharacteristic {
    try #require(services?.flatMap { $0.characteristics ?? [] }.first { $0.uuid == uuid })
  }
}

extension Phone: CBCentralManagerDelegate {
  func centralManagerDidUpdateState(_ central: CBCentralManager) { events.put(.state(central.state)) }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) { events.put(.discovered(peripheral)) }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    events.put(.connected)
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) { events.put(.failedToConnect(Failure(error))) }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) { events.put(.disconnected(Failure(error))) }
}

extension Phone: CBPeripheralDelegate {
  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    events.put(.services(Failure(error)))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) { events.put(.characteristics(Failure(error))) }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) { events.put(.descriptors(Failure(error))) }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) { events.put(.value(characteristic.uuid, characteristic.value, Failure(error))) }

  func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)
  { events.put(.descriptorValue(Failure(error))) }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) { events.put(.written(characteristic.uuid, Failure(error))) }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) { events.put(.notifying(characteristic.uuid, Failure(error))) }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
    events.put(.channel(channel, Failure(error)))
  }
}
