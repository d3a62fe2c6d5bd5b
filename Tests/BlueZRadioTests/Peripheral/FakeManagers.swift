import DBus
import Locking
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

/// The managers of bluetoothd that a peripheral needs, with one adapter and one central.
final class FakeManagers: Sendable {
  static let adapter: ObjectPath = "/org/bluez/hci0"
  static let device: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_00_00_00"
  static let hash: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_00_00_00/service0008/char000e"
  static let central = DeviceAddress(value: 0x00AA_0100_0000, kind: .public).peer

  struct Call: Sendable {
    let member: String
    let path: ObjectPath
    let sender: String
  }

  private struct State: Sendable {
    var isPowered = true
    var isConnected = true
    var isBonded = false
    var exports: [ObjectPath: DBusExport] = [:]
    var subscription: DBusSubscription?
    var refusals: [String: DBusError] = [:]
    /// Methods that are not answered until a test does so.
    var held: Set<String> = []
  }

  let bus: DBusConnection
  /// Registrations and the like, in their order.
  let calls = Arrivals<Call>()
  /// Values as they arrive, with their characteristics.
  let values = Arrivals<(path: ObjectPath, value: [UInt8])>()
  /// Reads of the central's attribute, which wait to be answered.
  let reads = Arrivals<DBusInvocation>()
  let held = Arrivals<DBusInvocation>()
  let pairing = FakeAgentManager()
  private let state = PosixMutex(State())

  init(_ bus: PrivateBus) async throws {
    self.bus = try await DBusConnection.open(bus.address)
    try await export([adapterInterface] + managers, at: Self.adapter)
    try await export([deviceInterface], at: Self.device)
    try await export([attributeInterface], at: Self.hash)
    try await export([pairing.interface], at: FakeAgentManager.path)
    try await export([], at: .root, isObjectManager: true)
    #expect(try await self.bus.requestName("org.bluez") == .primaryOwner)
  }

  func stop() async {
    await bus.close()
    state.withLock { $0.exports = [:] }
  }

  private func export(_ interfaces: [DBusInterface], at path: ObjectPath, isObjectManager: Bool = false)
    async throws
  {
    let export = try await bus.export(interfaces, at: path, isObjectManager: isObjectManager)
    state.withLock { $0.exports[path] = export }
  }

  // MARK: What a test does

  func refuse(_ member: String, _ error: DBusError?) { state.withLock { $0.refusals[member] = error } }
  func hold(_ member: String) { state.withLock { _ = $0.held.insert(member) } }

  func setBonded() {
    state.withLock { $0.isBonded = true }
    announce("Bonded", BlueZ.device, Self.device)
  }

  func setPowered(_ isPowered: Bool) {
    state.withLock { $0.isPowered = isPowered }
    announce("Powered", BlueZ.adapter, Self.adapter)
  }

  /// Takes the adapter away, as a daemon does before it ends in order.
  func removeAdapter() { state.withLock { $0.exports.removeValue(forKey: Self.adapter) }?.remove() }

  func restoreAdapter() async throws { try await export([adapterInterface] + managers, at: Self.adapter) }

  func setConnected(_ isConnected: Bool) {
    state.withLock { $0.isConnected = isConnected }
    announce("Connected", BlueZ.device, Self.device)
  }

  private func announce(_ name: String, _ interface: String, _ path: ObjectPath) {
    state.withLock { $0.exports[path] }?.propertiesChanged([name], of: interface)
  }

  /// Calls an object of a client for the central, as the daemon does.
  func call(
    _ member: String, _ path: ObjectPath, of client: String, _ body: [DBusValue] = [],
    _ options: KeyValuePairs<String, DBusValue> = [:]
  ) async throws -> [DBusValue] {
    let interface =
      path.text.contains("/desc") ? BlueZ.gattDescriptor : BlueZ.gattCharacteristic
    var options = options.map { DBusEntry(key: .string($0.key), value: .variant($0.value)) }
    options.append(DBusEntry(key: .string("device"), value: .variant(.objectPath(Self.device))))
    let dictionary = DBusValue.dictionary(key: .string, value: .variant, options)
    let takesOptions = ["ReadValue", "WriteValue", "AcquireNotify"].contains(member)
    return try await bus.call(
      .call(
        destination: client, path: path, interface: interface, member: member,
        body: body + (takesOptions ? [dictionary] : []))
    ).body
  }

