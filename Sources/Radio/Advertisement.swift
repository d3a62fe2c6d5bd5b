public import Foundation

/// The contents of advertising data and scan response (Core Supplement Part A 1).
public struct Advertisement: Hashable, Sendable {
  /// Complete or shortened local name (1.2); nil: none.
  public var localName: String?
  /// Service UUIDs of any width, from complete and incomplete lists (1.1).
  public var services: [BluetoothUUID]
  /// Services that the device looks for in a central (1.10).
  public var solicitedServices: [BluetoothUUID]
  /// Services that did not fit and are known by hash only.
  public var overflowServices: [BluetoothUUID]
  /// What a service says of itself, by its UUID, without the UUID (1.11).
  public var serviceData: [BluetoothUUID: Data]
  /// Company identifier, two octets little endian, and what follows it (1.4).
  public var manufacturerData: Data?
  /// The power at which the packet was sent, -127...127 dBm (1.5).
  public var txPower: Int?

  /// Makes advertising contents.
  public init(
    localName: String? = nil, services: [BluetoothUUID] = [], solicitedServices: [BluetoothUUID] = [],
    overflowServices: [BluetoothUUID] = [], serviceData: [BluetoothUUID: Data] = [:],
    manufacturerData: Data? = nil, txPower: Int? = nil
  ) {
    self.localName = localName
    self.services = services
    self.solicitedServices = solicitedServices
    self.overflowServices = overflowServices
    self.serviceData = serviceData
    self.manufacturerData = manufacturerData
    self.txPower = txPower
  }

  /// Kinds of things that an advertisement says.
  public struct Fields: OptionSet, Hashable, Sendable {
    /// The bits; they do not go on the air.
    public var rawValue: UInt8

    /// Takes bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// ``Advertisement/localName``.
    public static let localName = Self(rawValue: 0x01)
    /// ``Advertisement/services``.
    public static let services = Self(rawValue: 0x02)
    /// ``Advertisement/solicitedServices``.
    public static let solicitedServices = Self(rawValue: 0x04)
    /// ``Advertisement/overflowServices``.
    public static let overflowServices = Self(rawValue: 0x08)
    /// ``Advertisement/serviceData``.
    public static let serviceData = Self(rawValue: 0x10)
    /// ``Advertisement/manufacturerData``.
    public static let manufacturerData = Self(rawValue: 0x20)
    /// ``Advertisement/txPower``.
    public static let txPower = Self(rawValue: 0x40)
  }

  /// What it says anything of.
  public var fields: Fields {
    var fields: Fields = []
    if localName != nil { fields.insert(.localName) }
    if !services.isEmpty { fields.insert(.services) }
    if !solicitedServices.isEmpty { fields.insert(.solicitedServices) }
    if !overflowServices.isEmpty { fields.insert(.overflowServices) }
    if !serviceData.isEmpty { fields.insert(.serviceData) }
    if manufacturerData != nil { fields.insert(.manufacturerData) }
    if txPower != nil { fields.insert(.txPower) }
    return fields
  }
}
