public import CoreBluetooth

/// A service that a device must have for a connection to be of use, and what is discovered of it.
///
/// UUIDs are kept as text, as `CBUUID.uuidString` gives them: a value can then cross threads.
public struct ServiceRequirement: Hashable, Sendable {
  /// The service.
  public let service: String
  /// What errors call it.
  public let name: String
  /// Characteristics without which it is of no use.
  public let characteristics: [String]
  /// Characteristics that are discovered too, where they are there.
  public let optionalCharacteristics: [String]

  /// Makes a requirement.
  ///
  /// - Parameter name: what errors call the service; nil: "the service" and its UUID.
  public init(
    _ service: CBUUID, name: String? = nil, characteristics: [CBUUID] = [], optional: [CBUUID] = []
  ) {
    self.service = service.uuidString
    self.name = name ?? "the service \(service.uuidString)"
    self.characteristics = characteristics.map(\.uuidString)
    optionalCharacteristics = optional.map(\.uuidString)
  }

  /// Whether any characteristic is asked for.
  var hasCharacteristics: Bool { !characteristics.isEmpty || !optionalCharacteristics.isEmpty }
}
