import CoreBluetooth
import Foundation
import SampleData

/// Reads a heart-rate sensor: where it is worn, how full its battery is, and five measurements.
@main
struct HeartRateMonitor {
  static func main() {
    let monitor = Monitor()
    monitor.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
      say("no sensor within a minute")
      exit(1)
    }
    RunLoop.main.run()
    withExtendedLifetime(monitor) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

enum ID {
  static let heartRate = CBUUID(string: "180D")
  static let measurement = CBUUID(string: "2A37")
  static let location = CBUUID(string: "2A38")
  static let battery = CBUUID(string: "180F")
  static let batteryLevel = CBUUID(string: "2A19")
}

final class Monitor: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
  private var central: CBCentralManager?
  /// Held, because Core Bluetooth forgets a device that nobody holds.
  private var sensor: CBPeripheral?
  private var measurement: CBCharacteristic?
  /// How many answers are still to come before measurements are asked for.
  private var awaited = 0
  private var count = 0

  func start() { central = CBCentralManager(delegate: self, queue: nil) }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn: central.scanForPeripherals(withServices: [ID.heartRate])
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
    guard sensor == nil else { return }
    central.stopScan()
    sensor = peripheral
    peripheral.delegate = self
    central.connect(peripheral)
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    say("connected to \(peripheral.name ?? "a sensor")")
    peripheral.discoverServices([ID.heartRate, ID.battery])
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    for service in peripheral.services ?? [] {
      awaited += 1
      peripheral.discoverCharacteristics(nil, for: service)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    for characteristic in service.characteristics ?? [] {
      if characteristic.uuid == ID.measurement { measurement = characteristic }
      guard characteristic.properties.contains(.read) else { continue }
      awaited += 1
      peripheral.readValue(for: characteristic)
    }
    answered(peripheral)
  }

  private func answered(_ peripheral: CBPeripheral) {
    awaited -= 1
    guard awaited == 0, let measurement else { return }
    peripheral.setNotifyValue(true, for: measurement)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    let value = error == nil ? characteristic.value ?? Data() : Data()
    switch characteristic.uuid {
    case ID.location: say("worn at: \(BodySensorLocation(value).map { "\($0)" } ?? "unknown")")
    case ID.batteryLevel: say("battery: \(BatteryLevel(value).map { "\($0.percent) %" } ?? "unknown")")
    case ID.measurement:
      guard count < 5 else { return }
      count += 1
      say("\(count): \(HeartRateMeasurement(value).map { "\($0)" } ?? "not a measurement")")
      // Ending the link ends the subscription with it.
      if count == 5 { central?.cancelPeripheralConnection(peripheral) }
      return
    default: break
    }
    answered(peripheral)
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    say(error.map { "the link was lost: \($0.localizedDescription)" } ?? "disconnected")
    exit(count == 5 ? 0 : 1)
  }
}
