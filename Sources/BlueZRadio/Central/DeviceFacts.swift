internal import DBus
internal import Foundation
internal import Radio

/// What bluetoothd says of a device, in the words of a radio. Source: org.bluez.Device(5).
struct DeviceFacts: Sendable {
  private let properties: [String: DBusValue]

  /// Nil where the daemon does not know the device.
  init?(_ store: ObjectStore, _ path: ObjectPath) {
    guard let properties = store.properties(BlueZ.device, of: path) else { return nil }
    self.properties = properties
  }

  init(_ properties: [String: DBusValue]) { self.properties = properties }

  private func read<Value: DBusConvertible>(_ name: String, _ type: Value.Type = Value.self) -> Value? {
    properties[name].flatMap { try? Value($0) }
  }

  var address: DeviceAddress? {
    guard let text = read("Address", String.self) else { return nil }
    return DeviceAddress(text, kind: read("AddressType") == "random" ? .random : .public)
  }

  var isConnected: Bool { read("Connected") ?? false }
  var areServicesResolved: Bool { read("ServicesResolved") ?? false }
  var isPaired: Bool { read("Paired") ?? false }
  var rssi: Int? { read("RSSI", Int16.self).map(Int.init) }

  /// Its own name, or the one that a person has given to it on this host; the address that stands in for a missing one is none.
  var name: String? {
    if let name = read("Name", String.self), !name.isEmpty { return name }
    guard let alias = read("Alias", String.self), !alias.isEmpty, let address else { return nil }
    return alias == address.description.replacing(":", with: "-") ? nil : alias
  }

  /// Services that it has advertised, or that were found.
  var services: [BluetoothUUID] {
    (read("UUIDs", [String].self) ?? []).compactMap { BluetoothUUID(text: $0) }
  }

  /// Everything that it has advertised lately, which the daemon keeps field by field.
  ///
  /// Of several companies' data the first counts, unless `changed` tells which is new.
  func advertisement(before: DeviceFacts? = nil) -> Advertisement {
    var contents = Advertisement(
      localName: read("Name", String.self), services: services, solicitedServices: solicitedServices,
      txPower: read("TxPower", Int16.self).map(Int.init))
    let data = read("ServiceData", [String: DBusVariant].self) ?? [:]
    for (text, value) in data {
      guard let uuid = BluetoothUUID(text: text), case .bytes(let bytes) = value.content.unwrapped else {
        continue
      }
      contents.serviceData[uuid] = Data(bytes)
    }
    let companies = companyData
    let old = before?.companyData ?? [:]
    let company = companies.keys.sorted().first { companies[$0] != old[$0] } ?? companies.keys.min()
    if let company, let bytes = companies[company] {
      contents.manufacturerData =
        Data([UInt8(truncatingIfNeeded: company), UInt8(truncatingIfNeeded: company >> 8)]) + bytes
    }
    return contents
  }

  private var companyData: [UInt16: Data] {
    (read("ManufacturerData", [UInt16: DBusVariant].self) ?? [:]).compactMapValues { value in
      if case .bytes(let bytes) = value.content.unwrapped { Data(bytes) } else { nil }
    }
  }

  /// The daemon has no property for these, but experimental ones that hold fields it does not read itself.
  /// Source: Core Supplement Part A 1.10.
  private var solicitedServices: [BluetoothUUID] {
    let fields = read("AdvertisingData", [UInt8: DBusVariant].self) ?? [:]
    return [(0x14, 2), (0x1F, 4), (0x15, 16)].flatMap { (type: UInt8, size: Int) -> [BluetoothUUID] in
      guard case .bytes(let bytes)? = fields[type]?.content.unwrapped else { return [] }
      return stride(from: 0, to: bytes.count - bytes.count % size, by: size).compactMap {
        BluetoothUUID(littleEndian: bytes[$0..<$0 + size])
      }
    }
  }

  /// Properties that change when the device is heard.
  static let evidence: Set<String> = [
    "RSSI", "ManufacturerData", "ServiceData", "AdvertisingData", "TxPower",
  ]
}
