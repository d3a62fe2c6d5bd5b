import CoreBluetooth
import Locking
import Foundation
import Radio
import Testing

/// Writes down every callback of the peripheral role, and runs what a test wants done in it.
final class PeripheralRecorder: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
  let lines = Lines()
  let watch = CallWatch()
  private let reaction = PosixMutex(Reaction())

  /// Holds a closure: one that is a generic value itself is wrapped anew each time that it is read in place.
  private struct Reaction: Sendable {
    var run: (@Sendable (String) -> Void)?
  }

  private struct Held {
    var requests: [CBATTRequest] = []
    var channels: [CBL2CAPChannel] = []
    var services: [CBMutableService] = []
    weak var manager: CBPeripheralManager?
  }

  private let held = PosixMutex(Held())

  func react(_ reaction: (@Sendable (String) -> Void)?) { self.reaction.withLock { $0.run = reaction } }

  /// Requests that wait for an answer.
  var requests: [CBATTRequest] { held.withLock { $0.requests } }
  var channels: [CBL2CAPChannel] { held.withLock { $0.channels } }
  /// Services of a former run.
  var restoredServices: [CBMutableService] { held.withLock { $0.services } }
  /// The manager of the last callback.
  var manager: CBPeripheralManager? { held.withLock { $0.manager } }
  func letGo() { held.withLock { $0 = Held() } }
  func letGoOfRequests() { held.withLock { $0.requests = [] } }

  private func note(_ line: String) {
    watch.during {
      lines.append(line)
      reaction.withLock { $0.run }?(line)
    }
  }

  private func text(_ error: (any Error)?) -> String { error.map { " error \(($0 as NSError).code)" } ?? "" }

  func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
    held.withLock { $0.manager = peripheral }
    let services = dict[CBPeripheralManagerRestoredStateServicesKey] as? [CBMutableService]
    if let services { held.withLock { $0.services = services } }
    let data = dict[CBPeripheralManagerRestoredStateAdvertisementDataKey] as? [String: Any]
    let name = data?[CBAdvertisementDataLocalNameKey] as? String
    let uuids = data?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID]
    let words = [
      services.map { "services \($0.map(\.uuid.uuidString))" }, name.map { "name \($0)" },
      uuids.map { "advertised \($0.map(\.uuidString))" },
    ]
    note((["restored"] + words.compactMap { $0 }).joined(separator: " "))
  }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    held.withLock { $0.manager = peripheral }
    note("state \(peripheral.state)")
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    note("advertising \(peripheral.isAdvertising)\(text(error))")
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    note("added \(service.uuid)\(text(error))")
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
  ) { note("subscribed \(characteristic.uuid)") }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) { note("unsubscribed \(characteristic.uuid)") }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
    held.withLock { $0.requests.append(request) }
    note("read \(request.characteristic.uuid) from \(request.offset)")
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    held.withLock { $0.requests += requests }
    note(
      "write "
        + requests.map { "\($0.characteristic.uuid)+\($0.offset):\($0.value?.count ?? -1)" }.joined(
          separator: " "))
  }

  func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { note("ready") }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) { note("published \(PSM)\(text(error))") }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) { note("unpublished \(PSM)\(text(error))") }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
  ) {
    if let channel { held.withLock { $0.channels.append(channel) } }
    note("channel \(channel.map { String($0.psm) } ?? "nil")\(text(error))")
  }
}

/// A peripheral manager on a fake radio.
final class PeripheralRig: Sendable {
  let radio = FakeRadio()
  let peripheral: FakePeripheral
  let queue: TestQueue
  let recorder = PeripheralRecorder()
  let log = Lines()
  let manager: CBPeripheralManager
  let central = PeerID(UUID())

  init(_ kind: QueueKind = .serial) async throws {
    queue = TestQueue(kind)
    manager = CBPeripheralManager(
      delegate: recorder, queue: queue.argument,
      options: [CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: log.handler])
    peripheral = try #require(radio.peripheral)
    await queue.drain()
    _ = recorder.lines.take()
  }

  func drain() async { await queue.drain() }

  func post(_ events: PeripheralEvent...) async {
    for event in events { peripheral.post(event) }
    await drain()
  }

  /// Adds a service and answers for the radio; returns what the radio was given.
  func add(_ service: CBMutableService) async throws -> LocalService {
    manager.add(service)
    guard case .add(let local) = peripheral.takeCommands().last else {
      throw RadioError(.other, "the radio was given no service")
    }
    await post(.serviceAdded(local.id, .success(())))
    _ = recorder.lines.take()
    return local
  }
}

/// A service with one dynamic characteristic of each use.
struct LocalExample: Sendable {
  let service = CBMutableService(type: CBUUID(string: "1234"), primary: true)
  let data = CBMutableCharacteristic(
    type: CBUUID(string: "AA01"), properties: [.read, .write, .writeWithoutResponse], value: nil,
    permissions: [.readable, .writeable])
  let updates = CBMutableCharacteristic(
    type: CBUUID(string: "AA02"), properties: [.notify, .indicate], value: nil, permissions: [])

  init() { service.characteristics = [data, updates] }

  /// A characteristic that is written and nothing else.
  static func written(_ uuid: String) -> CBMutableCharacteristic {
    CBMutableCharacteristic(
      type: CBUUID(string: uuid), properties: .write, value: nil, permissions: .writeable)
  }
}
