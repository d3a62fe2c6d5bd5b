import CoreBluetooth
import Foundation

/// Reads, writes and is notified: changes the note of `answering-peripheral`, once too long, and reads it again.
@main
struct ReadWriteNotify {
  static func main() {
    let writer = Writer()
    writer.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
      say("not done within a minute")
      exit(1)
    }
    RunLoop.main.run()
    withExtendedLifetime(writer) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

enum ID {
  static let service = CBUUID(string: "5AE0A000-6E6F-7465-626F-6F6B00000000")
  static let note = CBUUID(string: "5AE0A001-6E6F-7465-626F-6F6B00000000")
  static let length = CBUUID(string: "5AE0A002-6E6F-7465-626F-6F6B00000000")
}

final class Writer: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
  /// A short one, one that takes several packets, and one that the peripheral refuses.
  private var notes = [
    Data("buy a battery".utf8), Data(repeating: UInt8(ascii: "x"), count: 300),
    Data(repeating: UInt8(ascii: "y"), count: 500),
  ]
  private var central: CBCentralManager?
  private var peripheral: CBPeripheral?
  private var note: CBCharacteristic?

  func start() { central = CBCentralManager(delegate: self, queue: nil) }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn: central.scanForPeripherals(withServices: [ID.service])
    case .unsupported, .unauthorized:
      say("Bluetooth cannot be used here")
      exit(1)
    default: break
    }
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    guard self.peripheral == nil else { return }
    central.stopScan()
    self.peripheral = peripheral
    peripheral.delegate = self
    central.connect(peripheral)
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    peripheral.discoverServices([ID.service])
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    for service in peripheral.services ?? [] {
      peripheral.discoverCharacteristics([ID.note, ID.length], for: service)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    note = service.characteristics?.first { $0.uuid == ID.note && $0.properties.contains([.read, .write]) }
    let length = service.characteristics?.first { $0.uuid == ID.length && $0.properties.contains(.notify) }
    guard let length, note != nil else {
      say("this is not a notebook")
      exit(1)
    }
    peripheral.setNotifyValue(true, for: length)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    say("notifications are \(characteristic.isNotifying ? "on" : "off")")
    if let note { peripheral.readValue(for: note) }
  }

  /// Values come this way whether they were asked for or not.
  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    let value = characteristic.value ?? Data()
    if characteristic.uuid == ID.length {
      say("told: \(value.reversed().reduce(0) { $0 << 8 | Int($1) }) octets")
    } else {
      let text = String(decoding: value, as: UTF8.self)
      say("read: \(text.count > 20 ? "\(text.prefix(10))... (\(text.count) octets)" : text)")
      writeNext(peripheral)
    }
  }

  private func writeNext(_ peripheral: CBPeripheral) {
    guard let note else { return }
    if notes.isEmpty {
      // Ending the link ends the subscription with it.
      central?.cancelPeripheralConnection(peripheral)
    } else {
      peripheral.writeValue(notes.removeFirst(), for: note, type: .withResponse)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    let isTooLong = (error as? CBATTError)?.code == .invalidAttributeValueLength
    say(
      error == nil
        ? "written" : isTooLong ? "refused: too long" : "not written: \(error?.localizedDescription ?? "")")
    peripheral.readValue(for: characteristic)
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    say(error.map { "the link was lost: \($0.localizedDescription)" } ?? "disconnected")
    exit(error == nil && notes.isEmpty ? 0 : 1)
  }
}
