import BlueZRadio
import CoreBluetooth
import Dispatch
import Foundation
import Locking
import Testing

/// A device on Core Bluetooth, on hci1: notes that are read and written, commands, updates and a channel.
final class Gadget: NSObject, Sendable {
  static let service = CBUUID(string: "5B1D0000-7465-7374-A000-000000000000")
  static let note = CBUUID(string: "5B1D0001-7465-7374-A000-000000000000")
  static let otherNote = CBUUID(string: "5B1D0002-7465-7374-A000-000000000000")
  static let command = CBUUID(string: "5B1D0003-7465-7374-A000-000000000000")
  static let updates = CBUUID(string: "5B1D0004-7465-7374-A000-000000000000")

  enum Event: Sendable {
    case state(CBManagerState)
    case added(Failure?)
    case advertising(Failure?)
    case written(CBUUID, Data)
    case subscribed(CBCentral)
    case published(CBL2CAPPSM, Failure?)
    case opened(CBL2CAPChannel?, Failure?)
  }

  let events = Events<Event>()
  private let updates = CBMutableCharacteristic(
    type: Gadget.updates, properties: .notify, value: nil, permissions: [])
  private let holder = PosixMutex<CBPeripheralManager?>(nil)
  /// Counts reads of each note: it is what they give.
  private let reads = PosixMutex<[CBUUID: UInt8]>([:])

  var manager: CBPeripheralManager {
    get throws { try #require(holder.withLock { $0 }) }
  }

  /// Returns once it advertises.
  static func start() async throws -> Gadget {
    let gadget = Gadget()
    let manager = CBPeripheralManager(
      delegate: gadget, queue: DispatchQueue(label: "gadget"),
      options: [CBManagerOptionRadioKey: try BlueZRadio(adapter: "hci1")])
    gadget.holder.withLock { $0 = manager }
    try await gadget.publish()
    return gadget
  }

  /// Publishes and advertises as soon as the adapter is on.
  func publish() async throws {
    try await events.first { if case .state(.poweredOn) = $0 { () } else { nil } }
    let notes = [Self.note, Self.otherNote].map { uuid in
      let note = CBMutableCharacteristic(
        type: uuid, properties: [.read, .write], value: nil, permissions: [.readable, .writeable])
      note.descriptors = [
        CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "a note")
      ]
      return note
    }
    let command = CBMutableCharacteristic(
      type: Self.command, properties: .writeWithoutResponse, value: nil, permissions: .writeable)
    let service = CBMutableService(type: Self.service, primary: true)
    service.characteristics = notes + [command, updates]
    try manager.add(service)
    let refused = try await events.first {
      if case .added(let failure) = $0 { Optional(failure) } else { nil }
    }
    try #require(refused == nil)
    try await advertise()
  }

  /// Returns once it advertises; that ends with the adapter's power.
  func advertise() async throws {
    try manager.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [Self.service]])
    let failure = try await events.first {
      if case .advertising(let failure) = $0 { Optional(failure) } else { nil }
    }
    try #require(failure == nil)
  }

  /// Offers a channel and returns its PSM.
  func publishChannel() async throws -> CBL2CAPPSM {
    try manager.publishL2CAPChannel(withEncryption: false)
    let (psm, failure) = try await events.first {
      if case .published(let psm, let failure) = $0 { (psm, failure) } else { nil }
    }
    try #require(failure == nil)
    return psm
  }

  /// Tells subscribers; false where there is no room.
  func tell(_ data: Data) throws -> Bool {
    try manager.updateValue(data, for: updates, onSubscribedCentrals: nil)
  }
}

extension Gadget: CBPeripheralManagerDelegate {
  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    events.put(.state(peripheral.state))
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    events.put(.added(Failure(error)))
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    events.put(.advertising(Failure(error)))
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
    let uuid = request.characteristic.uuid
    let number = reads.withLock { reads in
      reads[uuid, default: 0] += 1
      return reads[uuid] ?? 0
    }
    request.value = Data([number])
    peripheral.respond(to: request, withResult: .success)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    guard let first = requests.first else { return }
    peripheral.respond(to: first, withResult: .success)
    let whole = requests.reduce(into: Data()) { $0 += $1.value ?? Data() }
    events.put(.written(first.characteristic.uuid, whole))
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
  ) { events.put(.subscribed(central)) }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) { events.put(.published(PSM, Failure(error))) }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
  ) { events.put(.opened(channel, Failure(error))) }
}
