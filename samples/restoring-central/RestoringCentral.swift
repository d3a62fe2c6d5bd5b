import CoreBluetooth
import Foundation

/// A logger that keeps a connection to a counter for ever, and goes on with it after it was killed or the machine was restarted.
///
/// It is meant to be run by a service manager, which starts it again whenever it ends: samples/systemd/restoring-central.service. It prints each value that the
/// counter notifies. SIGUSR1 makes it forget the counter and end.
@main
struct RestoringCentral {
  static func main() {
    let logger = Logger()
    logger.start()
    let forget = DispatchSource.makeSignalSource(signal: SIGUSR1, queue: .main)
    forget.setEventHandler { logger.forget() }
    forget.resume()
    RunLoop.main.run()
    withExtendedLifetime((logger, forget)) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

// Sendable: everything happens on the main queue.
final class Logger: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
  private static let counter = CBUUID(string: "C0DE0001-0A0B-4C0D-8E0F-101112131415")
  private static let count = CBUUID(string: "C0DE0002-0A0B-4C0D-8E0F-101112131415")

  private var central: CBCentralManager?
  private var device: CBPeripheral?

  /// The identifier must be the same in every run.
  func start() {
    central = CBCentralManager(
      delegate: self, queue: nil, options: [CBCentralManagerOptionRestoreIdentifierKey: "logger"])
  }

  /// Comes first, and only where a former run has left something.
  func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
    let peripherals = dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? []
    for peripheral in peripherals {
      say("restored \(peripheral.name ?? "a device"), \(peripheral.services?.count ?? 0) services known")
    }
    device = peripherals.first
    device?.delegate = self
    if central.isScanning { say("restored a scan") }
  }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn:
      // What is restored goes on by itself. After Bluetooth was off, the program has to ask again.
      if let device {
        central.connect(device)
      } else {
        say("scanning")
        central.scanForPeripherals(withServices: [Self.counter])
      }
    case .unauthorized:
      say("Bluetooth is not permitted: \(CBManager.authorization == .restricted ? "restricted" : "denied")")
    default: say("waiting for Bluetooth")
    }
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
    say("connected")
    // A restored device comes with what was known of it, and its subscription is under way.
    if peripheral.services == nil { peripheral.discoverServices([Self.counter]) }
  }

  func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
    peripheral.discoverServices([Self.counter])
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    for service in peripheral.services ?? [] {
      peripheral.discoverCharacteristics([Self.count], for: service)
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
  ) { say(characteristic.isNotifying ? "subscribed" : "not subscribed") }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    if let value = characteristic.value { say("count \(String(decoding: value, as: UTF8.self))") }
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard error != nil else {
      say("forgotten")
      exit(0)
    }
    say("the link was lost")
    // Has no time limit: it is done whenever the device comes back.
    central.connect(peripheral)
  }

  func forget() {
    guard let central, let device else { exit(0) }
    central.cancelPeripheralConnection(device)
  }
}
