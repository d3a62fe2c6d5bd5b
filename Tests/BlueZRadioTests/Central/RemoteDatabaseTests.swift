import DBus
import Foundation
import Radio
import Testing

@testable import BlueZRadio

@Suite("A peer's attributes, made of the daemon's objects")
struct RemoteDatabaseTests {
  static let device: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_01_00_01"

  static func uuid(_ short: String) -> DBusValue { .string("0000\(short)-0000-1000-8000-00805f9b34fb") }

  /// Two services: one with two characteristics, which includes the other, a secondary one; and objects that are none.
  static func objects() -> [ObjectPath: DBusProperties] {
    let base = device.text
    func path(_ rest: String) -> ObjectPath { (try? ObjectPath(base + rest)) ?? "/" }
    return [
      device: [BlueZ.device: [:]],
      path("/service000a"): [
        BlueZ.gattService: [
          "UUID": uuid("fff0"), "Primary": .boolean(true),
          "Includes": [path("/service0020")].dbusValue,
        ]
      ],
      path("/service000a/char000b"): [
        BlueZ.gattCharacteristic: [
          "UUID": uuid("fff1"), "Flags": ["read", "write", "write-without-response"].dbusValue,
        ]
      ],
      path("/service000a/char000d"): [
        BlueZ.gattCharacteristic: ["UUID": uuid("fff2"), "Flags": ["notify", "of the future"].dbusValue]
      ],
      path("/service000a/char000d/desc000f"): [BlueZ.gattDescriptor: ["UUID": uuid("2902")]],
      path("/service000a/char000d/desc0010"): [BlueZ.gattDescriptor: ["UUID": uuid("2901")]],
      path("/service0020"): [BlueZ.gattService: ["UUID": uuid("fff8"), "Primary": .boolean(false)]],
      path("/serviceXYZ"): [BlueZ.gattService: ["UUID": uuid("fff9")]],
      path("/service0030"): [BlueZ.gattService: ["UUID": .string("no UUID")]],
      path("/service000a/charffff"): [BlueZ.gattCharacteristic: ["UUID": uuid("fff3")]],
      path("/service000a/char0000"): [BlueZ.gattCharacteristic: ["UUID": uuid("fff4")]],
    ]
  }

  static func database(_ objects: [ObjectPath: DBusProperties] = objects()) -> RemoteDatabase {
    var store = ObjectStore()
    store.load(objects)
    return RemoteDatabase(store, device: device)
  }

  private let service = BluetoothUUID(UInt16(0xFFF0))

  @Test("handles come from paths: a value follows its declaration, ranges end with their last attribute")
  func handles() throws {
    let database = Self.database()
    let services = database.primaryServices(nil)
    #expect(services == [RemoteService(handles: 0x0A...0x10, uuid: service, isPrimary: true)])
    let characteristics = try #require(database.characteristics(of: services[0], nil))
    #expect(
      characteristics == [
        RemoteCharacteristic(
          handle: 0x0C, endHandle: 0x0C, uuid: BluetoothUUID(UInt16(0xFFF1)),
          properties: [.read, .write, .writeWithoutResponse]),
        RemoteCharacteristic(
          handle: 0x0E, endHandle: 0x10, uuid: BluetoothUUID(UInt16(0xFFF2)), properties: [.notify]),
      ])
    #expect(
      database.descriptors(of: characteristics[1]) == [
        RemoteDescriptor(handle: 0x0F, uuid: .clientConfiguration),
        RemoteDescriptor(handle: 0x10, uuid: BluetoothUUID(UInt16(0x2901))),
      ])
  }

  @Test("only what is asked for is found")
  func filters() throws {
    let database = Self.database()
    #expect(database.primaryServices([BluetoothUUID(UInt16(0xFFF8))]) == [])
    #expect(database.primaryServices([]) == [])
    let found = try #require(database.primaryServices([service]).first)
    #expect(database.characteristics(of: found, [BluetoothUUID(UInt16(0xFFF2))])?.map(\.handle) == [0x0E])
    #expect(database.includedServices(of: found, nil)?.map(\.handles) == [0x20...0x20])
    #expect(database.includedServices(of: found, [service]) == [])
  }

  @Test("what is not there any more is not found under an old handle")
  func stale() throws {
    let found = try #require(Self.database().primaryServices(nil).first)
    var objects = Self.objects()
    for path in objects.keys where path.text.contains("service000a") { objects[path] = nil }
    let database = Self.database(objects)
    #expect(database.characteristics(of: found, nil) == nil)
    #expect(database.characteristic(0x0C) == nil)
  }

  @Test("probes are cheap where they can be: descriptors, then readable values, then the value itself")
  func probes() {
    let probes = Self.database().probes(besides: 0x0E).map {
      $0.path.text.dropFirst(Self.device.text.count + 1)
    }
    #expect(
      probes == [
        "service000a/char000d/desc000f", "service000a/char000d/desc0010", "service000a/char000b",
        "service000a/char000d",
      ])
  }

  @Test("objects tell their service", arguments: ["/service000a", "/service000a/char000b/desc000c"])
  func parts(rest: String) throws {
    let path = try ObjectPath(Self.device.text + rest)
    #expect(RemoteDatabase.service(of: path, device: Self.device)?.start == 0x0A)
    #expect(RemoteDatabase.service(of: Self.device, device: Self.device) == nil)
  }
}

