import BlueZRadio
import DBus
import Foundation
import Locking
import Radio
import RealStack
import Testing

/// A central on hci0 and a peripheral on hci1 of the virtual machine's bluetoothd, which answers by itself.
final class DaemonPair: Sendable {
  static let first = BluetoothUUID(UInt16(0xFFC0))
  static let second = BluetoothUUID(UInt16(0xFFC1))
  static let third = BluetoothUUID(UInt16(0xFFC2))

  let centralEvents = Arrivals<CentralEvent>()
  let peripheralEvents = Arrivals<PeripheralEvent>()
  let central: any CentralRadio
  let bus: DBusConnection
  private let responder = Responder()
  private let lastRequest = PosixMutex<UInt64>(0)

  /// Adapters begin without knowing each other.
  init() async throws {
    bus = try await DBusConnection.open(.system)
    for (path, interfaces) in try await bus.managedObjects(at: "/", destination: "org.bluez") {
      guard case .objectPath(let adapter)? = interfaces["org.bluez.Device1"]?["Adapter"] else { continue }
      // It may go by itself meanwhile.
      try? await Self.forget(path, of: adapter, bus)
    }
    let radio = try BlueZRadio(adapter: "hci0")
    let other = try BlueZRadio(adapter: "hci1")
    central = radio.makeCentral { [centralEvents] in centralEvents.put($0) }
    responder.use(
      other.makePeripheral { [responder, peripheralEvents] event in
        responder.answer(event)
        peripheralEvents.put(event)
      })
    try await expectState(.poweredOn)
  }

  /// Has the daemon forget a device, and its bond; it does not answer that while it ends the device's link, which it does answer.
  static func forget(_ device: ObjectPath, of adapter: ObjectPath, _ bus: DBusConnection) async throws {
    _ = try? await bus.call(
      .call(destination: "org.bluez", path: device, interface: "org.bluez.Device1", member: "Disconnect"))
    _ = try await bus.call(
      .call(
        destination: "org.bluez", path: adapter, interface: "org.bluez.Adapter1", member: "RemoveDevice",
        body: [.objectPath(device)]))
  }

  /// The peripheral would hold itself by what it calls.
  func end() async {
    responder.use(nil)
    await bus.close()
  }

  var peripheral: any PeripheralRadio {
    get throws { try #require(responder.peripheral) }
  }

  // MARK: The peripheral

  /// What was written to a characteristic with response.
  func stored(_ characteristic: UInt64) -> Data? { responder.stored(LocalCharacteristicID(characteristic)) }

  /// A service with a characteristic that takes requests (its number), one that takes commands (+ 1) and one that notifies (+ 2).
  static func service(_ uuid: BluetoothUUID, _ number: UInt64, isProtected: Bool = false) -> LocalService {
    LocalService(
      id: LocalServiceID(number), uuid: uuid, isPrimary: true,
      characteristics: [
        LocalCharacteristic(
          id: LocalCharacteristicID(number), uuid: BluetoothUUID(UInt16(0xFF00)),
          properties: [.read, .write],
          permissions: isProtected ? [.read, .writeEncrypted] : [.read, .write]),
        LocalCharacteristic(
          id: LocalCharacteristicID(number + 1), uuid: BluetoothUUID(UInt16(0xFF01)),
          properties: .writeWithoutResponse, permissions: .write),
        LocalCharacteristic(
          id: LocalCharacteristicID(number + 2), uuid: BluetoothUUID(UInt16(0xFF02)), properties: .notify,
          permissions: []),
      ])
  }

  func publish(_ services: [LocalService], sourceLocation: SourceLocation = #_sourceLocation) async throws {
    for service in services {
      try peripheral.addService(service)
      try await peripheralEvents.first(sourceLocation: sourceLocation) { event in
        if case .serviceAdded(service.id, .success) = event { () } else { nil }
      }
    }
  }

  func expectState(_ state: AdapterState) async throws {
    try await centralEvents.first { if case .adapterStateChanged(state) = $0 { () } else { nil } }
    try await peripheralEvents.first { if case .adapterStateChanged(state) = $0 { () } else { nil } }
  }

  // MARK: The central

  var peer: PeerID {
    get throws {
      try #require(
        BlueZRadio.identifiers(ofAddress: Guest.address(of: 1)).map { PeerID($0) }.first)
    }
  }

