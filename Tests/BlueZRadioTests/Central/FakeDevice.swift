import DBus
import Dispatch
import Foundation
import Glibc
import Locking
import PrivateBus
import Radio
import Readiness
import Testing

@testable import BlueZRadio

/// bluetoothd with one adapter and one device, whose descriptors a test reads and writes by hand.
final class FakeDevice: Sendable {
  static let adapter: ObjectPath = "/org/bluez/hci0"
  static let device: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_01_00_01"
  static let peer = DeviceAddress(value: 0x00AA_0101_0001, kind: .public).peer
  static let service = device.child("service0010")

  /// A characteristic of the device.
  enum Characteristic: String, CaseIterable {
    case commands = "char0011"
    case values = "char0013"
    case pushes = "char0015"

    var path: ObjectPath { service.child(rawValue) }
    var handle: AttributeHandle {
      switch self {
      case .commands: 0x12
      case .values: 0x14
      case .pushes: 0x16
      }
    }
    fileprivate var flags: [String] {
      switch self {
      case .commands: ["write-without-response"]
      case .values: ["read", "write"]
      case .pushes: ["notify"]
      }
    }
    var remote: RemoteCharacteristic {
      RemoteCharacteristic(
        handle: handle, endHandle: handle, uuid: BluetoothUUID(handle),
        properties: GATTProperties(flags: flags))
    }
  }

  private struct State: Sendable {
    var isConnected = false
    var rssi: Int16?
    var mtu: UInt16 = 185
    /// Whether it is a property, as with daemons from 5.62 on: of a device that is linked.
    var isMTUTold = true
    var value: [UInt8] = []
    var log: [String] = []
    var exports: [ObjectPath: DBusExport] = [:]
    var refusals: [String: DBusError] = [:]
    /// Methods that a test answers.
    var held: Set<String> = []
  }

  let bus: DBusConnection
  /// The daemon's ends of descriptors that it has given, for writes and for notifications.
  let writeEnds = Arrivals<DaemonEnd>()
  let notifyEnds = Arrivals<DaemonEnd>()
  let pairing = FakeAgentManager()
  /// Calls of methods that are held.
  let held = Arrivals<DBusInvocation>()
  private let state = PosixMutex(State())

  init(_ bus: PrivateBus) async throws {
    self.bus = try await DBusConnection.open(bus.address)
    try await export(adapterInterface, at: Self.adapter)
    try await export(deviceInterface, at: Self.device)
    try await export(
      DBusInterface(
        BlueZ.gattService,
        properties: [Self.constant("UUID", .string(BluetoothUUID(UInt16(0xD000)).longText))]),
      at: Self.service)
    for characteristic in Characteristic.allCases {
      try await export(interface(characteristic), at: characteristic.path)
    }
    try await export(pairing.interface, at: FakeAgentManager.path)
    try await export(nil, at: .root)
    #expect(try await self.bus.requestName("org.bluez") == .primaryOwner)
  }

  private func export(_ interface: DBusInterface?, at path: ObjectPath) async throws {
    let export = try await bus.export(
      interface.map { [$0] } ?? [], at: path, isObjectManager: interface == nil)
    state.withLock { $0.exports[path] = export }
  }

  // MARK: What a test does

  /// Methods that were called, in their order.
  var log: [String] { state.withLock(\.log) }

  func refuse(_ member: String, _ error: DBusError?) { state.withLock { $0.refusals[member] = error } }
  func hold(_ member: String) { state.withLock { _ = $0.held.insert(member) } }

  /// What the next link agrees on.
  func setMTU(_ mtu: UInt16, isTold: Bool) {
    state.withLock { state in
      state.mtu = mtu
      state.isMTUTold = isTold
    }
  }

  func setConnected(_ isConnected: Bool) {
    state.withLock { $0.isConnected = isConnected }
    announce(["Connected", "ServicesResolved"], BlueZ.device, Self.device)
  }

  func setRSSI(_ rssi: Int16) {
    state.withLock { $0.rssi = rssi }
    announce(["RSSI"], BlueZ.device, Self.device)
  }

  /// Says why a link has ended, as newer daemons do.
  func tellReason(_ reason: String) throws {
    let export = state.withLock { $0.exports[Self.device] }
    try export?.emit(
      Self.disconnected, of: BlueZ.device, [.string("org.bluez.Reason.\(reason)"), .string("words")])
  }

