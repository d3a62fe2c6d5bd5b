internal import Radio

/// Attribute types and services that GATT itself uses (Assigned Numbers 3.4, 3.7, 3.8).
enum GATTType {
  static let primaryService = BluetoothUUID(UInt16(0x2800))
  static let secondaryService = BluetoothUUID(UInt16(0x2801))
  static let include = BluetoothUUID(UInt16(0x2802))
  static let characteristic = BluetoothUUID(UInt16(0x2803))
  static let extendedProperties = BluetoothUUID(UInt16(0x2900))
  static let clientConfiguration = BluetoothUUID(UInt16(0x2902))
  static let deviceName = BluetoothUUID(UInt16(0x2A00))
  static let appearance = BluetoothUUID(UInt16(0x2A01))
  static let serviceChanged = BluetoothUUID(UInt16(0x2A05))
  static let accessService = BluetoothUUID(UInt16(0x1800))
  static let attributeService = BluetoothUUID(UInt16(0x1801))
}

/// Bits of a Client Characteristic Configuration (Core Vol 3 Part G 3.3.3.3).
struct ClientConfiguration: OptionSet, Hashable {
  var rawValue: UInt16

  static let notify = Self(rawValue: 0x0001)
  static let indicate = Self(rawValue: 0x0002)
}

extension ATTErrorCode {
  /// Client Characteristic Configuration Descriptor Improperly Configured (Core Supplement Part B 1.2).
  static let improperlyConfigured = Self(rawValue: 0xFD)
}

/// A characteristic of one of the peripheral clients of an adapter.
struct LocalAttribute: Hashable, Sendable {
  /// Which client of the adapter serves it.
  var client: UInt64
  /// Which of its characteristics.
  var id: LocalCharacteristicID
}

/// A request of one of the central clients of an adapter.
struct ClientRequest: Hashable, Sendable {
  /// Which client of the adapter asked.
  var client: UInt64
  /// The number that it gave to the request.
  var id: RequestID
}
