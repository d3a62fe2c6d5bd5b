internal import Locking
internal import Foundation
internal import Radio

/// The services that a peripheral manager has added, and who is subscribed to what in them.
struct LocalDatabase: Sendable {
  private struct Published: Sendable {
    var service: CBMutableService
    var characteristics: [LocalCharacteristicID]
  }

  private var services: [LocalServiceID: Published] = [:]
  private var serviceIDs: [ObjectIdentifier: LocalServiceID] = [:]
  private var characteristics: [LocalCharacteristicID: CBMutableCharacteristic] = [:]
  private var characteristicIDs: [ObjectIdentifier: LocalCharacteristicID] = [:]
  private var last: UInt64 = 0

  /// Why a service cannot be published, in words for the log.
  struct Refusal: Error {
    var code: CBError.Code
    var words: String
  }

  func service(_ id: LocalServiceID) -> CBMutableService? { services[id]?.service }
  func id(of service: CBMutableService) -> LocalServiceID? { serviceIDs[ObjectIdentifier(service)] }
  func characteristic(_ id: LocalCharacteristicID) -> CBMutableCharacteristic? { characteristics[id] }
  func id(of characteristic: CBMutableCharacteristic) -> LocalCharacteristicID? {
    characteristicIDs[ObjectIdentifier(characteristic)]
  }

  /// Takes a service in and describes it to the radio; what changes in the objects later has no effect.
  mutating func add(_ service: CBMutableService) throws(Refusal) -> LocalService {
    guard id(of: service) == nil else {
      throw Refusal(code: .invalidParameters, words: "has that service already")
    }
    if service.uuid.value.isServiceOfTheHost {
      throw Refusal(code: .uuidNotAllowed, words: "leaves the service \(service.uuid) to the system")
    }
    var included: [LocalServiceID] = []
    for other in service.includedServices ?? [] {
      guard let id = serviceIDs[ObjectIdentifier(other)] else {
        throw Refusal(
          code: .invalidParameters, words: "needs the included service \(other.uuid) to be added first")
      }
      included.append(id)
    }
    var objects: [CBMutableCharacteristic] = []
    var described: [LocalCharacteristic] = []
    for characteristic in service.characteristics ?? [] {
      guard let object = characteristic as? CBMutableCharacteristic, id(of: object) == nil,
        !objects.contains(where: { $0 === object })
      else {
        throw Refusal(
          code: .invalidParameters,
          words:
            "publishes each CBMutableCharacteristic once; \(characteristic.uuid) is another's or a peer's")
      }
      let id = LocalCharacteristicID(last + 1 + UInt64(objects.count))
      described.append(try Self.describe(object, id))
      objects.append(object)
    }
    last += UInt64(objects.count) + 1
    let id = LocalServiceID(last)
    for (object, description) in zip(objects, described) {
      characteristics[description.id] = object
      characteristicIDs[ObjectIdentifier(object)] = description.id
    }
    services[id] = Published(service: service, characteristics: described.map(\.id))
    serviceIDs[ObjectIdentifier(service)] = id
    return LocalService(
      id: id, uuid: service.uuid.value, isPrimary: service.isPrimary, includedServices: included,
      characteristics: described)
  }

  /// Forgets a service, and whoever was subscribed in it.
  mutating func remove(_ id: LocalServiceID) {
    guard let published = services.removeValue(forKey: id) else { return }
    serviceIDs[ObjectIdentifier(published.service)] = nil
    for id in published.characteristics {
      guard let object = characteristics.removeValue(forKey: id) else { continue }
      characteristicIDs[ObjectIdentifier(object)] = nil
      object.contents.withLock { $0.subscribedCentrals = [] }
    }
  }

  mutating func removeAll() {
    for id in services.keys { remove(id) }
  }

  /// Forgets all subscriptions: the links are gone.
  func unsubscribeAll() {
    for object in characteristics.values { object.contents.withLock { $0.subscribedCentrals = [] } }
  }

  private static func describe(_ object: CBMutableCharacteristic, _ id: LocalCharacteristicID)
    throws(Refusal) -> LocalCharacteristic
  {
    let contents = object.contents.withLock { $0 }
    let properties = contents.properties
    guard properties.isDisjoint(with: [.broadcast, .extendedProperties]) else {
      throw Refusal(
        code: .invalidParameters,
        words: "cannot publish broadcast or extended properties, which characteristic \(object.uuid) has")
    }
    if let value = contents.value {
      guard properties == .read,
        contents.permissions.isDisjoint(with: [.writeable, .writeEncryptionRequired])
      else {
        throw Refusal(
          code: .invalidParameters,
          words: "takes a fixed value for a read-only characteristic alone, which \(object.uuid) is not")
      }
      guard value.count <= ATT.maximumValueLength else {
        throw Refusal(
          code: .invalidParameters,
          words:
            "takes values of at most \(ATT.maximumValueLength) octets; that of \(object.uuid) has \(value.count)"
        )
      }
    }
    var onAir = GATTProperties(rawValue: UInt8(truncatingIfNeeded: properties.rawValue))
    if properties.contains(.notifyEncryptionRequired) { onAir.insert(.notify) }
    if properties.contains(.indicateEncryptionRequired) { onAir.insert(.indicate) }
    var descriptors: [LocalDescriptor] = []
    for descriptor in contents.descriptors ?? [] {
      guard let octets = (descriptor as? CBMutableDescriptor)?.octets else {
        throw Refusal(
          code: .invalidParameters,
          words:
            "publishes a user description (String) or a presentation format (Data), not a descriptor \(descriptor.uuid)"
        )
      }
      descriptors.append(LocalDescriptor(uuid: descriptor.uuid.value, value: octets))
    }
    return LocalCharacteristic(
      id: id, uuid: object.uuid.value, properties: onAir,
      permissions: GATTPermissions(rawValue: UInt8(truncatingIfNeeded: contents.permissions.rawValue)),
      notifyRequiresEncryption: !properties.isDisjoint(
        with: [.notifyEncryptionRequired, .indicateEncryptionRequired]),
      staticValue: contents.value, descriptors: descriptors)
  }
}
