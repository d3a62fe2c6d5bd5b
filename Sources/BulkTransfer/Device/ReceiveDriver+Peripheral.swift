internal import CoreBluetooth
internal import Foundation

extension ReceiveDriver: CBPeripheralManagerDelegate {
  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    switch peripheral.state {
    case .poweredOn: publish()
    case .unsupported: interrupted("there is no Bluetooth adapter that can be used", isFinal: true)
    case .unauthorized: interrupted("this program is not permitted to use Bluetooth", isFinal: true)
    case .poweredOff: interrupted("Bluetooth is switched off", isFinal: false)
    default: interrupted("Bluetooth is not ready", isFinal: false)
    }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) {
    // Without a channel there is still GATT.
    publishService(psm: error == nil ? PSM : nil)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    if let error { return fail("publish the haul service", error) }
    advertise()
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    if let error { return fail("advertise as \(options.name)", error) }
    isReady()
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
  ) {
    guard let control, characteristic === control else { return }
    remove { $0.isGATT(of: central.identifier) }
    _ = connect(central, control, peripheral)
  }

  private func connect(
    _ central: CBCentral, _ control: CBMutableCharacteristic, _ manager: CBPeripheralManager
  ) -> Connection? {
    let carrier = GATTReceiverCarrier(central, control: control, manager: manager)
    // A central cannot be disconnected by a peripheral; its line starts anew with the next HELLO.
    let line = makeLine(
      peer: central.identifier, kind: .gatt, send: { [weak carrier] in carrier?.send($0) }, close: {})
    guard let line else { return nil }
    let connection = Connection(line: line, carrier: .gatt(carrier))
    connections.append(connection)
    return connection
  }

  /// The connection of a central that writes; one that has had to make room while it was silent gets another.
  private func connection(
    of central: CBCentral, writing characteristic: CBCharacteristic, _ manager: CBPeripheralManager
  ) -> Connection? {
    if let connection = connections.first(where: { $0.isGATT(of: central.identifier) }) { return connection }
    guard let control, characteristic === control,
      control.subscribedCentrals?.contains(where: { $0.identifier == central.identifier }) == true
    else { return nil }
    return connect(central, control, manager)
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) {
    guard let control, characteristic === control else { return }
    remove { $0.isGATT(of: central.identifier) }
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    guard let first = requests.first else { return }
    guard requests.allSatisfy({ $0.offset == 0 }) else {
      return peripheral.respond(to: first, withResult: .invalidOffset)
    }
    // The answer goes first: what the writes lead to may end the receiver.
    peripheral.respond(to: first, withResult: .success)
    for request in requests {
      guard let value = request.value,
        let connection = connection(of: request.central, writing: request.characteristic, peripheral),
        case .gatt(let carrier) = connection.carrier
      else { continue }
      if request.characteristic === data {
        connection.line.handle(.packet(value))
      } else if request.characteristic === control, let message = carrier.received(value) {
        control(message, of: connection, refuse: carrier.send)
      }
    }
  }

  func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
    for case .gatt(let carrier) in connections.map(\.carrier) { carrier.flush() }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
  ) {
    guard let channel, error == nil, let peer = channel.peer?.identifier else { return }
    guard let carrier = ChannelReceiverCarrier(channel, queue: queue) else { return }
    let line = makeLine(
      peer: peer, kind: .l2cap, send: { [weak carrier] in carrier?.send($0) },
      close: { [weak self, weak carrier] in self?.close(carrier) })
    guard let line else { return carrier.close() }
    let connection = Connection(line: line, carrier: .channel(carrier))
    connections.append(connection)
    carrier.start { [weak self, weak carrier] event in
      switch event {
      case .control(let message): self?.control(message, of: connection) { carrier?.send($0) }
      case .data(let records): connection.line.handle(.records(records))
      case .lost: self?.close(carrier)
      }
    }
  }

  private func close(_ carrier: ChannelReceiverCarrier?) {
    remove { $0.isChannel(carrier) }
    carrier?.close()
  }

  private func fail(_ what: String, _ error: any Error) {
    finish(.failure(TransferError(.radioUnavailable, "cannot \(what): \(error.localizedDescription)")))
  }
}

extension ReceiveDriver.Connection {
  func isGATT(of peer: UUID) -> Bool {
    if case .gatt = carrier { line.peer == peer } else { false }
  }

  func isChannel(_ other: ChannelReceiverCarrier?) -> Bool {
    if case .channel(let own) = carrier { own === other } else { false }
  }
}
