internal import CoreBluetooth
internal import Foundation

extension PushDriver {
  func connectionTold(_ event: PeripheralEvent) {
    switch event {
    case .value(let characteristic, let error): updated(characteristic, error)
    case .written(let characteristic, let error):
      guard characteristic.uuid == HaulService.control else { return }
      (carrier as? GATTSenderCarrier)?.wrote(error: error)
    case .notifying(let characteristic, let error): subscribed(characteristic, error)
    case .readyToWrite: (carrier as? GATTSenderCarrier)?.becameReady()
    case .channel(let channel, let error): opened(channel, error)
    case .services, .includedServices, .characteristics, .descriptors, .descriptorValue, .descriptorWritten,
      .rssi, .name, .modifiedServices, .notRemembered:
      break
    }
  }

  private func updated(_ characteristic: CBCharacteristic, _ error: (any Error)?) {
    if characteristic.uuid == HaulService.psm {
      if let error, !(error is CBATTError) { return drop(error.localizedDescription) }
      let value = error == nil ? characteristic.value : nil
      let octets = value.map { [UInt8]($0) } ?? []
      handleLink(.psm(octets.count == 2 ? UInt16(octets[0]) | UInt16(octets[1]) << 8 : nil))
    } else if characteristic.uuid == HaulService.control, error == nil, let value = characteristic.value {
      (carrier as? GATTSenderCarrier)?.received(value)
    }
  }

  private func subscribed(_ characteristic: CBCharacteristic, _ error: (any Error)?) {
    if let error { return drop(error.localizedDescription) }
    guard characteristic.isNotifying, let peripheral = connection.peripheral,
      let control = connection.characteristic(HaulService.control),
      let data = connection.characteristic(HaulService.data)
    else { return }
    let carrier = GATTSenderCarrier(peripheral, control: control, data: data) { [weak self] event in
      self?.carrierTold(event)
    }
    arrived(carrier, .subscribed)
  }

  private func opened(_ channel: CBL2CAPChannel?, _ error: (any Error)?) {
    guard let channel, error == nil else {
      if let error, error.isEndOfLink { return drop(error.localizedDescription) }
      return handleLink(.channelRefused(error?.localizedDescription ?? "it refused the channel"))
    }
    let opened = ChannelSenderCarrier(channel, queue: queue) { [weak self] event in self?.carrierTold(event) }
    guard let opened else { return handleLink(.channelRefused("the channel has no streams")) }
    arrived(opened, .channelOpened)
  }

  private func carrierTold(_ event: SenderCarrierEvent) {
    switch event {
    case .control(let message): answered(message)
    case .ready: pump()
    // The link itself may be up still; a new attempt begins with a new one.
    case .lost(let why): drop(why)
    }
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
