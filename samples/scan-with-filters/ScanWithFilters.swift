import CoreBluetooth
import Foundation

/// Lists heart-rate sensors that are near: the host filters by service, the program by signal strength and name.
///
///     scan-with-filters [COUNT] [NAME-PREFIX]
///
/// Ends once COUNT sensors (default 1) whose names begin with NAME-PREFIX were seen.
@main
struct ScanWithFilters {
  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    let scanner = Scanner(
      count: arguments.first.flatMap { Int($0) } ?? 1, prefix: arguments.dropFirst().first ?? "")
    scanner.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
      say("no more sensors within a minute")
      exit(1)
    }
    RunLoop.main.run()
    withExtendedLifetime(scanner) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

final class Scanner: NSObject, CBCentralManagerDelegate {
  /// Weaker than this is too far away to be worth a connection; dBm.
  private static let weakestSignal = -80
  private static let heartRate = CBUUID(string: "180D")

  private let count: Int
  private let prefix: String
  private var central: CBCentralManager?
  private var found: [UUID: String] = [:]

  init(count: Int, prefix: String) {
    self.count = count
    self.prefix = prefix
  }

  func start() { central = CBCentralManager(delegate: self, queue: nil) }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn:
      // Without duplicates a device is told of once, and not each of the ten times a second that it advertises. With them, a program sees how
      // its signal changes; that costs power.
      central.scanForPeripherals(
        withServices: [Self.heartRate], options: [CBCentralManagerScanOptionAllowDuplicatesKey: false])
      say("scanning")
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
    // 127 stands for a strength that is not known, which says nothing against a sensor.
    guard RSSI.intValue >= Self.weakestSignal else { return }
    let name = advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? peripheral.name ?? ""
    guard name.hasPrefix(prefix), found[peripheral.identifier] == nil, found.count < count else { return }
    found[peripheral.identifier] = name
    let services = advertisementData[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
    let isConnectable = advertisementData[CBAdvertisementDataIsConnectable] as? NSNumber
    say(
      "\(name) offers \(services.map(\.uuidString).joined(separator: ", "))"
        + (isConnectable?.boolValue == true ? ", connectable" : ""))
    guard found.count == count else { return }
    central.stopScan()
    say("found \(found.values.sorted().joined(separator: ", "))")
    exit(0)
  }
}
