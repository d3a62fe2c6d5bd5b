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
}
