import CoreBluetooth
import Foundation
import Radio
import Testing

/// A peripheral program that is started again and again on a fake radio, each time with the same identifier.
final class RestoringPeripheral: @unchecked Sendable {
  static let file = "peripheral.bench.json"

  let folder = StateFolder()
  let log = Lines()
  private(set) var queue = TestQueue(.serial)
  private(set) var radio = FakeRadio(first: nil)
  private(set) var recorder = PeripheralRecorder()
  // Sendable: tests start and stop it from one task.
  private(set) var manager: CBPeripheralManager?

  /// Starts the program; the state of Bluetooth is told afterwards.
  ///
  /// - Parameter react: runs inside each callback.
  func start(
    first: AdapterState? = .poweredOn, identifier: Any = "bench", _ kind: QueueKind = .serial,
    delegate: (any CBPeripheralManagerDelegate)? = nil, react: (@Sendable (String) -> Void)? = nil
  ) async throws {
    queue = TestQueue(kind)
    radio = FakeRadio(first: first)
    recorder = PeripheralRecorder()
    recorder.react(react)
    manager = CBPeripheralManager(
      delegate: delegate ?? recorder, queue: queue.argument,
      options: [
        CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: log.handler,
        CBPeripheralManagerOptionRestoreIdentifierKey: identifier,
        CBManagerOptionStateDirectoryKey: folder.path,
      ])
    await queue.drain()
  }

  /// The end of the process, for what is saved.
  func stop() { manager = nil }

  var peripheral: FakePeripheral {
    get throws { try #require(radio.peripheral) }
  }

  func post(_ events: PeripheralEvent...) async throws {
    for event in events { try peripheral.post(event) }
    await queue.drain()
  }

  /// Adds a service and answers for the radio.
  @discardableResult func add(_ service: CBMutableService) async throws -> LocalService {
    try #require(manager).add(service)
    guard case .add(let local) = try peripheral.commands.last else {
      throw RadioError(.other, "the radio was given no service")
    }
    try await post(.serviceAdded(local.id, .success(())))
    return local
  }

  func advertise(_ data: [String: Any]?) async throws {
    try #require(manager).startAdvertising(data)
    try await post(.advertisingStarted(.success(())))
  }

  /// Services that the radio was given.
  func added() throws -> [LocalService] {
    try peripheral.commands.compactMap { if case .add(let service) = $0 { service } else { nil } }
  }

  var saved: String? { folder.text(Self.file) }
}

/// A delegate that has no method for restored state.
final class PlainPeripheralDelegate: NSObject, CBPeripheralManagerDelegate {
  let lines = Lines()

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    lines.append("state \(peripheral.state)")
  }
}
