public import Foundation

/// Told what happens to a ``CBPeripheralManager``: serially, on its queue, in the order of events.
///
/// Services and characteristics handed over are the objects that the program added.
public protocol CBPeripheralManagerDelegate: NSObjectProtocol {
  /// The manager's state has changed; commands are accepted only while it is `poweredOn`.
  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager)

  /// The state of a former run is back; called before the first update of the state. Services in it are live: they are not to be added again.
  func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any])

  /// Answers ``CBPeripheralManager/startAdvertising(_:)``.
  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?)

  /// Answers ``CBPeripheralManager/add(_:)``.
  func peripheralManager(
    _ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?)

  /// A central has subscribed.
  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral,
    didSubscribeTo characteristic: CBCharacteristic)

  /// A central has unsubscribed, or its link has ended.
  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral,
    didUnsubscribeFrom characteristic: CBCharacteristic)

  /// A central reads a value: set ``CBATTRequest/value`` and respond. The default refuses: request not supported.
  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest)

  /// A central writes: take all of `requests` or none, and respond once, with the first. The default refuses.
  ///
  /// While the manager's queue is busy, 32 768 writes without response may wait; more are dropped, with a line in the log.
  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest])

  /// There is room again after ``CBPeripheralManager/updateValue(_:for:onSubscribedCentrals:)`` returned false.
  func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager)

  /// Answers ``CBPeripheralManager/publishL2CAPChannel(withEncryption:)``.
  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?)

  /// Answers ``CBPeripheralManager/unpublishL2CAPChannel(_:)``.
  func peripheralManager(
    _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?)

  /// A central has opened a channel to a published PSM.
  func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?)
}

extension CBPeripheralManagerDelegate {
  /// Declines the state, which is how a delegate without the method is found out.
  public func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
    peripheral.core.declineRestored()
  }

  public func peripheralManagerDidStartAdvertising(
    _ peripheral: CBPeripheralManager, error: (any Error)?
  ) {}

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?
  ) {}

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral,
    didSubscribeTo characteristic: CBCharacteristic
  ) {}

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral,
    didUnsubscribeFrom characteristic: CBCharacteristic
  ) {}

  public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
    peripheral.respond(to: request, withResult: .requestNotSupported)
  }

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]
  ) {
    if let first = requests.first { peripheral.respond(to: first, withResult: .requestNotSupported) }
  }

  public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {}

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) {}

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) {}

  public func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
  ) {}
}