  /// Pushes a value where no descriptor is.
  func push(_ value: [UInt8]) {
    state.withLock { $0.value = value }
    announce(["Value"], BlueZ.gattCharacteristic, Characteristic.pushes.path)
  }

  private func announce(_ names: [String], _ interface: String, _ path: ObjectPath) {
    state.withLock { $0.exports[path] }?.propertiesChanged(names, of: interface)
  }

  // MARK: Objects

  private static let disconnected = DBusSignal(
    "Disconnected", [DBusArgument("reason", .string), DBusArgument("message", .string)])

  private static func constant(_ name: String, _ value: DBusValue) -> DBusProperty {
    DBusProperty(name, value.type, changes: .constant, get: { () throws(DBusError) in value })
  }

  private func method(
    _ name: String, _ inputs: [DBusArgument] = [], _ outputs: [DBusArgument] = [],
    _ answer: @escaping @Sendable () throws -> [DBusValue] = { [] }
  ) -> DBusMethod {
    DBusMethod(name, in: inputs, out: outputs) { invocation in
      let (refusal, isHeld) = self.state.withLock { state in
        state.log.append(name)
        return (state.refusals[name], state.held.contains(name))
      }
      if isHeld { return self.held.put(invocation) }
      if let refusal { return invocation.fail(refusal) }
      do { try invocation.reply(try answer()) } catch { Issue.record("\(name): \(error)") }
    }
  }

  private static let options = DBusArgument("options", .dictionary(key: .string, value: .variant))
  private static let bytes = DBusArgument("value", .array(of: .byte))

  private var adapterInterface: DBusInterface {
    DBusInterface(
      BlueZ.adapter,
      methods: [
        method("SetDiscoveryFilter", [Self.options]), method("StartDiscovery"), method("StopDiscovery"),
      ],
      properties: [
        Self.constant("Powered", .boolean(true)), Self.constant("Address", .string("00:AA:01:00:00:00")),
        Self.constant("AddressType", .string("public")),
      ])
  }

  private var deviceInterface: DBusInterface {
    DBusInterface(
      BlueZ.device,
      methods: [
        method("Connect") {
          self.setConnected(true)
          return []
        },
        method("Disconnect") {
          self.setConnected(false)
          return []
        },
      ],
      properties: [
        Self.constant("Address", .string("00:AA:01:01:00:01")),
        Self.constant("AddressType", .string("public")),
        DBusProperty("Connected", .boolean) { () throws(DBusError) in
          .boolean(self.state.withLock { $0.isConnected })
        },
        DBusProperty("ServicesResolved", .boolean) { () throws(DBusError) in
          .boolean(self.state.withLock { $0.isConnected })
        },
        DBusProperty("RSSI", .int16) { () throws(DBusError) in
          guard let rssi = self.state.withLock({ $0.rssi }) else {
            throw DBusError(name: DBusErrorName.invalidArguments, message: "No such property")
          }
          return .int16(rssi)
        },
      ], signals: [Self.disconnected])
  }

  private func interface(_ characteristic: Characteristic) -> DBusInterface {
    let descriptor = [DBusArgument("fd", .descriptor), DBusArgument("mtu", .uint16)]
    return DBusInterface(
      BlueZ.gattCharacteristic,
      methods: [
        method("ReadValue", [Self.options], [Self.bytes]) { [.bytes([1])] },
        method("WriteValue", [Self.bytes, Self.options]),
        method("AcquireWrite", [Self.options], descriptor) { try self.give(self.writeEnds) },
        method("AcquireNotify", [Self.options], descriptor) { try self.give(self.notifyEnds) },
        method("StartNotify"), method("StopNotify"),
      ],
      properties: [
        Self.constant("UUID", .string(characteristic.remote.uuid.longText)),
        Self.constant("Service", .objectPath(Self.service)),
        Self.constant("Flags", characteristic.flags.dbusValue),
        DBusProperty("MTU", .uint16) { () throws(DBusError) in
          let state = self.state.withLock { $0 }
          guard state.isMTUTold, state.isConnected else {
            throw DBusError(name: DBusErrorName.invalidArguments, message: "No such property")
          }
          return .uint16(state.mtu)
        },
        DBusProperty("Value", .array(of: .byte)) { () throws(DBusError) in
          .bytes(self.state.withLock { $0.value })
        },
        Self.constant("Notifying", .boolean(false)),
      ])
  }

