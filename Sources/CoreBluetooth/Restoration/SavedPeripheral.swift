internal import Foundation
internal import Locking
internal import Radio

/// What a peripheral manager saves.
struct SavedPeripheral: SavedContents {
  /// A published service.
  struct Service: Codable, Equatable, Sendable {
    var uuid: SavedUUID
    var isPrimary: Bool
    /// Positions in the list of services, all before this one.
    var included: [Int]
    var characteristics: [Characteristic]
  }

  struct Characteristic: Codable, Equatable, Sendable {
    var uuid: SavedUUID
    var properties: UInt
    var permissions: UInt
    /// A fixed value.
    var value: Data?
    var descriptors: [Descriptor]
    /// Identifiers of centrals.
    var subscribers: [UUID]
  }

  /// A descriptor; one of the two values is there.
  struct Descriptor: Codable, Equatable, Sendable {
    var uuid: SavedUUID
    var text: String?
    var octets: Data?
  }

  var services: [Service]
  /// nil: the manager does not advertise.
  var advertisement: AdvertisementRequest?

  static let role = "peripheral"
  static let identifierKey = CBPeripheralManagerOptionRestoreIdentifierKey

  var isEmpty: Bool { services.isEmpty && advertisement == nil }

  /// Nothing of it could be found out again.
  var reduced: Self { self }

  var isSound: Bool {
    services.indices.allSatisfy { index in
      services[index].included.allSatisfy { (0..<index).contains($0) }
    }
  }
}

/// What a program wants to be advertised, as far as it can be.
struct AdvertisementRequest: Codable, Equatable, Sendable {
  var name: String?
  var services: [SavedUUID]

  init(_ data: [String: Any]?) {
    name = data?[CBAdvertisementDataLocalNameKey] as? String
    services = OptionValue.uuids(data?[CBAdvertisementDataServiceUUIDsKey]).map { SavedUUID($0.value) }
  }

  var budget: AdvertisementBudget { AdvertisementBudget(name: name, services: services.map(\.value)) }

  /// In the form in which it was given, without what is empty.
  var data: [String: Any] {
    var data: [String: Any] = [:]
    data[CBAdvertisementDataLocalNameKey] = name
    if !services.isEmpty { data[CBAdvertisementDataServiceUUIDsKey] = services.map { CBUUID($0.value) } }
    return data
  }
}

extension SavedPeripheral.Service {
  /// Describes a service as it is now; who includes what and who is subscribed is added when it is saved.
  init(_ service: CBMutableService) {
    uuid = SavedUUID(service.uuid.value)
    isPrimary = service.isPrimary
    included = []
    characteristics = (service.characteristics ?? []).map { SavedPeripheral.Characteristic($0) }
  }

  /// A service like the saved one, without the services that it includes.
  func makeService() -> CBMutableService {
    let service = CBMutableService(type: CBUUID(uuid.value), primary: isPrimary)
    service.characteristics = characteristics.map { $0.makeCharacteristic() }
    return service
  }
}

extension SavedPeripheral.Characteristic {
  fileprivate init(_ characteristic: CBCharacteristic) {
    let contents = characteristic.contents.withLock { $0 }
    uuid = SavedUUID(characteristic.uuid.value)
    properties = contents.properties.rawValue
    permissions = contents.permissions.rawValue
    value = contents.value
    descriptors = (contents.descriptors ?? []).map { descriptor in
      SavedPeripheral.Descriptor(
        uuid: SavedUUID(descriptor.uuid.value), text: descriptor.value as? String,
        octets: descriptor.value as? Data)
    }
    subscribers = []
  }

  fileprivate func makeCharacteristic() -> CBMutableCharacteristic {
    let characteristic = CBMutableCharacteristic(
      type: CBUUID(uuid.value), properties: CBCharacteristicProperties(rawValue: properties), value: value,
      permissions: CBAttributePermissions(rawValue: permissions))
    if !descriptors.isEmpty {
      characteristic.descriptors = descriptors.map {
        CBMutableDescriptor(type: CBUUID($0.uuid.value), value: $0.text ?? $0.octets)
      }
    }
    return characteristic
  }
}
