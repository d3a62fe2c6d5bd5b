internal import CoreBluetooth
internal import Foundation

/// The control characteristic towards one central: puts its writes together, cuts messages into notifications.
final class GATTReceiverCarrier {
  let central: CBCentral
  private weak var manager: CBPeripheralManager?
  private let control: CBMutableCharacteristic
  private var fragmenter = ControlFragmenter()
  private var assembler = ControlAssembler()
  /// A fragment that was cut and found no room.
  private var held: Data?

  init(_ central: CBCentral, control: CBMutableCharacteristic, manager: CBPeripheralManager) {
    self.central = central
    self.control = control
    self.manager = manager
  }

  func send(_ message: Data) {
    fragmenter.enqueue(message)
    flush()
  }

  /// Notifies until nothing waits or there is no room; then it is called again when there is.
  func flush() {
    guard let manager else { return }
    while let fragment = held ?? fragmenter.next(limit: central.maximumUpdateValueLength) {
      held = fragment
      guard manager.updateValue(fragment, for: control, onSubscribedCentrals: [central]) else { return }
      held = nil
    }
  }

  /// Takes one write; returns a whole message where it completes one. A message that is too long is dropped like any other that cannot
  /// be put together.
  func received(_ fragment: Data) -> Data? {
    if case .message(let message) = assembler.receive(fragment) { message } else { nil }
  }
}
