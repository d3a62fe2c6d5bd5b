import CoreBluetooth
import Foundation
import SampleData

/// Three ways back to a heart-rate sensor: by its identifier, because the host is linked to it already, or by scanning.
///
///     reconnect [FILE]
///
/// FILE keeps the sensor's identifier from run to run. When the link is lost, the program waits for the sensor to come back; it ends after the second
/// connection.
@main
struct Reconnect {
  static func main() {
    let follower = Follower(file: CommandLine.arguments.dropFirst().first.map { URL(fileURLWithPath: $0) })
    follower.start()
    RunLoop.main.run()
    withExtendedLifetime(follower) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

final class Follower: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
  private static let heartRate = CBUUID(string: "180D")
  private static let measurement = CBUUID(string: "2A37")

  private let file: URL?
  private var identifier: UUID?
  private var central: CBCentralManager?
  private var sensor: CBPeripheral?
  private var connections = 0
  private var hasMeasured = false

  init(file: URL?) {
    self.file = file
    let text = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
    identifier = text.flatMap { UUID(uuidString: $0) }
  }

  func start() { central = CBCentralManager(delegate: self, queue: nil) }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn: find(central)
    case .unsupported, .unauthorized:
      say("Bluetooth cannot be used here")
      exit(1)
    default: break
    }
  }

  /// The cheapest way first: a scan costs power, and it finds only what is in range at this moment.
  private func find(_ central: CBCentralManager) {
    if let identifier, let known = central.retrievePeripherals(withIdentifiers: [identifier]).first {
      say("known by its identifier")
      connect(known, central)
    } else if let linked = central.retrieveConnectedPeripherals(withServices: [Self.heartRate]).first {
      say("linked to this host already")
      connect(linked, central)
    } else {
      say("scanning")
      central.scanForPeripherals(withServices: [Self.heartRate])
    }
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    guard sensor == nil else { return }
    central.stopScan()
    connect(peripheral, central)
  }

  /// Has no time limit: it is done whenever the sensor comes into range, unless the program cancels it.
  private func connect(_ peripheral: CBPeripheral, _ central: CBCentralManager) {
    sensor = peripheral
    peripheral.delegate = self
    central.connect(peripheral)
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    connections += 1
    hasMeasured = false
    identifier = peripheral.identifier
    if let file {
      try? Data(peripheral.identifier.uuidString.utf8).write(to: file, options: .atomic)
    }
    say("connection \(connections)")
    // What was known of its services belonged to the link that is gone.
    peripheral.discoverServices([Self.heartRate])
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) {
    say("no connection: \(error?.localizedDescription ?? "for unknown reasons")")
    exit(1)
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
    guard !hasMeasured, characteristic.value.flatMap({ HeartRateMeasurement($0) }) != nil else { return }
    hasMeasured = true
    say("a measurement came")
    guard connections == 2, let central else { return }
    let linked = central.retrieveConnectedPeripherals(withServices: [Self.heartRate])
    say("sensors linked to this host: \(linked.count)")
    central.cancelPeripheralConnection(peripheral)
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard error != nil else {
      say("disconnected")
      exit(0)
    }
    say("the link was lost")
    sensor = nil
    find(central)
  }
}
