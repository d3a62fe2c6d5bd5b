import CoreBluetooth
import Foundation
import Radio
import Testing

/// A central manager on a fake radio, and one device to connect to.
final class CentralRig: Sendable {
  let radio: FakeRadio
  let central: FakeCentral
  let queue: TestQueue
  let recorder: CentralRecorder
  let log = Lines()
  let manager: CBCentralManager
  let peer = PeerID(UUID())

  init(_ kind: QueueKind = .serial, first: AdapterState? = .poweredOn, holds: Bool = true) async throws {
    radio = FakeRadio(first: first)
    queue = TestQueue(kind)
    recorder = CentralRecorder(holds: holds)
    manager = CBCentralManager(
      delegate: recorder, queue: queue.argument,
      options: [CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: log.handler])
    central = try #require(radio.central)
    await queue.drain()
  }

  func drain() async { await queue.drain() }

  /// Posts events and waits until they were told.
  func post(_ events: CentralEvent...) async {
    for event in events { central.post(event) }
    await drain()
  }

  func sighting(
    _ name: String? = "bench", of peer: PeerID? = nil, services: [BluetoothUUID] = []
  ) -> CentralEvent {
    .discovered(
      Sighting(
        peer: peer ?? self.peer, advertisement: Advertisement(localName: name, services: services), rssi: -40,
        isConnectable: true))
  }

  /// The device's object, found by a scan.
  func discovered() async throws -> CBPeripheral {
    manager.scanForPeripherals(withServices: nil)
    await post(sighting())
    manager.stopScan()
    let peripheral = try #require(recorder.peripherals.last)
    peripheral.delegate = recorder
    return peripheral
  }

  /// The device's object, connected.
  func connected(options: [String: Any]? = nil) async throws -> CBPeripheral {
    let peripheral = try await discovered()
    manager.connect(peripheral, options: options)
    await post(.connected(peer, name: nil))
    try #require(peripheral.state == .connected)
    return peripheral
  }

  /// The device's object, connected, with everything of ``FakeDatabase`` discovered.
  func explored(options: [String: Any]? = nil) async throws -> (CBPeripheral, FakeDatabase.Objects) {
    let peripheral = try await connected(options: options)
    central.setScript(FakeDatabase.script(peer))
    peripheral.discoverServices(nil)
    await drain()
    let service = try #require(peripheral.services?.first)
    peripheral.discoverCharacteristics(nil, for: service)
    await drain()
    central.setScript(nil)
    _ = central.takeCommands()
    _ = recorder.lines.take()
    return (peripheral, try FakeDatabase.Objects(service))
  }

  /// The identifiers of the requests that were made since they were last taken.
  func takeRequests() -> [RequestID] {
    central.takeCommands().compactMap { command in
      switch command {
      case .request(_, let id), .openChannel(_, let id): id
      default: nil
      }
    }
  }
}

/// A small GATT database of a device.
enum FakeDatabase {
  static let service = RemoteService(handles: 1...20, uuid: BluetoothUUID(0x180D as UInt16), isPrimary: true)
  static let other = RemoteService(handles: 30...40, uuid: BluetoothUUID(0x180F as UInt16), isPrimary: true)

  static let notifying = RemoteCharacteristic(
    handle: 3, endHandle: 5, uuid: BluetoothUUID(0x2A37 as UInt16), properties: [.read, .notify])
  static let data = RemoteCharacteristic(
    handle: 7, endHandle: 8, uuid: BluetoothUUID(0x2A39 as UInt16),
    properties: [.write, .writeWithoutResponse])
  static let indicating = RemoteCharacteristic(
    handle: 10, endHandle: 12, uuid: BluetoothUUID(0x2A05 as UInt16), properties: [.indicate])
  static let plain = RemoteCharacteristic(
    handle: 14, endHandle: 14, uuid: BluetoothUUID(0x2A19 as UInt16), properties: [.read])

  static let characteristics = [notifying, data, indicating, plain]
  static let descriptors = [
    RemoteDescriptor(handle: 4, uuid: BluetoothUUID(0x2902 as UInt16)),
    RemoteDescriptor(handle: 5, uuid: BluetoothUUID(0x2901 as UInt16)),
  ]

  /// The discovered objects.
  struct Objects: Sendable {
    let service: CBService
    let notifying, data, indicating, plain: CBCharacteristic

    init(_ service: CBService) throws {
      self.service = service
      func find(_ remote: RemoteCharacteristic) throws -> CBCharacteristic {
        try #require(service.characteristics?.first { $0.uuid.uuidString == remote.uuid.description })
      }
      notifying = try find(FakeDatabase.notifying)
      data = try find(FakeDatabase.data)
      indicating = try find(FakeDatabase.indicating)
      plain = try find(FakeDatabase.plain)
    }
  }

  /// What the device answers.
  static func reply(to request: GATTRequest) -> GATTReply {
    func keep<Item>(_ items: [Item], _ filter: [BluetoothUUID]?, _ uuid: (Item) -> BluetoothUUID) -> [Item] {
      items.filter { filter?.contains(uuid($0)) ?? true }
    }
    switch request {
    case .discoverServices(let filter): return .services(keep([service, other], filter, \.uuid))
    case .discoverIncludedServices: return .services([other])
    case .discoverCharacteristics(of: let of, let filter):
      return .characteristics(of == service ? keep(characteristics, filter, \.uuid) : [])
    case .discoverDescriptors(let of): return .descriptors(of == notifying ? descriptors : [])
    case .read: return .value(Data([1, 2, 3]))
    case .readRSSI: return .rssi(-55)
    case .write, .setNotify: return .done
    }
  }

  /// Answers every request at once, inside the call that makes it.
  static func script(_ peer: PeerID) -> FakeCentral.Script {
    { central, command in
      if case .request(let request, let id) = command {
        central.post(.completed(id, peer, .success(reply(to: request))))
      }
    }
  }
}
