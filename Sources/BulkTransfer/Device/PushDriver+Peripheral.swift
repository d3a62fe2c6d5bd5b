internal import CoreBluetooth
internal import Foundation

extension PushDriver: CBPeripheralDelegate {
  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    if let error { return failLink(error) }
    guard let service = peripheral.services?.first(where: { $0.uuid == HaulService.service }) else {
      return handleLink(.unsupported("does not offer the haul service"))
    }
    peripheral.discoverCharacteristics(
      [HaulService.control, HaulService.data, HaulService.psm], for: service)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    if let error { return failLink(error) }
    let found = service.characteristics ?? []
    attributes.control = found.first { $0.uuid == HaulService.control }
    attributes.data = found.first { $0.uuid == HaulService.data }
    attributes.psm = found.first { $0.uuid == HaulService.psm }
    guard attributes.control != nil, attributes.data != nil else {
      return handleLink(.unsupported("offers a haul service without its characteristics"))
    }
    handleLink(.discovered(hasPSM: attributes.psm != nil))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    if characteristic.uuid == HaulService.psm {
      if let error, !(error is CBATTError) { return failLink(error) }
      let value = error == nil ? characteristic.value : nil
      let octets = value.map { [UInt8]($0) } ?? []
      handleLink(.psm(octets.count == 2 ? UInt16(octets[0]) | UInt16(octets[1]) << 8 : nil))
    } else if characteristic.uuid == HaulService.control, error == nil, let value = characteristic.value {
      (carrier as? GATTSenderCarrier)?.received(value)
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    if let error { return failLink(error) }
    guard characteristic.isNotifying, let control = attributes.control, let data = attributes.data else {
      return
    }
    let carrier = GATTSenderCarrier(peripheral, control: control, data: data) { [weak self] event in
      self?.carrierTold(event)
    }
    arrived(carrier, .subscribed)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    guard characteristic.uuid == HaulService.control else { return }
    (carrier as? GATTSenderCarrier)?.wrote(error: error)
  }

  func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {
    (carrier as? GATTSenderCarrier)?.becameReady()
  }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
    guard let channel, error == nil else {
      if let error, error.isEndOfLink { return failLink(error) }
      return handleLink(.channelRefused(error?.localizedDescription ?? "it refused the channel"))
    }
    let opened = ChannelSenderCarrier(channel, queue: queue) { [weak self] event in self?.carrierTold(event) }
    guard let opened else { return handleLink(.channelRefused("the channel has no streams")) }
    arrived(opened, .channelOpened)
  }

  func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
    guard invalidatedServices.contains(where: { $0.uuid == HaulService.service }) else { return }
    disconnect()
    lost("its services have changed")
  }

  private func carrierTold(_ event: SenderCarrierEvent) {
    switch event {
    case .control(let message): handle(.control(message))
    case .ready: pump()
    case .lost(let why):
      // The link itself may be up still; a new attempt begins with a new one.
      disconnect()
      lost(why)
    }
  }

  private func failLink(_ error: any Error) {
    disconnect()
    lost(error.localizedDescription)
  }
}

extension Error {
  /// Whether a request has failed because its link is gone, which says nothing about what the device would have answered.
  fileprivate var isEndOfLink: Bool {
    switch (self as? CBError)?.code {
    case .notConnected, .peripheralDisconnected, .operationCancelled: true
    default: false
    }
  }
}
