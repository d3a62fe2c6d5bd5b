import CoreBluetooth
import Foundation
import Radio
import Testing

/// A central program that is started again and again on a fake radio, each time with the same identifier.
final class RestoringCentral: @unchecked Sendable {
  static let file = "central.logger.json"

  let folder = StateFolder()
  let log = Lines()
  let peer = PeerID(UUID())
  private(set) var queue = TestQueue(.serial)
  private(set) var radio = FakeRadio(first: nil)
  private(set) var recorder = CentralRecorder()
  // Sendable: tests start and stop it from one task.
  private(set) var manager: CBCentralManager?

  /// How far a run has come.
  enum Progress {
    /// A connection is pending.
    case waiting
    /// Connected, everything discovered, one characteristic notifying.
    case subscribed
  }

  /// A program whose first run has come so far and has ended; the next one is to be started.
  static func ended(_ progress: Progress) async throws -> RestoringCentral {
    let program = RestoringCentral()
    try await program.start()
    switch progress {
    case .waiting: program.manager?.connect(try await program.discovered())
    case .subscribed: _ = try await program.subscribed()
    }
    program.stop()
    return program
  }

  /// Starts the program; the state of Bluetooth is told afterwards.
  ///
  /// - Parameter react: runs inside each callback.
  func start(
    first: AdapterState? = .poweredOn, _ kind: QueueKind = .serial, holds: Bool = true,
    delegate: (any CBCentralManagerDelegate)? = nil, react: (@Sendable (String) -> Void)? = nil
  ) async throws {
    queue = TestQueue(kind)
    radio = FakeRadio(first: nil)
    recorder = CentralRecorder(holds: holds)
    recorder.react(react)
    manager = CBCentralManager(
      delegate: delegate ?? recorder, queue: queue.argument,
      options: [
        CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: log.handler,
        CBCentralManagerOptionRestoreIdentifierKey: "logger", CBManagerOptionStateDirectoryKey: folder.path,
      ])
    if let first { try central.set(first) }
    await queue.drain()
  }

  /// The end of the process, for what is saved.
  func stop() {
    manager = nil
    recorder.letGo()
  }

  var central: FakeCentral {
    get throws { try #require(radio.central) }
  }

  func post(_ events: CentralEvent...) async throws {
    for event in events { try central.post(event) }
    await queue.drain()
  }

  /// The device's object, found by a scan.
  func discovered(_ peer: PeerID? = nil, name: String = "bench") async throws -> CBPeripheral {
    let manager = try #require(manager)
    manager.scanForPeripherals(withServices: nil)
    try await post(
      .discovered(
        Sighting(
          peer: peer ?? self.peer, advertisement: Advertisement(localName: name), rssi: -40,
          isConnectable: true)))
    manager.stopScan()
    await queue.drain()
    let peripheral = try #require(recorder.peripherals.last)
    peripheral.delegate = recorder
    return peripheral
  }

  /// The device's object, connected.
  func connected(options: [String: Any]? = nil) async throws -> CBPeripheral {
    let peripheral = try await discovered()
    manager?.connect(peripheral, options: options)
    try await post(.connected(peer, name: nil))
    try #require(peripheral.state == .connected)
    return peripheral
  }

  /// The device's object, connected, with everything of ``FakeDatabase`` discovered and one characteristic notifying.
  func subscribed() async throws -> (CBPeripheral, FakeDatabase.Objects) {
    let peripheral = try await connected()
    try central.setScript(FakeDatabase.script(peer))
    peripheral.discoverServices(nil)
    await queue.drain()
    let service = try #require(peripheral.services?.first)
    peripheral.discoverIncludedServices(nil, for: service)
    peripheral.discoverCharacteristics(nil, for: service)
    await queue.drain()
    let objects = try FakeDatabase.Objects(service)
    peripheral.discoverDescriptors(for: objects.notifying)
    peripheral.setNotifyValue(true, for: objects.notifying)
    await queue.drain()
    try #require(objects.notifying.isNotifying)
    return (peripheral, objects)
  }

  /// The device's restored object.
  func restored() throws -> (CBPeripheral, FakeDatabase.Objects) {
    let peripheral = try #require(recorder.peripherals.first)
    return (peripheral, try FakeDatabase.Objects(#require(peripheral.services?.first)))
  }

  func requests() throws -> [GATTRequest] {
    try central.commands.compactMap { if case .request(let request, _) = $0 { request } else { nil } }
  }

  var saved: String? { folder.text(Self.file) }
}

/// A delegate that has no method for restored state.
final class PlainCentralDelegate: NSObject, CBCentralManagerDelegate {
  let lines = Lines()

  func centralManagerDidUpdateState(_ central: CBCentralManager) { lines.append("state \(central.state)") }
}

/// A delegate that has the newer method for the end of a link alone.
final class ReconnectingDelegate: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
  let lines = Lines()
  // Sendable: written on the manager's queue before the test reads it.
  private(set) var restored: [CBPeripheral] = []

  func centralManagerDidUpdateState(_ central: CBCentralManager) {}

  func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
    restored = dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? []
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
    isReconnecting: Bool, error: (any Error)?
  ) { lines.append("disconnected, reconnecting \(isReconnecting)") }
}
