internal import DBus
internal import Foundation
internal import Radio

/// A peer's attributes, made of the objects that bluetoothd has for them.
///
/// The daemon puts handles into paths, `service000a/char000b/desc000d`: that of a service, that of a characteristic's declaration, and a descriptor's own.
/// A characteristic's value follows its declaration (Core Vol 3 Part G 3.3). Services that the daemon keeps for itself (GAP, GATT, with some
/// versions the battery) have no object, so ends of ranges are those of the attributes that are there.
struct RemoteDatabase: Sendable, Hashable {
  struct Service: Sendable, Hashable {
    let path: ObjectPath
    let uuid: BluetoothUUID
    let isPrimary: Bool
    let includes: [ObjectPath]
    let start: AttributeHandle
    fileprivate(set) var end: AttributeHandle

    var remote: RemoteService { RemoteService(handles: start...end, uuid: uuid, isPrimary: isPrimary) }
  }

  struct Characteristic: Sendable, Hashable {
    let path: ObjectPath
    let uuid: BluetoothUUID
    let properties: GATTProperties
    let declaration: AttributeHandle
    fileprivate(set) var end: AttributeHandle

    var handle: AttributeHandle { declaration + 1 }
    var remote: RemoteCharacteristic {
      RemoteCharacteristic(handle: handle, endHandle: end, uuid: uuid, properties: properties)
    }
  }

  struct Descriptor: Sendable, Hashable {
    let path: ObjectPath
    let uuid: BluetoothUUID
    let handle: AttributeHandle
  }

  /// In the order of handles, as all of these.
  private(set) var services: [Service] = []
  private(set) var characteristics: [Characteristic] = []
  private(set) var descriptors: [Descriptor] = []

  init() {}

  /// Takes the objects below a device; those that it cannot make sense of are left out.
  init(_ store: ObjectStore, device: ObjectPath) {
    for path in store.paths(with: BlueZ.gattService, within: device) {
      guard let start = Self.handle(path, "service"), let uuid = Self.uuid(store, BlueZ.gattService, path)
      else { continue }
      let isPrimary: Bool? = store.property("Primary", BlueZ.gattService, of: path)
      let includes: [ObjectPath]? = store.property("Includes", BlueZ.gattService, of: path)
      services.append(
        Service(
          path: path, uuid: uuid, isPrimary: isPrimary ?? true, includes: includes ?? [], start: start,
          end: start))
    }
    for path in store.paths(with: BlueZ.gattCharacteristic, within: device) {
      guard let declaration = Self.handle(path, "char"), declaration < .max,
        let uuid = Self.uuid(store, BlueZ.gattCharacteristic, path)
      else { continue }
      let flags: [String]? = store.property("Flags", BlueZ.gattCharacteristic, of: path)
      characteristics.append(
        Characteristic(
          path: path, uuid: uuid, properties: GATTProperties(flags: flags ?? []),
          declaration: declaration, end: declaration + 1))
    }
    for path in store.paths(with: BlueZ.gattDescriptor, within: device) {
      guard let handle = Self.handle(path, "desc"), let uuid = Self.uuid(store, BlueZ.gattDescriptor, path)
      else { continue }
      descriptors.append(Descriptor(path: path, uuid: uuid, handle: handle))
    }
    services.sort { $0.start < $1.start }
    characteristics.sort { $0.declaration < $1.declaration }
    descriptors.sort { $0.handle < $1.handle }
    for index in characteristics.indices {
      let own = descriptors.last { $0.path.isWithin(characteristics[index].path) }?.handle ?? 0
      characteristics[index].end = max(characteristics[index].end, own)
    }
    for index in services.indices {
      let own = characteristics.last { $0.path.isWithin(services[index].path) }?.end ?? 0
      services[index].end = max(services[index].start, own)
    }
  }

  // MARK: Discovery

  func primaryServices(_ wanted: [BluetoothUUID]?) -> [RemoteService] {
    services.filter { $0.isPrimary && wanted?.contains($0.uuid) != false }.map(\.remote)
  }

  func includedServices(of service: RemoteService, _ wanted: [BluetoothUUID]?) -> [RemoteService]? {
    guard let includes = find(service)?.includes else { return nil }
    return services.filter { includes.contains($0.path) && wanted?.contains($0.uuid) != false }.map(\.remote)
  }

