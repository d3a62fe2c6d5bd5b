internal import DBus
internal import Foundation
internal import Radio

/// A service as the objects that bluetoothd asks for: one application of its own, so that the handles of all others stay when it comes or goes.
///
/// The daemon makes attributes in the order in which it is told of objects, which is the order of their paths. So elements of paths have a fixed
/// width.
struct ApplicationTree: Sendable {
  struct Characteristic: Sendable {
    let path: ObjectPath
    let local: LocalCharacteristic
    let flags: CharacteristicFlags
    let descriptors: [Descriptor]
  }

  struct Descriptor: Sendable {
    let path: ObjectPath
    let local: LocalDescriptor
  }

  /// The object manager that is registered.
  let root: ObjectPath
  let service: LocalService
  let servicePath: ObjectPath
  let characteristics: [Characteristic]

  /// More attributes than that are more than a service's handles anyway, and would spoil the order.
  static let mostParts = 0xFFF
  /// The longest value that an attribute has (Core Vol 3 Part F 3.2.9).
  static let longestValue = 512

  private static let reservedServices = [BluetoothUUID(UInt16(0x1800)), BluetoothUUID(UInt16(0x1801))]
  private static let clientConfiguration = BluetoothUUID(UInt16(0x2902))
  private static let ownDescriptors = [BluetoothUUID(UInt16(0x2900)), clientConfiguration]

  /// Lays out a service below `root`, which is its own.
  init(_ service: LocalService, root: ObjectPath) throws(RadioError) {
    guard !Self.reservedServices.contains(service.uuid) else {
      throw RadioError(.uuidNotAllowed, "service \(service.uuid) belongs to the system")
    }
    guard service.includedServices.isEmpty else {
      throw RadioError(.notSupported, "services cannot include others on this radio")
    }
    guard Set(service.characteristics.map(\.id)).count == service.characteristics.count else {
      throw RadioError(.invalidParameters, "service \(service.uuid) has a characteristic twice")
    }
    let values = service.characteristics.flatMap {
      [$0.staticValue?.count ?? 0] + $0.descriptors.map(\.value.count)
    }
    guard values.allSatisfy({ $0 <= Self.longestValue }) else {
      throw RadioError(
        .invalidParameters, "a value of service \(service.uuid) exceeds \(Self.longestValue) octets")
    }
    guard service.characteristics.count <= Self.mostParts,
      service.characteristics.allSatisfy({ $0.descriptors.count <= Self.mostParts })
    else { throw RadioError(.outOfSpace, "service \(service.uuid) has too many characteristics") }
    self.root = root
    self.service = service
    let servicePath = root.child("service")
    self.servicePath = servicePath
    characteristics = service.characteristics.enumerated().map { index, local in
      let path = servicePath.child("char" + Self.hex(index))
      let descriptors = local.descriptors.filter { !Self.ownDescriptors.contains($0.uuid) }
      return Characteristic(
        path: path, local: local, flags: CharacteristicFlags(local),
        descriptors: descriptors.enumerated().map { index, local in
          Descriptor(path: path.child("desc" + Self.hex(index)), local: local)
        })
    }
  }

  private static func hex(_ index: Int) -> String {
    let digits = String(index, radix: 16)
    return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
  }
}

extension ObjectPath {
  /// The path of a child whose name has only letters and digits.
  func child(_ name: String) -> ObjectPath {
    do { return try appending(name) } catch { return self }
  }
}
