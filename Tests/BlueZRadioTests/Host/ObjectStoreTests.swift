import DBus
import Testing

@testable import BlueZRadio
import Radio

@Suite("A copy of the daemon's objects")
struct ObjectStoreTests {
  static let adapter: ObjectPath = "/org/bluez/hci0"
  static let device: ObjectPath = "/org/bluez/hci0/dev_00"

  static func store(powered: [ObjectPath: Bool] = [adapter: true]) -> ObjectStore {
    var store = ObjectStore()
    store.load(powered.mapValues { [BlueZ.adapter: ["Powered": .boolean($0)]] })
    return store
  }

  @Test("added interfaces are told one by one, and their properties are there")
  func adding() {
    var store = Self.store()
    let changes = store.apply(
      .added(Self.device, [BlueZ.device: ["Connected": .boolean(false)], "x.y": [:]]))
    #expect(changes == [.added(Self.device, interface: BlueZ.device), .added(Self.device, interface: "x.y")])
    #expect(store.property("Connected", BlueZ.device, of: Self.device) == false)
    #expect(store.paths(with: BlueZ.device, within: Self.adapter) == [Self.device])
  }

  @Test("changed and invalid properties are told by name; what is not known is ignored")
  func changing() {
    var store = Self.store()
    _ = store.apply(.added(Self.device, [BlueZ.device: ["RSSI": .int16(-40), "Connected": .boolean(false)]]))
    let changes = store.apply(
      .properties(
        Self.device, interface: BlueZ.device, changed: ["Connected": .boolean(true)], invalidated: ["RSSI"]))
    #expect(changes == [.changed(Self.device, interface: BlueZ.device, ["Connected", "RSSI"])])
    #expect(store.property("RSSI", BlueZ.device, of: Self.device, as: Int16.self) == nil)
    #expect(store.property("Connected", BlueZ.device, of: Self.device) == true)
    #expect(
      store.apply(.properties("/none", interface: BlueZ.device, changed: ["a": .byte(1)], invalidated: []))
        == [])
  }

  @Test("an object goes with its last interface, and what it was is told")
  func removing() {
    var store = Self.store()
    let properties: [String: DBusValue] = ["Connected": .boolean(true)]
    _ = store.apply(.added(Self.device, [BlueZ.device: properties]))
    let changes = store.apply(.removed(Self.device, interfaces: [BlueZ.device, "never.there"]))
    #expect(changes == [.removed(Self.device, interface: BlueZ.device, last: properties)])
    #expect(store.objects[Self.device] == nil)
  }

  @Test("a property of another type than expected counts as missing")
  func types() {
    let store = Self.store()
    #expect(store.property("Powered", BlueZ.adapter, of: Self.adapter, as: String.self) == nil)
  }

  @Test("without a wish the first adapter that is on is taken, and kept as long as it is there")
  func choice() {
    let second: ObjectPath = "/org/bluez/hci1"
    var choice = AdapterChoice(nil)
    choice.update(Self.store(powered: [Self.adapter: false, second: true]))
    #expect(choice.path == second)
    let later = Self.store(powered: [Self.adapter: true, second: false])
    choice.update(later)
    #expect(choice.path == second)
    #expect(choice.state(later) == .poweredOff)
    let gone = Self.store(powered: [Self.adapter: true])
    choice.update(gone)
    #expect(choice.path == Self.adapter)
    #expect(choice.state(gone) == .poweredOn)
  }

  @Test("a wanted adapter is taken or none", arguments: [("hci1", true), ("hci11", false), ("ci1", false)])
  func wanted(name: String, isThere: Bool) {
    let store = Self.store(powered: [Self.adapter: true, "/org/bluez/hci1": true])
    var choice = AdapterChoice(name)
    choice.update(store)
    #expect((choice.path != nil) == isThere)
    #expect(choice.state(store) == (isThere ? .poweredOn : .unsupported))
  }
}