@Suite("What the daemon says of a device")
struct DeviceFactsTests {
  @Test("an advertisement is put together field by field")
  func advertisement() {
    let facts = DeviceFacts([
      "Name": .string("thermometer"), "UUIDs": ["0000fff0-0000-1000-8000-00805f9b34fb"].dbusValue,
      "TxPower": .int16(-4), "RSSI": .int16(-60),
      "ManufacturerData": [UInt16(0x0059): DBusVariant(containing: .bytes([1, 2]))].dbusValue,
      "ServiceData": ["0000fff1-0000-1000-8000-00805f9b34fb": DBusVariant(containing: .bytes([3]))].dbusValue,
      "AdvertisingData": [
        UInt8(0x14): DBusVariant(containing: .bytes([0xB0, 0xFF, 0xB1, 0xFF, 0x00]))
      ].dbusValue,
    ])
    #expect(
      facts.advertisement()
        == Advertisement(
          localName: "thermometer", services: [BluetoothUUID(UInt16(0xFFF0))],
          solicitedServices: [BluetoothUUID(UInt16(0xFFB0)), BluetoothUUID(UInt16(0xFFB1))],
          serviceData: [BluetoothUUID(UInt16(0xFFF1)): Data([3])], manufacturerData: Data([0x59, 0, 1, 2]),
          txPower: -4))
    #expect(facts.rssi == -60)
  }

  @Test("values of other types than expected are left out")
  func hostile() {
    let facts = DeviceFacts([
      "Name": .uint32(1), "UUIDs": .string("x"), "TxPower": .string("loud"), "ManufacturerData": .bytes([1]),
      "ServiceData": ["nonsense": DBusVariant(containing: .bytes([3]))].dbusValue, "Connected": .int16(1),
      "AdvertisingData": [UInt8(0x15): DBusVariant(containing: .string("x"))].dbusValue,
    ])
    #expect(facts.advertisement() == Advertisement())
    #expect(!facts.isConnected)
    #expect(facts.address == nil)
  }

  @Test("of several companies' data the new one counts")
  func companies() {
    func facts(_ data: [UInt16: [UInt8]]) -> DeviceFacts {
      DeviceFacts(["ManufacturerData": data.mapValues { DBusVariant(containing: .bytes($0)) }.dbusValue])
    }
    let before = facts([1: [1], 2: [2]])
    #expect(before.advertisement().manufacturerData == Data([1, 0, 1]))
    #expect(facts([1: [1], 2: [9]]).advertisement(before: before).manufacturerData == Data([2, 0, 9]))
  }

  @Test(
    "the address that stands in for a name is none",
    arguments: [
      (nil, "00-AA-01-01-00-01", nil), ("D", "00-AA-01-01-00-01", "D"), (nil, "my lamp", "my lamp"),
      ("", "00-AA-01-01-00-01", nil), ("D", "my lamp", "D"),
    ] as [(String?, String, String?)])
  func names(name: String?, alias: String, expected: String?) {
    var properties: [String: DBusValue] = ["Address": .string("00:AA:01:01:00:01"), "Alias": .string(alias)]
    properties["Name"] = name.map { .string($0) }
    #expect(DeviceFacts(properties).name == expected)
  }
}
