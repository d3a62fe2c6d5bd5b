public import CoreBluetooth

/// The attributes of the haul service (docs/protocol.md, section 3).
public enum HaulService {
  /// The primary service; devices that can receive advertise it.
  public static let service = CBUUID(string: "B1E00001-6861-756C-A5D2-3F7C41906E8B")
  /// Control messages: write, notify.
  static let control = CBUUID(string: "B1E00002-6861-756C-A5D2-3F7C41906E8B")
  /// The data stream: write without response.
  static let data = CBUUID(string: "B1E00003-6861-756C-A5D2-3F7C41906E8B")
  /// The PSM of the L2CAP carrier, two octets, little endian: read.
  static let psm = CBUUID(string: CBUUIDL2CAPPSMCharacteristicString)

  /// What a device must have to receive.
  static var requirement: ServiceRequirement {
    ServiceRequirement(service, name: "the haul service", characteristics: [control, data], optional: [psm])
  }
}
