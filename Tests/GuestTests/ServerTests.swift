import BlueZRadio
import DBus
import Dispatch
import Foundation
import Locking
import Radio
import RealStack
import Testing

/// A peripheral of bluetoothd: what it leaves behind, and what it does where a program is late.
@Suite(
  "A server on bluetoothd", .serialized,
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)), .timeLimit(.minutes(30)))
struct ServerTests {
  private static let service = BluetoothUUID(UInt16(0xFFE0))
  private static let value = BluetoothUUID(UInt16(0xFFE1))
  private static let adapter: ObjectPath = "/org/bluez/hci1"
  private static let manager = "org.bluez.LEAdvertisingManager1"

  private static func description(_ number: UInt64 = 1) -> LocalService {
    LocalService(
      id: LocalServiceID(number), uuid: service, isPrimary: true,
      characteristics: [
        LocalCharacteristic(
          id: LocalCharacteristicID(number), uuid: value, properties: [.read, .write],
          permissions: [.read, .write])
      ])
  }

  private func powered(_ events: Events<PeripheralEvent>) async throws {
    try await events.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
  }

  private func added(_ events: Events<PeripheralEvent>) async throws -> RadioError? {
    try await events.first { event -> RadioError?? in
      switch event {
      case .serviceAdded(_, .success): .some(nil)
      case .serviceAdded(_, .failure(let error)): .some(error)
      default: nil
      }
    }
  }

  private func started(_ events: Events<PeripheralEvent>) async throws -> RadioError? {
    try await events.first { event -> RadioError?? in
      switch event {
      case .advertisingStarted(.success): .some(nil)
      case .advertisingStarted(.failure(let error)): .some(error)
      default: nil
      }
    }
  }

  private func instances(_ bus: DBusConnection) async throws -> UInt8 {
    try UInt8(
      await bus.property("ActiveInstances", of: Self.manager, at: Self.adapter, destination: "org.bluez"))
  }

  @Test("Fifty times published and taken back, it leaves nothing behind")
  func leavesNothing() async throws {
    let bus = try await DBusConnection.open(.system)
    let changes = try await bus.signals(
      MatchRule(
        sender: "org.bluez", path: Self.adapter, interface: DBusWellKnown.properties,
        member: "PropertiesChanged"))
    try await {
      let events = Events<PeripheralEvent>()
      let radio = try BlueZRadio(adapter: "hci1")
      let peripheral = radio.makePeripheral { events.put($0) }
      try await powered(events)
      for number in 1...50 as ClosedRange<UInt64> {
        peripheral.startAdvertising(Advertisement(localName: "D", services: [Self.service]))
        #expect(try await started(events) == nil)
        peripheral.stopAdvertising()
        peripheral.addService(Self.description(number))
        #expect(try await added(events) == nil)
        peripheral.removeService(LocalServiceID(number))
      }
      peripheral.startAdvertising(Advertisement(localName: "D"))
      #expect(try await started(events) == nil)
      #expect(try await instances(bus) == 1)
      peripheral.startAdvertising(Advertisement(localName: "E"))
      #expect(try await started(events)?.code == .alreadyAdvertising)
    }()
    // The radio is gone now.
    for try await _ in changes where try await instances(bus) == 0 { break }
    await bus.close()
  }

  @Test("A daemon that is started again gets everything anew")
  func restart() async throws {
    let events = Events<PeripheralEvent>()
    let radio = try BlueZRadio(adapter: "hci1")
    let peripheral = radio.makePeripheral { events.put($0) }
    try await powered(events)
    for isAgain in [false, true] {
      peripheral.addService(Self.description())
      #expect(try await added(events) == nil)
      peripheral.startAdvertising(Advertisement(localName: "D", services: [Self.service]))
      #expect(try await started(events) == nil)
      guard !isAgain else { break }
      try await Guest.restartDaemon()
      try await powered(events)
    }
  }

  @Test("An answer counts for four seconds; later the central has an error, and the next request works")
  func lateAnswers() async throws {
    let server = Events<PeripheralEvent>()
    let serverRadio = try BlueZRadio(adapter: "hci1")
    let delay = PosixMutex(0.0)
    let queue = DispatchQueue(label: "server")
    let answerer = PosixMutex<(any PeripheralRadio)?>(nil)
    let peripheral = serverRadio.makePeripheral { event in
      guard case .read(let id, _, _, _) = event else { return server.put(event) }
      queue.asyncAfter(deadline: .now() + delay.withLock { $0 }) {
        let peripheral = answerer.withLock { $0 }
        peripheral?.respond(toRead: id, with: .success(Data("on time".utf8)))
        peripheral?.respond(toRead: id, with: .failure(.unlikelyError))
      }
    }
    answerer.withLock { $0 = peripheral }
    defer { answerer.withLock { $0 = nil } }
    try await powered(server)
    peripheral.addService(Self.description())
    #expect(try await added(server) == nil)

    let client = Events<CentralEvent>()
    let clientRadio = try BlueZRadio(adapter: "hci0")
    let central = clientRadio.makeCentral { client.put($0) }
    try await client.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
    central.startScan(ScanFilter(services: [Self.service]))
    peripheral.startAdvertising(Advertisement(localName: "D", services: [Self.service]))
    #expect(try await started(server) == nil)
    let peer = try await client.first {
      if case .discovered(let sighting) = $0 { sighting.peer } else { nil }
    }
    central.stopScan()
    central.connect(peer)
    try await client.first { if case .connected(peer, _) = $0 { () } else { nil } }
    var last: UInt64 = 0
    func ask(_ request: GATTRequest) async throws -> Result<GATTReply, GATTFailure> {
      last += 1
      let id = RequestID(last)
      central.request(request, of: peer, id: id)
      return try await client.first { if case .completed(id, _, let result) = $0 { result } else { nil } }
    }
    guard case .services(let services) = try await ask(.discoverServices([Self.service])).get(),
      let service = services.first,
      case .characteristics(let all) = try await ask(.discoverCharacteristics(of: service, nil)).get(),
      let handle = all.first(where: { $0.uuid == Self.value })?.handle
    else {
      Issue.record("the service was not found")
      return
    }
    for (seconds, isInTime) in [(0.0, true), (1, true), (3.5, true), (7, false), (0, true)] {
      delay.withLock { $0 = seconds }
      switch try await ask(.read(handle)) {
      case .success(.value(let value)):
        #expect(isInTime && value == Data("on time".utf8), "after \(seconds) s")
      case .failure(.att(let code)): #expect(!isInTime && code == .unlikelyError, "after \(seconds) s")
      default: Issue.record("another answer after \(seconds) s")
      }
    }
    central.cancelConnection(peer)
  }
}
