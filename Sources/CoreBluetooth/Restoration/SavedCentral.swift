internal import Foundation
internal import Radio

/// What a central manager saves.
struct SavedCentral: SavedContents {
  /// A device that is connected or that a connection is pending to.
  struct Peripheral: Codable, Equatable, Sendable {
    var identifier: UUID
    var name: String?
    var options: [String: Double]
    /// nil: nothing was discovered.
    var services: [Service]?
  }

  /// A service of a device. Handles: first and last.
  struct Service: Codable, Equatable, Sendable {
    var uuid: SavedUUID
    var handles: [AttributeHandle]
    var isPrimary: Bool
    /// Whether it was discovered as a service of the device, not only as an included one.
    var isListed: Bool
    /// Positions in the list of services; nil: not discovered.
    var included: [Int]?
    /// nil: not discovered.
    var characteristics: [Characteristic]?
  }

  struct Characteristic: Codable, Equatable, Sendable {
    var uuid: SavedUUID
    var handle: AttributeHandle
    var endHandle: AttributeHandle
    var properties: UInt8
    var isNotifying: Bool
    /// nil: not discovered.
    var descriptors: [Descriptor]?
  }

  struct Descriptor: Codable, Equatable, Sendable {
    var uuid: SavedUUID
    var handle: AttributeHandle
  }

  var peripherals: [Peripheral]
  var scan: ScanRequest?

  static let role = "central"
  static let identifierKey = CBCentralManagerOptionRestoreIdentifierKey

  var isEmpty: Bool { peripherals.isEmpty && scan == nil }

  var reduced: Self {
    var result = self
    for index in result.peripherals.indices { result.peripherals[index].services = nil }
    return result
  }

  var isSound: Bool {
    Set(peripherals.map(\.identifier)).count == peripherals.count
      && peripherals.allSatisfy { peripheral in
        let services = peripheral.services ?? []
        return services.allSatisfy { $0.isSound(among: services.count) }
      }
  }
}

extension SavedCentral.Service {
  fileprivate func isSound(among count: Int) -> Bool {
    guard let range, range.lowerBound > 0, (included ?? []).allSatisfy({ (0..<count).contains($0) }) else {
      return false
    }
    return (characteristics ?? []).allSatisfy { characteristic in
      range.contains(characteristic.handle) && range.contains(characteristic.endHandle)
        && characteristic.handle <= characteristic.endHandle
        && (characteristic.descriptors ?? []).allSatisfy {
          (characteristic.handle...characteristic.endHandle).contains($0.handle)
        }
    }
  }

  private var range: ClosedRange<AttributeHandle>? {
    handles.count == 2 && handles[0] <= handles[1] ? handles[0]...handles[1] : nil
  }

  /// As the radio describes it; nil where the handles make no range.
  var remote: RemoteService? {
    range.map { RemoteService(handles: $0, uuid: uuid.value, isPrimary: isPrimary) }
  }
}

extension SavedCentral.Characteristic {
  init(_ characteristic: CBCharacteristic, _ remote: RemoteCharacteristic) {
    self.init(
      uuid: SavedUUID(remote.uuid), handle: remote.handle, endHandle: remote.endHandle,
      properties: remote.properties.rawValue, isNotifying: characteristic.isNotifying,
      descriptors: characteristic.descriptors?.compactMap(\.remote).map {
        SavedCentral.Descriptor(uuid: SavedUUID($0.uuid), handle: $0.handle)
      })
  }

  var remote: RemoteCharacteristic {
    RemoteCharacteristic(
      handle: handle, endHandle: endHandle, uuid: uuid.value, properties: GATTProperties(rawValue: properties)
    )
  }
}

/// A scan as a program asked for it.
struct ScanRequest: Codable, Equatable, Sendable {
  /// Empty: every device.
  var services: [SavedUUID]
  /// nil: the option was not given.
  var allowsDuplicates: Bool?
  /// nil: the option was not given.
  var solicited: [SavedUUID]?

  init(services: [CBUUID]?, options: [String: Any]?) {
    self.services = (services ?? []).map { SavedUUID($0.value) }
    allowsDuplicates = options?[CBCentralManagerScanOptionAllowDuplicatesKey].map { OptionValue.bool($0) }
    solicited = options?[CBCentralManagerScanOptionSolicitedServiceUUIDsKey].map {
      OptionValue.uuids($0).map { SavedUUID($0.value) }
    }
  }

  var filter: ScanFilter {
    ScanFilter(
      services: services.map(\.value), solicitedServices: (solicited ?? []).map(\.value),
      allowDuplicates: allowsDuplicates ?? false)
  }

  /// The options in the form in which they were given.
  var options: [String: Any] {
    var options: [String: Any] = [:]
    options[CBCentralManagerScanOptionAllowDuplicatesKey] = allowsDuplicates.map { NSNumber(value: $0) }
    options[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] = solicited.map {
      $0.map { CBUUID($0.value) }
    }
    return options
  }
}
