public import CoreFoundation
public import Foundation

/// Told what happens to a ``CBCentralManager``: serially, on its queue, in the order of events.
///
/// Methods other than ``centralManagerDidUpdateState(_:)`` have a default that does nothing. A subclass of a conforming class cannot add one of
/// them later: the compiler binds the default where the conformance is declared.
public protocol CBCentralManagerDelegate: NSObjectProtocol {
  /// The manager's state has changed; commands are accepted only while it is `poweredOn`.
  func centralManagerDidUpdateState(_ central: CBCentralManager)

  /// The state of a former run is back; called before the first update of the state. Peripherals in it are to be held, as ever.
  func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any])

  /// A device was seen. `RSSI` in dBm; 127: not known. While the manager's queue is busy, 4096 sightings may wait; more are left out.
  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber)

  /// The link is up.
  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral)

  /// A pending connection has ended without a link.
  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?)

  /// The link has ended; no error: as this manager asked.
  ///
  /// The one with a time stamp is called instead where this one is not implemented. A delegate that implements this one gets no automatic
  /// reconnection.
  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?)

  /// The link has ended at `timestamp`, by the system's clock. `isReconnecting`: the manager is making it again by itself, as asked by
  /// ``CBConnectPeripheralOptionEnableAutoReconnect``; ``centralManager(_:didConnect:)`` follows when it is there.
  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral,
    timestamp: CFAbsoluteTime, isReconnecting: Bool, error: (any Error)?)

  /// A device that matches ``CBCentralManager/registerForConnectionEvents(options:)`` was connected or disconnected.
  func centralManager(
    _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent,
    for peripheral: CBPeripheral)

  /// The access to the Apple Notification Center Service has changed.
  func centralManager(
    _ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral)
}

extension CBCentralManagerDelegate {
  /// Declines the state, which is how a delegate without the method is found out.
  public func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
    central.core.declineRestored()
  }

  public func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {}

  public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {}

  public func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) {}

  /// Forwards to the method with a time stamp, which is how that one comes to be called.
  public func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    let isReconnecting = central.core.reconnect(peripheral)
    centralManager(
      central, didDisconnectPeripheral: peripheral, timestamp: central.disconnectionTime,
      isReconnecting: isReconnecting, error: error)
  }

  public func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral,
    timestamp: CFAbsoluteTime, isReconnecting: Bool, error: (any Error)?
  ) {}

  public func centralManager(
    _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent,
    for peripheral: CBPeripheral
  ) {}

  public func centralManager(
    _ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral
  ) {}
}