  /// Takes values that clients send to the daemon alone.
  func listen() async throws {
    let rule = MatchRule(interface: DBusWellKnown.properties, member: "PropertiesChanged")
    let subscription = try await bus.subscribe(to: rule) { [values] message in
      guard
        case .properties(let path, BlueZ.gattCharacteristic, let changed, _)? = try? ObjectChange(message),
        case .bytes(let value)? = changed["Value"]
      else { return }
      values.put((path, value))
    }
    state.withLock { $0.subscription = subscription }
  }

  /// Subscribes the central as the daemon does.
  func subscribe(_ path: ObjectPath, of client: String, mtu: UInt16 = 100) async throws {
    await #expect(throws: DBusError.self) {
      _ = try await call("AcquireNotify", path, of: client, [], ["mtu": .uint16(mtu)])
    }
    _ = try await call("StartNotify", path, of: client)
  }

  // MARK: Objects

  private var adapterInterface: DBusInterface {
    DBusInterface(
      BlueZ.adapter,
      properties: [
        DBusProperty("Powered", .boolean) { () throws(DBusError) in
          .boolean(self.state.withLock { $0.isPowered })
        },
        DBusProperty("Address", .string) { () throws(DBusError) in .string("00:AA:01:01:00:01") },
        DBusProperty("AddressType", .string) { () throws(DBusError) in .string("public") },
      ])
  }

  private var deviceInterface: DBusInterface {
    DBusInterface(
      BlueZ.device,
      properties: [
        DBusProperty("Address", .string) { () throws(DBusError) in .string("00:AA:01:00:00:00") },
        DBusProperty("AddressType", .string) { () throws(DBusError) in .string("public") },
        DBusProperty("Connected", .boolean) { () throws(DBusError) in
          .boolean(self.state.withLock { $0.isConnected })
        },
        DBusProperty("Bonded", .boolean) { () throws(DBusError) in
          .boolean(self.state.withLock { $0.isBonded })
        },
      ])
  }

  private var attributeInterface: DBusInterface {
    DBusInterface(
      BlueZ.gattCharacteristic,
      methods: [
        DBusMethod(
          "ReadValue", in: [DBusArgument("options", .dictionary(key: .string, value: .variant))],
          out: [DBusArgument("value", .array(of: .byte))]
        ) { self.reads.put($0) }
      ],
      properties: [
        DBusProperty("UUID", .string) { () throws(DBusError) in
          .string("00002b2a-0000-1000-8000-00805f9b34fb")
        },
        DBusProperty("Flags", .array(of: .string)) { () throws(DBusError) in ["read"].dbusValue },
        DBusProperty("MTU", .uint16) { () throws(DBusError) in .uint16(64) },
      ])
  }

  private var managers: [DBusInterface] {
    let path = DBusArgument("path", .objectPath)
    let options = DBusArgument("options", .dictionary(key: .string, value: .variant))
    func method(_ name: String, _ inputs: [DBusArgument]) -> DBusMethod {
      DBusMethod(name, in: inputs) { invocation in
        guard case .objectPath(let path)? = invocation.message.body.first,
          let sender = invocation.message.sender
        else { return }
        let (refusal, isHeld) = self.state.withLock { ($0.refusals[name], $0.held.contains(name)) }
        if isHeld {
          self.held.put(invocation)
        } else if let refusal {
          invocation.fail(refusal)
        } else {
          try? invocation.reply()
        }
        self.calls.put(Call(member: name, path: path, sender: sender))
      }
    }
    return [
      DBusInterface(
        BlueZ.gattManager,
        methods: [
          method("RegisterApplication", [path, options]), method("UnregisterApplication", [path]),
        ]),
      DBusInterface(
        BlueZ.advertisingManager,
        methods: [
          method("RegisterAdvertisement", [path, options]), method("UnregisterAdvertisement", [path]),
        ]),
    ]
  }
}
