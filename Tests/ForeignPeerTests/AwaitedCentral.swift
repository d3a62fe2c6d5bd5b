import CoreBluetooth
import Foundation

/// A central whose callbacks are awaited one after the other.
// Sendable: nothing in it changes after init, and the parts are Sendable.
final class AwaitedCentral: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
  enum Event: Sendable {
    case state(CBManagerState)
    case found(CBPeripheral)
    case connected
    case disconnected((any Error)?)
    case discovered((any Error)?)
    case value(CBUUID, Data?, (any Error)?)
    case written((any Error)?)
    case notifies(Bool, (any Error)?)
    case room
    case channel(CBL2CAPChannel?, (any Error)?)
  }

  private let stream: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation

  override init() { (stream, continuation) = AsyncStream.makeStream(of: Event.self) }

  /// The first that `find` takes, however long that lasts; those before it are dropped.
  func next<Found>(_ find: (Event) throws -> Found?) async throws -> Found {
    for await event in stream { if let found = try find(event) { return found } }
    throw CancellationError()
  }

  func centralManagerDidUpdateState(_ central: CBCentralManager) { continuation.yield(.state(central.state)) }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) { continuation.yield(.found(peripheral)) }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    continuation.yield(.connected)
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) { continuation.yield(.disconnected(error)) }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    continuation.yield(.discovered(error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) { continuation.yield(.discovered(error)) }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) { continuation.yield(.value(characteristic.uuid, characteristic.value, error)) }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) { continuation.yield(.written(error)) }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) { continuation.yield(.notifies(characteristic.isNotifying, error)) }

  func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { continuation.yield(.room) }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
    continuation.yield(.channel(channel, error))
  }
}
