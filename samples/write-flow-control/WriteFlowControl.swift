import CoreBluetooth
import Foundation

/// Uploads to `answering-peripheral` without responses, as fast as the link takes it, and then asks whether everything came.
///
/// Nobody answers such a write, so `canSendWriteWithoutResponse` is asked before each: what is written in spite of it may be dropped.
@main
struct WriteFlowControl {
  static func main() {
    let uploader = Uploader()
    uploader.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
      say("not done within a minute")
      exit(1)
    }
    RunLoop.main.run()
    withExtendedLifetime(uploader) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

enum ID {
  static let service = CBUUID(string: "5AE0A000-6E6F-7465-626F-6F6B00000000")
  static let length = CBUUID(string: "5AE0A002-6E6F-7465-626F-6F6B00000000")
  static let upload = CBUUID(string: "5AE0A003-6E6F-7465-626F-6F6B00000000")
}

final class Uploader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
  private let data = Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) })
  private var sent = 0
  private var isWhole = false
  private var central: CBCentralManager?
  private var peripheral: CBPeripheral?
  private var upload: CBCharacteristic?

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
      peripheral.discoverCharacteristics([ID.length, ID.upload], for: service)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    upload = service.characteristics?.first {
      $0.uuid == ID.upload && $0.properties.contains([.read, .writeWithoutResponse])
    }
    guard let length = service.characteristics?.first(where: { $0.uuid == ID.length }), upload != nil else {
      say("this peripheral takes no uploads")
      exit(1)
    }
    // The peripheral ends when its last listener has left.
    peripheral.setNotifyValue(true, for: length)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    say("uploading \(data.count) octets")
    pump(peripheral)
  }

  /// Writes until there is no more room, in pieces as long as the link carries at this moment.
  private func pump(_ peripheral: CBPeripheral) {
    guard let upload, sent < data.count else { return }
    while sent < data.count, peripheral.canSendWriteWithoutResponse {
      let length = peripheral.maximumWriteValueLength(for: .withoutResponse)
      let piece = data.dropFirst(sent).prefix(length)
      peripheral.writeValue(Data(piece), for: upload, type: .withoutResponse)
      sent += piece.count
    }
    // Where bytes are left, the peripheral object says when there is room again.
    if sent == data.count { peripheral.readValue(for: upload) }
  }

  func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { pump(peripheral) }

  /// The read comes after all writes: packets of one link do not overtake each other.
  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    guard characteristic.uuid == ID.upload else { return }
    let octets = [UInt8](characteristic.value ?? Data())
    func number(at i: Int) -> Int { octets.dropFirst(i).prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) } }
    isWhole = number(at: 0) == data.count && number(at: 4) == data.reduce(0) { $0 + Int($1) }
    say("\(number(at: 0)) octets arrived, \(isWhole ? "all of them" : "which is wrong")")
    central?.cancelPeripheralConnection(peripheral)
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    say(error.map { "the link was lost: \($0.localizedDescription)" } ?? "disconnected")
    exit(isWhole ? 0 : 1)
  }
}
