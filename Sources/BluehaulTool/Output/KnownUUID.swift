internal import BulkTransfer
internal import CoreBluetooth

/// What UUIDs stand for: those of the Bluetooth SIG's Assigned Numbers that devices commonly have, and of protocols that move firmware.
enum KnownUUID {
  /// A way to move firmware or files to a device.
  struct TransferProtocol: Sendable {
    let name: String
    let service: String
  }

  static let protocols = [
    TransferProtocol(name: "haul", service: HaulService.service.uuidString),
    TransferProtocol(name: "SMP (MCUmgr)", service: "8D53DC1D-1DB7-4CD3-868B-8A527460AA84"),
    TransferProtocol(name: "Nordic Secure DFU", service: "FE59"),
    TransferProtocol(name: "Nordic Legacy DFU", service: "00001530-1212-EFDE-1523-785FEABCD123"),
    TransferProtocol(name: "Object Transfer", service: "1825"),
  ]

  private static let names = [
    "1800": "Generic Access", "1801": "Generic Attribute", "180A": "Device Information", "180D": "Heart Rate",
    "180F": "Battery", "1825": "Object Transfer", "FE59": "Nordic Secure DFU",
    "2A00": "Device Name", "2A01": "Appearance", "2A04": "Peripheral Preferred Connection Parameters",
    "2A05": "Service Changed", "2A19": "Battery Level", "2A23": "System ID", "2A24": "Model Number",
    "2A25": "Serial Number", "2A26": "Firmware Revision", "2A27": "Hardware Revision",
    "2A28": "Software Revision", "2A29": "Manufacturer Name", "2A37": "Heart Rate Measurement",
    "2A38": "Body Sensor Location", "2AA6": "Central Address Resolution", "2B29": "Client Supported Features",
    "2B2A": "Database Hash", "2B3A": "Server Supported Features", "2900": "Extended Properties",
    "2901": "User Description", "2902": "Client Configuration", "2904": "Presentation Format",
    "8D53DC1D-1DB7-4CD3-868B-8A527460AA84": "SMP",
    "DA2E7828-FBCE-4E01-AE9E-261174997C48": "SMP characteristic",
    CBUUIDL2CAPPSMCharacteristicString: "L2CAP PSM", HaulService.service.uuidString: "haul",
  ]

  static func name(_ uuid: String) -> String? { names[uuid] }

  static func title(_ uuid: String) -> String { name(uuid).map { "\(uuid) \($0)" } ?? uuid }
}
