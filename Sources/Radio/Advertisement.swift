public import Foundation

/// The contents of advertising data and scan response (Core Supplement Part A 1).
public struct Advertisement: Hashable, Sendable {
  public var localName: String?
  public var services: [BluetoothUUID]
  public var solicitedServices: [BluetoothUUID]
  /// Services that did not fit and are known by hash only.
  public var overflowServices: [BluetoothUUID]
  public var serviceData: [BluetoothUUID: Data]
  /// Company identifier, two octets little endian, and what follows it.
  public var manufacturerData: Data?
  /// dBm.
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
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let localName = Self(rawValue: 0x01)
    public static let services = Self(rawValue: 0x02)
    public static let solicitedServices = Self(rawValue: 0x04)
    public static let overflowServices = Self(rawValue: 0x08)
    public static let serviceData = Self(rawValue: 0x10)
    public static let manufacturerData = Self(rawValue: 0x20)
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
