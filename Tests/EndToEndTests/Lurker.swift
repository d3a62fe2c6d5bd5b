import CoreBluetooth
import Foundation
import Locking
import Radio

/// A central that subscribes to the control characteristic of a receiver, as an explorer's application does, and says nothing.
// Sendable: everything but `state` is used on its queue.
final class Lurker: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
  private static let service = CBUUID(string: "B1E00001-6861-756C-A5D2-3F7C41906E8B")
  private static let control = CBUUID(string: "B1E00002-6861-756C-A5D2-3F7C41906E8B")

  private let subscribed = PosixMutex<CheckedContinuation<Void, Never>?>(nil)
  private let queue: DispatchQueue
  private var manager: CBCentralManager?
  private var device: CBPeripheral?

  private init(_ name: String) { queue = DispatchQueue(label: name) }

  /// Returns once it is subscribed.
  static func start(_ name: String, on radio: any Radio) async -> Lurker {
    let lurker = Lurker(name)
    await withCheckedContinuation { continuation in
      lurker.subscribed.withLock { $0 = continuation }
      lurker.queue.sync {
        lurker.manager = CBCentralManager(
          delegate: lurker, queue: lurker.queue, options: [CBManagerOptionRadioKey: radio])
      }
    }
    return lurker
  }

  func stop() {
    queue.sync {
      device = nil
      manager = nil
    }
  }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    if central.state == .poweredOn { central.scanForPeripherals(withServices: [Self.service]) }
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    central.stopScan()
    device = peripheral
    peripheral.delegate = self
    central.connect(peripheral)
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    peripheral.discoverServices([Self.service])
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    for service in peripheral.services ?? [] {
      peripheral.discoverCharacteristics([Self.control], for: service)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    for characteristic in service.characteristics ?? [] {
      peripheral.setNotifyValue(true, for: characteristic)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    let continuation = subscribed.withLock { subscribed in
      defer { subscribed = nil }
      return subscribed
    }
    continuation?.resume()
  }
}
