import CoreBluetooth
import Foundation

/// Offers an L2CAP channel, sends back what it receives, and ends with the first channel.
///
/// A characteristic tells the PSM, which the host chooses anew at each start.
@main
struct L2CAPServer {
  static func main() {
    let server = Server()
    server.start()
    RunLoop.main.run()
    withExtendedLifetime(server) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

final class Server: NSObject, CBPeripheralManagerDelegate, StreamDelegate {
  private static let service = CBUUID(string: "5AE0B000-6563-686F-0000-000000000000")
  /// The most that waits to be sent back: while it does, nothing more is read, and so the peer cannot send more.
  private static let mostWaiting = 4096

  private var manager: CBPeripheralManager?
  /// Held: a channel that nobody holds is closed.
  private var channel: CBL2CAPChannel?
  private var waiting: [UInt8] = []
  private var total = 0

  func start() { manager = CBPeripheralManager(delegate: self, queue: nil) }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    switch peripheral.state {
    case .poweredOn: peripheral.publishL2CAPChannel(withEncryption: false)
    case .unsupported, .unauthorized:
      say("Bluetooth cannot be used here")
      exit(1)
    default: break
    }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) {
    if let error {
      say("no channel: \(error.localizedDescription)")
      exit(1)
    }
    let service = CBMutableService(type: Self.service, primary: true)
    service.characteristics = [
      CBMutableCharacteristic(
        type: CBUUID(string: CBUUIDL2CAPPSMCharacteristicString), properties: .read,
        value: Data([UInt8(PSM & 0xFF), UInt8(PSM >> 8)]), permissions: .readable)
    ]
    peripheral.add(service)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [Self.service]])
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    say(error.map { "cannot advertise: \($0.localizedDescription)" } ?? "advertising")
    if error != nil { exit(1) }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
  ) {
    guard let channel, self.channel == nil else { return }
    say("a channel is open")
    self.channel = channel
    for case let stream? in [channel.inputStream, channel.outputStream] as [Stream?] {
      stream.delegate = self
      stream.schedule(in: .main, forMode: .default)
      stream.open()
    }
  }

  func stream(_ stream: Stream, handle event: Stream.Event) {
    switch event {
    case .hasBytesAvailable, .hasSpaceAvailable:
      // Room for more bytes makes it possible to read more, and the other way round.
      while receive() || send() {}
    case .endEncountered, .errorOccurred:
      // The client ends the link as soon as it has everything, so either may come.
      say("the channel has ended: \(total) octets came, \(waiting.count) were not sent back")
      exit(total > 0 && waiting.isEmpty ? 0 : 1)
    default: break
    }
  }

  /// Reads what is there and has room; false: nothing was.
  private func receive() -> Bool {
    guard let input = channel?.inputStream, input.hasBytesAvailable, waiting.count < Self.mostWaiting else {
      return false
    }
    var buffer = [UInt8](repeating: 0, count: Self.mostWaiting - waiting.count)
    let count = input.read(&buffer, maxLength: buffer.count)
    guard count > 0 else { return false }
    total += count
    waiting += buffer.prefix(count)
    return true
  }

  /// Writes what the stream takes, which may be less than all; false: nothing was.
  private func send() -> Bool {
    guard let output = channel?.outputStream, output.hasSpaceAvailable, !waiting.isEmpty else { return false }
    let count = output.write(waiting, maxLength: waiting.count)
    guard count > 0 else { return false }
    waiting.removeFirst(count)
    return true
  }
}
