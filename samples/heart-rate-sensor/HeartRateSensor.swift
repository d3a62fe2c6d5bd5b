import CoreBluetooth
import Foundation
import SampleData

/// A heart-rate sensor with a battery: notifies of a beat ten times a second as long as somebody listens, and ends when the last listener has left.
///
///     heart-rate-sensor [NAME]
@main
struct HeartRateSensor {
  @MainActor static func main() {
    let sensor = Sensor(name: CommandLine.arguments.dropFirst().first ?? "sensor")
    sensor.start()
    RunLoop.main.run()
    withExtendedLifetime(sensor) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

/// The manager calls its delegate on the main queue.
@MainActor
final class Sensor: NSObject, @MainActor CBPeripheralManagerDelegate {
  private let name: String
  private var manager: CBPeripheralManager?
  private let heartRate = CBMutableService(type: CBUUID(string: "180D"), primary: true)
  private let battery = CBMutableService(type: CBUUID(string: "180F"), primary: true)
  private let measurement = CBMutableCharacteristic(
    type: CBUUID(string: "2A37"), properties: .notify, value: nil, permissions: [])
  private var timer: Timer?
  private var beats: UInt16 = 0

  init(name: String) { self.name = name }

  func start() { manager = CBPeripheralManager(delegate: self, queue: nil) }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    switch peripheral.state {
    case .poweredOn: publish(peripheral)
    case .unsupported, .unauthorized:
      say("Bluetooth cannot be used here")
      exit(1)
    default: break
    }
  }

  /// A value that is given here never changes, and is answered without asking the program.
  private func publish(_ manager: CBPeripheralManager) {
    heartRate.characteristics = [
      measurement,
      CBMutableCharacteristic(
        type: CBUUID(string: "2A38"), properties: .read,
        value: Data([BodySensorLocation.chest.rawValue]), permissions: .readable),
    ]
    battery.characteristics = [
      CBMutableCharacteristic(
        type: CBUUID(string: "2A19"), properties: .read, value: Data([87]), permissions: .readable)
    ]
    manager.add(battery)
    manager.add(heartRate)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    if let error {
      say("cannot publish \(service.uuid): \(error.localizedDescription)")
      exit(1)
    }
    guard service.uuid == heartRate.uuid else { return }
    peripheral.startAdvertising([
      CBAdvertisementDataLocalNameKey: name, CBAdvertisementDataServiceUUIDsKey: [heartRate.uuid],
    ])
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    say(error.map { "cannot advertise: \($0.localizedDescription)" } ?? "\(name) is advertising")
    if error != nil { exit(1) }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
  ) {
    say("somebody listens")
    guard timer == nil else { return }
    timer = Timer.scheduledTimer(withTimeInterval: 0.1, repeats: true) { [weak self] _ in
      MainActor.assumeIsolated { self?.beat() }
    }
  }

  /// Where there is no room, the beat is left out: an old one is of no use to anybody.
  private func beat() {
    let value = HeartRateMeasurement(
      rate: 60 + beats, contact: .detected, energy: beats % 2 == 0 ? beats : nil, intervals: [1024 - beats])
    if manager?.updateValue(value.value, for: measurement, onSubscribedCentrals: nil) == true {
      beats = (beats + 1) % 100
    }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) {
    guard measurement.subscribedCentrals?.isEmpty ?? true else { return }
    timer?.invalidate()
    say("nobody listens any more")
    exit(0)
  }
}
