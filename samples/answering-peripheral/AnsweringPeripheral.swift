import CoreBluetooth
import Foundation

/// A peripheral that keeps a note and counts uploads, and answers each request itself. Ends when its last listener has left.
@main
struct AnsweringPeripheral {
  static func main() {
    let notebook = Notebook()
    notebook.start()
    RunLoop.main.run()
    withExtendedLifetime(notebook) {}
  }
}

/// Prints a line at once, also into a pipe.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }

final class Notebook: NSObject, CBPeripheralManagerDelegate {
  private static let longestNote = 400

  private var manager: CBPeripheralManager?
  private let service = CBMutableService(
    type: CBUUID(string: "5AE0A000-6E6F-7465-626F-6F6B00000000"), primary: true)
  /// Text to read and write; values longer than one packet come in parts.
  private let note = CBMutableCharacteristic(
    type: CBUUID(string: "5AE0A001-6E6F-7465-626F-6F6B00000000"), properties: [.read, .write], value: nil,
    permissions: [.readable, .writeable])
  /// Tells the note's length each time it has changed.
  private let length = CBMutableCharacteristic(
    type: CBUUID(string: "5AE0A002-6E6F-7465-626F-6F6B00000000"), properties: .notify, value: nil,
    permissions: [])
  /// Takes bytes without answering, and tells how many came and their sum.
  private let upload = CBMutableCharacteristic(
    type: CBUUID(string: "5AE0A003-6E6F-7465-626F-6F6B00000000"),
    properties: [.read, .writeWithoutResponse], value: nil, permissions: [.readable, .writeable])

  private var text = Data("nothing yet".utf8)
  private var uploaded: (count: UInt32, sum: UInt32) = (0, 0)
  private var untold: Data?

  func start() { manager = CBPeripheralManager(delegate: self, queue: nil) }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    switch peripheral.state {
    case .poweredOn:
      service.characteristics = [note, length, upload]
      peripheral.add(service)
    case .unsupported, .unauthorized:
      say("Bluetooth cannot be used here")
      exit(1)
    default: break
    }
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service.uuid]])
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    say(error.map { "cannot advertise: \($0.localizedDescription)" } ?? "advertising")
    if error != nil { exit(1) }
  }

  /// A long value is read in parts: the request says from which octet on.
  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
    let value = request.characteristic.uuid == note.uuid ? text : summary
    guard request.offset <= value.count else {
      return peripheral.respond(to: request, withResult: .invalidOffset)
    }
    request.value = value.dropFirst(request.offset)
    peripheral.respond(to: request, withResult: .success)
  }

  /// The requests of one call are all done or none is, and the first is answered for all.
  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    guard let first = requests.first else { return }
    var written = Data()
    for request in requests where request.characteristic.uuid == note.uuid {
      guard request.offset <= written.count else {
        return peripheral.respond(to: first, withResult: .invalidOffset)
      }
      written = written.prefix(request.offset) + (request.value ?? Data())
      guard written.count <= Self.longestNote else {
        say("refused a note that is too long")
        return peripheral.respond(to: first, withResult: .invalidAttributeValueLength)
      }
    }
    for request in requests where request.characteristic.uuid == upload.uuid {
      for octet in request.value ?? Data() { uploaded = (uploaded.count &+ 1, uploaded.sum &+ UInt32(octet)) }
    }
    peripheral.respond(to: first, withResult: .success)
    if first.characteristic.uuid == note.uuid {
      text = written
      say("the note has \(text.count) octets now")
      untold = Data([UInt8(text.count & 0xFF), UInt8(text.count >> 8)])
      tell(peripheral)
    }
  }

  private var summary: Data {
    var value = Data()
    for number in [uploaded.count, uploaded.sum] {
      for shift in [0, 8, 16, 24] as [UInt32] { value.append(UInt8(number >> shift & 0xFF)) }
    }
    return value
  }

  /// Notifies; where there is no room now, the manager says when there is.
  private func tell(_ manager: CBPeripheralManager) {
    guard let value = untold else { return }
    if manager.updateValue(value, for: length, onSubscribedCentrals: nil) { untold = nil }
  }

  func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { tell(peripheral) }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) {
    guard length.subscribedCentrals?.isEmpty ?? true else { return }
    say("\(uploaded.count) octets were uploaded")
    exit(0)
  }
}
