internal import DBus

/// Names of bluetoothd's interfaces. Source: the manual pages org.bluez.*(5).
enum BlueZ {
  static let service = "org.bluez"
  static let adapter = "org.bluez.Adapter1"
  static let device = "org.bluez.Device1"
  static let gattService = "org.bluez.GattService1"
  static let gattCharacteristic = "org.bluez.GattCharacteristic1"
  static let gattDescriptor = "org.bluez.GattDescriptor1"
  static let gattManager = "org.bluez.GattManager1"
  static let advertisement = "org.bluez.LEAdvertisement1"
  static let advertisingManager = "org.bluez.LEAdvertisingManager1"
  static let agent = "org.bluez.Agent1"
  static let agentManager = "org.bluez.AgentManager1"
  static let agentManagerPath: ObjectPath = "/org/bluez"

  /// Errors that its methods end with.
  enum Failure {
    static let alreadyConnected = "org.bluez.Error.AlreadyConnected"
    static let alreadyExists = "org.bluez.Error.AlreadyExists"
    static let authenticationCanceled = "org.bluez.Error.AuthenticationCanceled"
    static let authenticationFailed = "org.bluez.Error.AuthenticationFailed"
    static let authenticationRejected = "org.bluez.Error.AuthenticationRejected"
    static let authenticationTimeout = "org.bluez.Error.AuthenticationTimeout"
    static let canceled = "org.bluez.Error.Canceled"
    static let connectionAttemptFailed = "org.bluez.Error.ConnectionAttemptFailed"
    static let doesNotExist = "org.bluez.Error.DoesNotExist"
    static let failed = "org.bluez.Error.Failed"
    static let inProgress = "org.bluez.Error.InProgress"
    static let invalidArguments = "org.bluez.Error.InvalidArguments"
    static let invalidLength = "org.bluez.Error.InvalidLength"
    static let invalidOffset = "org.bluez.Error.InvalidOffset"
    static let invalidValueLength = "org.bluez.Error.InvalidValueLength"
    static let improperlyConfigured = "org.bluez.Error.ImproperlyConfigured"
    static let notAuthorized = "org.bluez.Error.NotAuthorized"
    static let notAvailable = "org.bluez.Error.NotAvailable"
    static let notConnected = "org.bluez.Error.NotConnected"
    static let notPermitted = "org.bluez.Error.NotPermitted"
    static let notReady = "org.bluez.Error.NotReady"
    static let notSupported = "org.bluez.Error.NotSupported"
    static let rejected = "org.bluez.Error.Rejected"
  }
}