  private func give(_ ends: Arrivals<DaemonEnd>) throws -> [DBusValue] {
    var raw: [Int32] = [0, 0]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &raw) == 0 else {
      throw POSIXError(.EMFILE)
    }
    ends.put(DaemonEnd(UnixDescriptor(owning: raw[0])))
    return [.descriptor(UnixDescriptor(owning: raw[1])), .uint16(state.withLock(\.mtu))]
  }
}

/// The daemon's end of a descriptor; it is closed with the last reference.
final class DaemonEnd: Sendable {
  private let socket: AcquiredSocket
  private let monitor: ReadinessMonitor?

  init(_ descriptor: UnixDescriptor) {
    socket = AcquiredSocket(descriptor)
    monitor = ReadinessMonitor(queue: DispatchQueue(label: "daemon's end"))
  }

  /// The next value, or the end.
  func take() async -> AcquiredSocket.Received {
    while true {
      let received = socket.receive()
      guard received == .nothing else { return received }
      let (signals, signal) = AsyncStream<Void>.makeStream()
      let source = socket.whenReadable(monitor) { signal.yield() }
      for await _ in signals { break }
      source?.cancel()
    }
  }

  func send(_ value: [UInt8]) -> AcquiredSocket.Sent { socket.send(Data(value)) }
}

/// A central client on a bus with a ``FakeDevice``, in a time that a test makes.
final class CentralRig: Sendable {
  let bus: PrivateBus
  let daemon: FakeDevice
  let clock = HandClock()
  let events = Arrivals<CentralEvent>()
  let host: BlueZHost
  let central: BlueZCentral
  private let lastRequest = PosixMutex<UInt64>(0)

  init() async throws {
    bus = try await PrivateBus()
    daemon = try await FakeDevice(bus)
    host = BlueZHost(adapter: nil, bus: bus.address, clock: clock) { _ in }
    central = BlueZCentral(host) { [events] in events.put($0) }
    try await events.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
  }

  /// Makes the link, up to the point where the attributes are known.
  func connect() async throws {
    central.connect(FakeDevice.peer)
    try await events.first { if case .connected = $0 { () } else { nil } }
    guard case .success = try await answer(ask(.discoverServices(nil))) else {
      Issue.record("the services cannot be discovered")
      return
    }
    // What the radio asks for by itself has been answered, too.
    await settle()
  }

  func ask(_ request: GATTRequest) -> RequestID {
    let id = RequestID(
      lastRequest.withLock {
        $0 += 1
        return $0
      })
    central.request(request, of: FakeDevice.peer, id: id)
    return id
  }

  func answer(_ id: RequestID) async throws -> Result<GATTReply, GATTFailure> {
    try await events.first { if case .completed(id, _, let result) = $0 { result } else { nil } }
  }

  func command(_ value: UInt8, to characteristic: FakeDevice.Characteristic = .commands) -> WriteOutcome {
    central.writeWithoutResponse(Data([value]), to: characteristic.handle, of: FakeDevice.peer)
  }

  /// Waits for the end of the link, and returns why.
  func disconnection() async throws -> RadioError? {
    try await events.first { event -> RadioError?? in
      if case .disconnected(_, let error, _) = event { .some(error) } else { nil }
    }
  }

  /// Returns when everything that was asked for before is with the daemon, as far as nothing is to be waited for.
  func settle() async {
    await withCheckedContinuation { continuation in
      host.queue.async { [host] in
        host.call(
          FakeDevice.adapter, DBusWellKnown.properties, "Get", [.string(BlueZ.adapter), .string("Powered")]
        ) { _ in host.queue.async { continuation.resume() } }
      }
    }
  }

  /// Lets time pass step by step, with everything that comes of each.
  func pass(_ time: Duration, step: Duration = .milliseconds(100)) async {
    var passed = Duration.zero
    while passed < time {
      clock.advance(by: step)
      await settle()
      passed += step
    }
  }
}
