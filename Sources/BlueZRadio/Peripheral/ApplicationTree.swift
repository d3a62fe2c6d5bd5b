internal import DBus
internal import Foundation
internal import Radio

/// Services as the objects that bluetoothd asks for: an application, with one service as a rule, so that the handles of all others stay when it comes or
/// goes. A service and those that it includes are in one, as the daemon looks for these nowhere else.
///
/// The daemon makes attributes in the order in which it is told of objects, which is the order of their paths. So elements of paths have a fixed
/// width.
struct ApplicationTree: Sendable {
  struct Service: Sendable {
    let path: ObjectPath
    let local: LocalService
    /// Where the services are that it includes.
    let includes: [ObjectPath]
    let characteristics: [Characteristic]
  }

  struct Characteristic: Sendable {
    let path: ObjectPath
    let service: ObjectPath
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
  let services: [Service]

  var characteristics: [Characteristic] { services.flatMap(\.characteristics) }

  /// More attributes than that are more than a service's handles anyway, and would spoil the order.
  static let mostParts = 0xFFF
  /// The longest value that an attribute has (Core Vol 3 Part F 3.2.9).
  static let longestValue = 512

  private static let reservedServices = [BluetoothUUID(UInt16(0x1800)), BluetoothUUID(UInt16(0x1801))]
  private static let clientConfiguration = BluetoothUUID(UInt16(0x2902))
  private static let ownDescriptors = [BluetoothUUID(UInt16(0x2900)), clientConfiguration]

  /// Lays out services below `root`, which is their own; those that others include come before these.
  init(_ services: [LocalService], root: ObjectPath) throws(RadioError) {
    guard services.count <= Self.mostParts else {
      throw RadioError(.outOfSpace, "too many services include each other")
    }
    self.root = root
    var laidOut: [Service] = []
    for (index, service) in services.enumerated() {
      try Self.check(service)
      var includes: [ObjectPath] = []
      for id in service.includedServices {
        guard let included = laidOut.first(where: { $0.local.id == id }) else {
          throw RadioError(.invalidParameters, "service \(service.uuid) includes one that is not there")
        }
        includes.append(included.path)
      }
      let path = root.child("service" + Self.hex(index))
      laidOut.append(
        Service(
          path: path, local: service, includes: includes, characteristics: Self.layOut(service, at: path)))
    }
    self.services = laidOut
  }

  private static func check(_ service: LocalService) throws(RadioError) {
    guard !reservedServices.contains(service.uuid) else {
      throw RadioError(.uuidNotAllowed, "service \(service.uuid) belongs to the system")
    }
    guard Set(service.characteristics.map(\.id)).count == service.characteristics.count else {
      throw RadioError(.invalidParameters, "service \(service.uuid) has a characteristic twice")
    }
    let values = service.characteristics.flatMap {
      [$0.staticValue?.count ?? 0] + $0.descriptors.map(\.value.count)
    }
    guard values.allSatisfy({ $0 <= longestValue }) else {
      throw RadioError(
        .invalidParameters, "a value of service \(service.uuid) exceeds \(longestValue) octets")
    }
    guard service.characteristics.count <= mostParts,
      service.characteristics.allSatisfy({ $0.descriptors.count <= mostParts })
    else { throw RadioError(.outOfSpace, "service \(service.uuid) has too many characteristics") }
  }

  private static func layOut(_ service: LocalService, at servicePath: ObjectPath) -> [Characteristic] {
    service.characteristics.enumerated().map { index, local in
      let path = servicePath.child("char" + hex(index))
      let descriptors = local.descriptors.filter { !ownDescriptors.contains($0.uuid) }
      return Characteristic(
        path: path, service: servicePath, local: local, flags: CharacteristicFlags(local),
        descriptors: descriptors.enumerated().map { index, local in
          Descriptor(path: path.child("desc" + hex(index)), local: local)
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