  func characteristics(of service: RemoteService, _ wanted: [BluetoothUUID]?) -> [RemoteCharacteristic]? {
    guard let path = find(service)?.path else { return nil }
    return characteristics.filter { $0.path.isWithin(path) && wanted?.contains($0.uuid) != false }
      .map(\.remote)
  }

  func descriptors(of characteristic: RemoteCharacteristic) -> [RemoteDescriptor]? {
    guard let path = self.characteristic(characteristic.handle)?.path else { return nil }
    return descriptors.filter { $0.path.isWithin(path) }
      .map { RemoteDescriptor(handle: $0.handle, uuid: $0.uuid) }
  }

  /// A service is the same if it begins at the same handle and is of the same type.
  private func find(_ service: RemoteService) -> Service? {
    services.first { $0.start == service.handles.lowerBound && $0.uuid == service.uuid }
  }

  // MARK: Attributes

  func characteristic(_ handle: AttributeHandle) -> Characteristic? {
    characteristics.first { $0.handle == handle }
  }

  func descriptor(_ handle: AttributeHandle) -> Descriptor? { descriptors.first { $0.handle == handle } }

  func characteristic(at path: ObjectPath) -> Characteristic? { characteristics.first { $0.path == path } }

  /// What can be read to learn that the peer has come so far, best first: what a peer's stack answers without asking a program.
  func probes(besides handle: AttributeHandle?) -> [(path: ObjectPath, interface: String)] {
    let configurations = descriptors.filter { $0.uuid == .clientConfiguration }
    let others = descriptors.filter { $0.uuid != .clientConfiguration }
    let readable = characteristics.filter { $0.properties.contains(.read) }
    // A refusal is an answer as well.
    let last = characteristics.filter { $0.handle == handle }
    return (configurations + others).map { ($0.path, BlueZ.gattDescriptor) }
      + (readable + last).map { ($0.path, BlueZ.gattCharacteristic) }
  }

  // MARK: Objects

  /// The service of which an object is a part: its path and the handle in it.
  static func service(of path: ObjectPath, device: ObjectPath) -> (path: ObjectPath, start: AttributeHandle)?
  {
    guard path != device, path.isWithin(device) else { return nil }
    let rest = path.text.dropFirst(device.text.count + 1).prefix { $0 != "/" }
    guard let service = try? device.appending(String(rest)), let start = handle(service, "service") else {
      return nil
    }
    return (service, start)
  }

  private static func handle(_ path: ObjectPath, _ kind: String) -> AttributeHandle? {
    guard let name = path.text.split(separator: "/").last, name.hasPrefix(kind) else { return nil }
    let digits = name.dropFirst(kind.count)
    guard digits.utf8.count == 4, let handle = UInt16(digits, radix: 16), handle > 0 else { return nil }
    return handle
  }

  private static func uuid(_ store: ObjectStore, _ interface: String, _ path: ObjectPath) -> BluetoothUUID? {
    store.property("UUID", interface, of: path, as: String.self).flatMap { BluetoothUUID(text: $0) }
  }
}

extension BluetoothUUID {
  /// Client Characteristic Configuration (Core Vol 3 Part G 3.3.3.3).
  static let clientConfiguration = BluetoothUUID(UInt16(0x2902))

  /// Reads the long form, as bluetoothd writes all UUIDs.
  init?(text: String) {
    guard let uuid = UUID(uuidString: text) else { return nil }
    self.init(uuid)
  }

  /// The long form in lower case, as bluetoothd takes it.
  var longText: String {
    let hex = bigEndianBytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    return [hex[0..<4], hex[4..<6], hex[6..<8], hex[8..<10], hex[10..<16]].map { $0.joined() }
      .joined(separator: "-")
  }
}

extension GATTProperties {
  /// Reads bluetoothd's words. Source: org.bluez.GattCharacteristic(5), "Flags".
  init(flags: [String]) {
    self = []
    for flag in flags {
      switch flag {
      case "broadcast": insert(.broadcast)
      case "read": insert(.read)
      case "write-without-response": insert(.writeWithoutResponse)
      case "write": insert(.write)
      case "notify": insert(.notify)
      case "indicate": insert(.indicate)
      case "authenticated-signed-writes": insert(.authenticatedSignedWrites)
      case "extended-properties", "reliable-write", "writable-auxiliaries": insert(.extendedProperties)
      default: break
      }
    }
  }
}
