public import Foundation

/// Which device is meant.
public enum DeviceTarget: Hashable, Sendable, CustomStringConvertible {
  /// The device that advertises, or is known by, this name.
  case name(String)
  /// The device with this identifier.
  case identifier(UUID)
  /// The device that has any of these identifiers: a text, which is what it is called, can stand for several.
  case oneOf([UUID], called: String)
  /// Whichever device is there, by what is scanned for: the one that is remembered, else one that is connected to the system, else one
  /// that advertises.
  case any

  /// Whether a device is meant. The name that it advertises counts before the one by which it was known, which may be out of date; an
  /// advertised name may be shortened.
  public func matches(_ identifier: UUID, advertised: String?, known: String?) -> Bool {
    switch self {
    case .name(let name):
      guard let advertised else { return known == name }
      return advertised == name || (known == name && name.hasPrefix(advertised))
    case .identifier(let own): return identifier == own
    case .oneOf(let candidates, _): return candidates.contains(identifier)
    case .any: return true
    }
  }

  public var description: String {
    switch self {
    case .name(let name): "\u{201C}\(name)\u{201D}"
    case .identifier(let identifier): identifier.uuidString
    case .oneOf(_, let text): text
    case .any: "a device"
    }
  }
}

/// A device as a search has come across it.
public struct DeviceSighting: Hashable, Sendable {
  /// By which this host knows it.
  public var identifier: UUID
  /// The name in its advertisement.
  public var advertisedName: String?
  /// The name by which the host knew it.
  public var knownName: String?
  /// dBm; nil: not known.
  public var rssi: Int?
  /// Whether another program of this host is connected to it; such a device may not advertise.
  public var isConnected: Bool
  /// The services in its advertisement, as `CBUUID.uuidString` gives them.
  public var services: [String]
  /// Whether the same scan has told of the device before, and tells it again with all that is known because that is more now.
  public var isUpdate = false

  /// Makes a sighting.
  public init(
    identifier: UUID, advertisedName: String? = nil, knownName: String? = nil, rssi: Int? = nil,
    isConnected: Bool = false, services: [String] = []
  ) {
    self.identifier = identifier
    self.advertisedName = advertisedName
    self.knownName = knownName
    self.rssi = rssi
    self.isConnected = isConnected
    self.services = services
  }

  /// Identifier and signal strength, for an error.
  var inWords: String {
    let strength = rssi.map { "\($0) dBm" } ?? (isConnected ? "connected" : "signal strength not known")
    return "\(identifier.uuidString) (\(strength))"
  }
}

extension DeviceTarget {
  func matches(_ sighting: DeviceSighting) -> Bool {
    matches(sighting.identifier, advertised: sighting.advertisedName, known: sighting.knownName)
  }
}

extension DeviceTarget {
  /// The identifier, where it is what was given.
  var identifier: UUID? { if case .identifier(let identifier) = self { identifier } else { nil } }

  /// The identifiers that the device can have, where that is what was given.
  var candidates: [UUID] {
    switch self {
    case .identifier(let identifier): [identifier]
    case .oneOf(let identifiers, _): identifiers
    case .name, .any: []
    }
  }
}
