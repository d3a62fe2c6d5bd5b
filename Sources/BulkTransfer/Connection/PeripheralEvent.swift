public import CoreBluetooth

/// What a connected peripheral tells, on the queue of its connection; the delegate calls of `CBPeripheralDelegate` as values.
///
/// The calls of discovery that the connection itself makes are not among them.
public enum PeripheralEvent {
  /// A value was read, or a notification has come.
  case value(CBCharacteristic, (any Error)?)
  /// A write with response was answered.
  case written(CBCharacteristic, (any Error)?)
  /// Notifications were switched.
  case notifying(CBCharacteristic, (any Error)?)
  /// Room for writes without response is back.
  case readyToWrite
  /// A channel was opened or refused.
  case channel(CBL2CAPChannel?, (any Error)?)
  /// Services that the program has asked for beside the required ones.
  case services((any Error)?)
  /// Included services of a service.
  case includedServices(CBService, (any Error)?)
  /// Characteristics that the program has asked for beside the required ones.
  case characteristics(CBService, (any Error)?)
  /// Descriptors of a characteristic.
  case descriptors(CBCharacteristic, (any Error)?)
  /// A descriptor was read.
  case descriptorValue(CBDescriptor, (any Error)?)
  /// A descriptor was written.
  case descriptorWritten(CBDescriptor, (any Error)?)
  /// The signal strength in dBm.
  case rssi(Int, (any Error)?)
  /// The device is called otherwise.
  case name(String?)
  /// Services have changed; those that are required are discovered anew by the connection.
  case modifiedServices([CBService])
  /// The device could not be recalled from memory or remembered; the connection goes on without.
  case notRemembered(TransferError)
}
