import CoreBluetooth
import Foundation
import SampleData

/// Listens to several heart-rate sensors at once, takes three measurements of each, and prints them by sensor.
///
///     several-peripherals [COUNT]
@main
struct SeveralPeripherals {
  static func main() {
    let listener = Listener(count: CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 2)
    listener.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
      say("not all sensors within a minute")
      exit(1)
    }
    RunLoop.main.run()
    withExtendedLifetime(listener) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

final class Listener: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
  private static let heartRate = CBUUID(string: "180D")
  private static let measurement = CBUUID(string: "2A37")
  private static let measurementsEach = 3

  /// What is known of one sensor.
  private struct Sensor {
    let peripheral: CBPeripheral
    let name: String
    var measurements: [HeartRateMeasurement] = []
    var hasLeft = false
  }

  private let count: Int
  private var central: CBCentralManager?
  /// By identifier: several sensors may have one name.
  private var sensors: [UUID: Sensor] = [:]

  init(count: Int) { self.count = count }

  func start() { central = CBCentralManager(delegate: self, queue: nil) }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn: central.scanForPeripherals(withServices: [Self.heartRate])
    case .unsupported, .unauthorized:
      say("Bluetooth cannot be used here")
      exit(1)
    default: break
    }
  }

  /// Connecting does not end the scan: links come up while other sensors are still looked for.
  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    guard sensors.count < count, sensors[peripheral.identifier] == nil else { return }
    let name = advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? "sensor"
    sensors[peripheral.identifier] = Sensor(peripheral: peripheral, name: name)
    peripheral.delegate = self
    central.connect(peripheral)
    if sensors.count == count { central.stopScan() }
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    peripheral.discoverServices([Self.heartRate])
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    for service in peripheral.services ?? [] {
      peripheral.discoverCharacteristics([Self.measurement], for: service)
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
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    guard let measurement = characteristic.value.flatMap({ HeartRateMeasurement($0) }),
      let taken = sensors[peripheral.identifier]?.measurements.count, taken < Self.measurementsEach
    else { return }
    sensors[peripheral.identifier]?.measurements.append(measurement)
    // Nobody leaves before all have told enough.
    let isDone =
      sensors.count == count && sensors.values.allSatisfy { $0.measurements.count == Self.measurementsEach }
    if isDone { for sensor in sensors.values { central?.cancelPeripheralConnection(sensor.peripheral) } }
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    if let error {
      say("\(sensors[peripheral.identifier]?.name ?? "a sensor") was lost: \(error.localizedDescription)")
      exit(1)
    }
    sensors[peripheral.identifier]?.hasLeft = true
    guard sensors.values.allSatisfy(\.hasLeft) else { return }
    for sensor in sensors.values.sorted(by: { $0.name < $1.name }) {
      say("\(sensor.name): \(sensor.measurements.map { "\($0.rate)" }.joined(separator: ", ")) bpm")
    }
    exit(0)
  }
}
