// Keys and their string values are Apple's, so that dictionaries that were stored or logged elsewhere stay readable.

// MARK: Advertisement data

/// The advertised name; a `String`.
public let CBAdvertisementDataLocalNameKey: String = "kCBAdvDataLocalName"
/// Transmit power in dBm; an `NSNumber`.
public let CBAdvertisementDataTxPowerLevelKey: String = "kCBAdvDataTxPowerLevel"
/// Advertised services; `[CBUUID]`.
public let CBAdvertisementDataServiceUUIDsKey: String = "kCBAdvDataServiceUUIDs"
/// Data of services; `[CBUUID: Data]`.
public let CBAdvertisementDataServiceDataKey: String = "kCBAdvDataServiceData"
/// Manufacturer data, company identifier first (two octets, little endian); `Data`.
public let CBAdvertisementDataManufacturerDataKey: String = "kCBAdvDataManufacturerData"
/// Services known by hash only; `[CBUUID]`.
public let CBAdvertisementDataOverflowServiceUUIDsKey: String = "kCBAdvDataHashedServiceUUIDs"
/// Whether the advertiser accepts links; an `NSNumber` holding a Boolean, always present.
public let CBAdvertisementDataIsConnectable: String = "kCBAdvDataIsConnectable"
/// Solicited services; `[CBUUID]`.
public let CBAdvertisementDataSolicitedServiceUUIDsKey: String = "kCBAdvDataSolicitedServiceUUIDs"

// MARK: Options of a central manager

/// Whether to warn the user where Bluetooth is off; a Boolean. Without a user interface it has no effect.
public let CBCentralManagerOptionShowPowerAlertKey: String = "kCBInitOptionShowPowerAlert"
/// Identifies a manager whose state is to be restored; a `String`.
public let CBCentralManagerOptionRestoreIdentifierKey: String = "kCBInitOptionRestoreIdentifier"
/// Access for media devices; a Boolean. Without effect.
public let CBCentralManagerOptionDeviceAccessForMedia: String = "kCBInitOptionDeviceAccessForMedia"
/// Whether a scan reports every advertisement instead of one per device; a Boolean.
public let CBCentralManagerScanOptionAllowDuplicatesKey: String = "kCBScanOptionAllowDuplicates"
/// Services whose solicitation is searched for as well; `[CBUUID]`.
public let CBCentralManagerScanOptionSolicitedServiceUUIDsKey: String = "kCBScanOptionSolicitedServiceUUIDs"

// MARK: Options of a connection

/// Whether to alert the user at a connection; a Boolean. Without effect.
public let CBConnectPeripheralOptionNotifyOnConnectionKey: String = "kCBConnectOptionNotifyOnConnection"
/// Whether to alert the user at a disconnection; a Boolean. Without effect.
public let CBConnectPeripheralOptionNotifyOnDisconnectionKey: String = "kCBConnectOptionNotifyOnDisconnection"
/// Whether to alert the user at a notification; a Boolean. Without effect.
public let CBConnectPeripheralOptionNotifyOnNotificationKey: String = "kCBConnectOptionNotifyOnNotification"
/// Seconds to wait before connecting; an `NSNumber`.
public let CBConnectPeripheralOptionStartDelayKey: String = "kCBConnectOptionStartDelay"
/// Whether to bring up Bluetooth Classic profiles too; a Boolean. Without effect on Linux, and the log says so.
public let CBConnectPeripheralOptionEnableTransportBridgingKey: String =
  "kCBConnectOptionEnableTransportBridging"
/// Whether the Apple Notification Center Service is needed; a Boolean. Without effect on Linux, and the log says so.
public let CBConnectPeripheralOptionRequiresANCS: String = "kCBConnectOptionRequiresANCS"
/// Whether to connect again by itself after a link was lost; a Boolean.
public let CBConnectPeripheralOptionEnableAutoReconnect: String = "kCBConnectOptionEnableAutoReconnect"

// MARK: Restored state

/// Peripherals that were connected or pending; `[CBPeripheral]`.
public let CBCentralManagerRestoredStatePeripheralsKey: String = "kCBRestoredPeripherals"
/// Services that were scanned for; `[CBUUID]`.
public let CBCentralManagerRestoredStateScanServicesKey: String = "kCBRestoredScanServices"
/// Options of the scan; `[String: Any]`.
public let CBCentralManagerRestoredStateScanOptionsKey: String = "kCBRestoredScanOptions"
/// As ``CBCentralManagerOptionShowPowerAlertKey``, for a peripheral manager.
public let CBPeripheralManagerOptionShowPowerAlertKey: String = "kCBInitOptionShowPowerAlert"
/// As ``CBCentralManagerOptionRestoreIdentifierKey``, for a peripheral manager.
public let CBPeripheralManagerOptionRestoreIdentifierKey: String = "kCBInitOptionRestoreIdentifier"
/// Services that were published; `[CBMutableService]`.
public let CBPeripheralManagerRestoredStateServicesKey: String = "kCBRestoredServices"
/// What was advertised; `[String: Any]`.
public let CBPeripheralManagerRestoredStateAdvertisementDataKey: String = "kCBRestoredAdvertisement"

/// Which connection events to report.
public struct CBConnectionEventMatchingOption: RawRepresentable, Hashable, Sendable {
  /// The key's string.
  public let rawValue: String

  /// Wraps a key's string.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Devices with one of these services, at most four; `[CBUUID]`.
  public static let serviceUUIDs = Self(rawValue: "kCBConnectionEventMatchingOptionServiceUUIDs")
  /// These devices; `[UUID]`.
  public static let peripheralUUIDs = Self(rawValue: "kCBConnectionEventMatchingOptionPeripheralUUIDs")
}

// MARK: UUIDs of descriptors (Assigned Numbers 3.7) and of the PSM characteristic

/// Characteristic Extended Properties; its value is an `NSNumber`.
public let CBUUIDCharacteristicExtendedPropertiesString: String = "2900"
/// Characteristic User Description; its value is a `String`.
public let CBUUIDCharacteristicUserDescriptionString: String = "2901"
/// Client Characteristic Configuration; its value is an `NSNumber`.
public let CBUUIDClientCharacteristicConfigurationString: String = "2902"
/// Server Characteristic Configuration; its value is an `NSNumber`.
public let CBUUIDServerCharacteristicConfigurationString: String = "2903"
/// Characteristic Presentation Format; its value is `Data` of 7 octets.
public let CBUUIDCharacteristicFormatString: String = "2904"
/// Characteristic Aggregate Format; its value is `Data`.
public let CBUUIDCharacteristicAggregateFormatString: String = "2905"
/// Valid Range; its value is `Data`.
public let CBUUIDCharacteristicValidRangeString: String = "2906"
/// Observation Schedule; its value is `Data`.
public let CBUUIDCharacteristicObservationScheduleString: String = "2910"
/// A characteristic whose value is the PSM of an L2CAP channel, two octets, little endian.
public let CBUUIDL2CAPPSMCharacteristicString: String = "ABDD3056-28FA-441D-A470-55A75A52553A"

/// The protocol/service multiplexer of an L2CAP channel (Core Vol 3 Part A 4.22).
public typealias CBL2CAPPSM = UInt16
