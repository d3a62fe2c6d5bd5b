public import Foundation

/// Told what happens to a ``CBPeripheral``, on the queue of its manager. Every method has a default that does nothing.
///
/// Answers come in the order of the requests of one peripheral, exactly one each; none comes after the link has ended.
public protocol CBPeripheralDelegate: NSObjectProtocol {
  /// ``CBPeripheral/name`` has changed.
  func peripheralDidUpdateName(_ peripheral: CBPeripheral)

  /// The peer's database has changed; `invalidatedServices` are no longer among ``CBPeripheral/services``.
  func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService])

  /// Never called; superseded by ``peripheral(_:didReadRSSI:error:)``.
  @available(*, deprecated, message: "Use peripheral(_:didReadRSSI:error:) instead")
  func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?)

  /// Answers ``CBPeripheral/readRSSI()``; in dBm.
  func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?)

  /// Answers ``CBPeripheral/discoverServices(_:)``.
  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?)

  /// Answers ``CBPeripheral/discoverIncludedServices(_:for:)``.
  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?)

  /// Answers ``CBPeripheral/discoverCharacteristics(_:for:)``.
  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?)

  /// Answers a read, or tells of one notification: ``CBCharacteristic/value`` is that packet while this runs.
  ///
  /// None is left out. While the manager's queue is busy, 32 768 notifications of a device may wait; where there are more, the link ends with
  /// ``CBError/Code/outOfSpace`` after those that waited were told.
  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?)

  /// Answers a write with response.
  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?)

  /// Answers ``CBPeripheral/setNotifyValue(_:for:)``; ``CBCharacteristic/isNotifying`` is up to date.
  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?)

  /// Answers ``CBPeripheral/discoverDescriptors(for:)``.
  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic,
    error: (any Error)?)

  /// Answers the read of a descriptor.
  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)

  /// Answers the write of a descriptor.
  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?)

  /// Room for writes without response is back after ``CBPeripheral/canSendWriteWithoutResponse`` was false.
  func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral)

  /// Answers ``CBPeripheral/openL2CAPChannel(_:)``.
  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?)
}

extension CBPeripheralDelegate {
  public func peripheralDidUpdateName(_ peripheral: CBPeripheral) {}

  public func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {}

  public func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?) {}

  public func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {}

  public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?
  ) {}

  public func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?
  ) {}

  public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {}

  public func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {}
}
