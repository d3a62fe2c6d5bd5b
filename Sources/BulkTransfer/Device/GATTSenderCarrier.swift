internal import CoreBluetooth
internal import Foundation

/// Carries a session by writes and notifications of the haul service.
final class GATTSenderCarrier: SenderCarrier {
  let kind = CarrierKind.gatt
  private let peripheral: CBPeripheral
  private let control: CBCharacteristic
  private let data: CBCharacteristic
  private var fragmenter = ControlFragmenter()
  private var assembler = ControlAssembler()
  private var isWriting = false
  private var handler: ((SenderCarrierEvent) -> Void)?

  init(
    _ peripheral: CBPeripheral, control: CBCharacteristic, data: CBCharacteristic,
    handler: @escaping (SenderCarrierEvent) -> Void
  ) {
    self.peripheral = peripheral
    self.control = control
    self.data = data
    self.handler = handler
  }

  func send(control message: Data) {
    fragmenter.enqueue(message)
    writeFragment()
  }

  func pump(_ next: (Int) -> Record?) -> Bool {
    while peripheral.canSendWriteWithoutResponse {
      guard let packet = next(peripheral.maximumWriteValueLength(for: .withoutResponse)) else { return false }
      peripheral.writeValue(packet.body, for: data, type: .withoutResponse)
    }
    return true
  }

  func close() { handler = nil }

  /// A notification of the control characteristic has come.
  func received(_ fragment: Data) {
    switch assembler.receive(fragment) {
    case .message(let message): handler?(.control(message))
    case .incomplete, .dropped: break
    case .tooLong:
      handler?(.lost("it sent a control message of more than \(ControlAssembler.messageLimit) bytes"))
    }
  }

  /// The fragment under way was answered.
  func wrote(error: (any Error)?) {
    isWriting = false
    if let error {
      handler?(.lost("it refused a control message: \(error.localizedDescription)"))
    } else {
      writeFragment()
    }
  }

  /// Room for writes without response is back.
  func becameReady() { handler?(.ready) }

  private func writeFragment() {
    // One at a time: each is cut to the limit of its own moment.
    guard !isWriting else { return }
    let limit = peripheral.maximumWriteValueLength(for: .withoutResponse)
    guard let fragment = fragmenter.next(limit: limit) else { return }
    isWriting = true
    peripheral.writeValue(fragment, for: control, type: .withResponse)
  }
}
