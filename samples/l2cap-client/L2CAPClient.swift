import CoreBluetooth
import Foundation

/// Sends 20 000 octets through the L2CAP channel of `l2cap-server` and compares what comes back.
@main
struct L2CAPClient {
  static func main() {
    let client = Client()
    client.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
      say("not done within a minute")
      exit(1)
    }
    RunLoop.main.run()
    withExtendedLifetime(client) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

final class Client: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, StreamDelegate {
  private static let service = CBUUID(string: "5AE0B000-6563-686F-0000-000000000000")
  private static let psm = CBUUID(string: CBUUIDL2CAPPSMCharacteristicString)

  private let data = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 11 ^ $0 >> 8) }
  private var sent = 0
  private var received: [UInt8] = []
  private var central: CBCentralManager?
  private var peripheral: CBPeripheral?
  /// Held: a channel that nobody holds is closed.
  private var channel: CBL2CAPChannel?

  func start() { central = CBCentralManager(delegate: self, queue: nil) }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn: central.scanForPeripherals(withServices: [Self.service])
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
    peripheral.discoverServices([Self.service])
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    for service in peripheral.services ?? [] { peripheral.discoverCharacteristics([Self.psm], for: service) }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    for characteristic in service.characteristics ?? [] { peripheral.readValue(for: characteristic) }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    guard let octets = characteristic.value.map({ [UInt8]($0) }), octets.count == 2 else {
      say("the peripheral tells no PSM")
      exit(1)
    }
    peripheral.openL2CAPChannel(CBL2CAPPSM(octets[0]) | CBL2CAPPSM(octets[1]) << 8)
  }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
    guard let channel else {
      say("no channel: \(error?.localizedDescription ?? "for unknown reasons")")
      exit(1)
    }
    say("the channel is open")
    self.channel = channel
    for case let stream? in [channel.inputStream, channel.outputStream] as [Stream?] {
      stream.delegate = self
      stream.schedule(in: .main, forMode: .default)
      stream.open()
    }
  }

  func stream(_ stream: Stream, handle event: Stream.Event) {
    switch event {
    case .hasSpaceAvailable: send()
    case .hasBytesAvailable: receive()
    case .errorOccurred, .endEncountered:
      say("the channel ended early: \(stream.streamError?.localizedDescription ?? "the peer closed it")")
      exit(1)
    default: break
    }
  }

  /// One event, one write; what is left goes with the next event.
  private func send() {
    guard let output = channel?.outputStream, sent < data.count else { return }
    let rest = Array(data[sent..<min(sent + 1000, data.count)])
    sent += max(output.write(rest, maxLength: rest.count), 0)
    if sent == data.count { say("sent \(sent) octets") }
  }

  private func receive() {
    guard let channel, let input = channel.inputStream, let output = channel.outputStream else { return }
    var buffer = [UInt8](repeating: 0, count: 1000)
    let count = input.read(&buffer, maxLength: buffer.count)
    received += buffer.prefix(max(count, 0))
    guard received.count >= data.count, let peripheral else { return }
    say("received \(received.count) octets, \(received == data ? "the same" : "others")")
    input.close()
    output.close()
    central?.cancelPeripheralConnection(peripheral)
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    say(error.map { "the link was lost: \($0.localizedDescription)" } ?? "disconnected")
    exit(received == data ? 0 : 1)
  }
}