  /// Advertises while `body` runs.
  func advertising<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
    let peripheral = try peripheral
    peripheral.startAdvertising(Advertisement(localName: "pair", services: [Self.first]))
    defer { peripheral.stopAdvertising() }
    try await peripheralEvents.first { event in
      if case .advertisingStarted(let result) = event { result } else { nil }
    }.get()
    return try await Guest.repeatingAdvertising(of: ["hci1"], while: body)
  }

  func connect(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let peer = try peer
    try await advertising {
      central.connect(peer)
      try await centralEvents.first(sourceLocation: sourceLocation) { event in
        if case .connected(peer, _) = event { () } else { nil }
      }
    }
  }

  /// Ends the link, and waits until both sides know.
  func disconnect() async throws {
    central.cancelConnection(try peer)
    try await centralEvents.first { if case .disconnected = $0 { () } else { nil } }
  }

  func ask(_ request: GATTRequest) async throws -> Result<GATTReply, GATTFailure> {
    let id = RequestID(
      lastRequest.withLock {
        $0 += 1
        return $0
      })
    central.request(request, of: try peer, id: id)
    return try await centralEvents.first { event in
      switch event {
      case .completed(id, _, let result): result
      case .disconnected(_, let error, _):
        .failure(.radio(error ?? RadioError(.notConnected, "the link has ended")))
      default: nil
      }
    }
  }

  /// Characteristics of a service, in the order of handles.
  func discover(_ service: BluetoothUUID) async throws -> [RemoteCharacteristic] {
    guard case .services(let services) = try await ask(.discoverServices([service])).get(),
      let found = services.first,
      case .characteristics(let all) = try await ask(.discoverCharacteristics(of: found, nil)).get()
    else { return [] }
    return all
  }

  /// Writes a value to the first characteristic of a service and tells whether it has arrived there.
  func works(_ service: BluetoothUUID, _ number: UInt64, _ value: Data) async throws -> Bool {
    let found = try await discover(service)
    let characteristic = try #require(found.first)
    _ = try await ask(.write(characteristic.handle, value)).get()
    return stored(number) == value
  }

  /// Where the daemon has an attribute of the peripheral, for a program that is not ours.
  func path(_ characteristic: BluetoothUUID) async throws -> ObjectPath {
    let objects = try await bus.managedObjects(at: "/", destination: "org.bluez")
    let digits = characteristic.description.lowercased()
    let found = objects.first { path, interfaces in
      guard path.isWithin("/org/bluez/hci0"),
        case .string(let uuid)? = interfaces["org.bluez.GattCharacteristic1"]?["UUID"]
      else { return false }
      return uuid.hasPrefix("0000\(digits)-")
    }
    return try #require(found?.key)
  }
}

/// Answers everything that a central asks for, and keeps what it writes with response.
private final class Responder: Sendable {
  private struct State: Sendable {
    var peripheral: (any PeripheralRadio)?
    var stored: [LocalCharacteristicID: Data] = [:]
  }

  private let state = PosixMutex(State())

  var peripheral: (any PeripheralRadio)? { state.withLock { $0.peripheral } }

  func use(_ peripheral: (any PeripheralRadio)?) { state.withLock { $0.peripheral = peripheral } }

  func stored(_ characteristic: LocalCharacteristicID) -> Data? {
    state.withLock { $0.stored[characteristic] }
  }

  func answer(_ event: PeripheralEvent) {
    switch event {
    case .read(let id, _, let characteristic, let offset):
      peripheral?.respond(toRead: id, with: .success((stored(characteristic) ?? Data()).dropFirst(offset)))
    case .write(let id, _, let writes, let needsResponse):
      if needsResponse {
        state.withLock { state in for write in writes { state.stored[write.characteristic] = write.value } }
      }
      peripheral?.respond(toWrites: id, with: .success(()))
    default: break
    }
  }
}
