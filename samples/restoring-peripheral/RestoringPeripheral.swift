import CoreBluetooth
import Foundation

/// A counter that advertises for ever, and goes on with it after it was killed or the machine was restarted.
///
/// It is meant to be run by a service manager, which starts it again whenever it ends: samples/systemd/restoring-peripheral.service. It notifies its subscribers ten
/// times a second. SIGUSR1 makes it withdraw everything and end.
@main
struct RestoringPeripheral {
  static func main() {
    let counter = Counter()
    counter.start()
    let forget = DispatchSource.makeSignalSource(signal: SIGUSR1, queue: .main)
    forget.setEventHandler { counter.forget() }
    forget.resume()
    RunLoop.main.run()
    withExtendedLifetime((counter, forget)) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

// Sendable: everything happens on the main queue.
final class Counter: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
  private static let service = CBUUID(string: "C0DE0001-0A0B-4C0D-8E0F-101112131415")
  private static let value = CBUUID(string: "C0DE0002-0A0B-4C0D-8E0F-101112131415")

  private var manager: CBPeripheralManager?
  private var characteristic: CBMutableCharacteristic?
  private var timer: Timer?
  private var count = 0

  /// The identifier must be the same in every run.
  func start() {
    manager = CBPeripheralManager(
      delegate: self, queue: nil, options: [CBPeripheralManagerOptionRestoreIdentifierKey: "counter"])
  }

  /// Comes first, and only where a former run has left something. What is in it is published already, or will be.
  func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
    let services = dict[CBPeripheralManagerRestoredStateServicesKey] as? [CBMutableService] ?? []
    let characteristics = services.flatMap { $0.characteristics ?? [] }
    characteristic = characteristics.first { $0.uuid == Self.value } as? CBMutableCharacteristic
    let subscribers = characteristic?.subscribedCentrals?.count ?? 0
    say(
      "restored \(services.count) services, \(subscribers) subscribers, advertising \(peripheral.isAdvertising)"
    )
  }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    guard peripheral.state == .poweredOn else { return say("waiting for Bluetooth") }
    if characteristic == nil { publish(on: peripheral) }
    if !peripheral.isAdvertising {
      peripheral.startAdvertising([
        CBAdvertisementDataLocalNameKey: "counter", CBAdvertisementDataServiceUUIDsKey: [Self.service],
      ])
    } else {
      say("advertising")
    }
  }

  private func publish(on manager: CBPeripheralManager) {
    let value = CBMutableCharacteristic(type: Self.value, properties: .notify, value: nil, permissions: [])
    let service = CBMutableService(type: Self.service, primary: true)
    service.characteristics = [value]
    characteristic = value
    manager.add(service)
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    say(error.map { "not advertising: \($0.localizedDescription)" } ?? "advertising")
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
  ) {
    say("subscribed")
    guard timer == nil else { return }
    let timer = Timer(timeInterval: 0.1, repeats: true) { [weak self] _ in self?.notify() }
    RunLoop.main.add(timer, forMode: .default)
    self.timer = timer
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) {
    say("unsubscribed")
    guard self.characteristic?.subscribedCentrals?.isEmpty != false else { return }
    timer?.invalidate()
    timer = nil
  }

  private func notify() {
    guard let manager, let characteristic else { return }
    // A value for which there is no room is left out: the next one is as good.
    let value = Data(String(count).utf8)
    if manager.updateValue(value, for: characteristic, onSubscribedCentrals: nil) { count += 1 }
  }

  func forget() {
    manager?.stopAdvertising()
    manager?.removeAllServices()
    // Written on the manager's queue, which is this one, before anything that is put on it now.
    DispatchQueue.main.async { exit(0) }
  }
}
