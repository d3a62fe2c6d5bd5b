internal import Locking
internal import Foundation
internal import Radio

/// What the core calls on the manager's queue, one at a time.
extension CBPeripheral {
  private var currentDelegate: (any CBPeripheralDelegate)? { session.withLock { $0.delegate }.object }

  /// The link is up.
  func beginLink(_ client: any CentralRadio, name: String?) {
    session.withLock { session in
      session.link = PeripheralSession.Link(client: client)
      if let name { session.deviceName = name }
    }
  }

  /// The link has ended: pending requests are forgotten, discovered attributes are void.
  func endLink() {
    // Objects of the link are let go of outside the lock.
    let link = session.withLock { session in
      defer { session.link = nil }
      return session.link
    }
    link?.database.end()
  }

  func notified(_ handle: AttributeHandle, _ value: Data) {
    let (characteristic, delegate) = session.withLock {
      ($0.link?.database.characteristic(handle), $0.delegate)
    }
    guard let characteristic else { return }
    characteristic.contents.withLock { $0.value = value }
    delegate.object?.peripheral(self, didUpdateValueFor: characteristic, error: nil)
  }

  func readyToWrite() {
    let delegate = session.withLock { session -> PeripheralDelegateReference? in
      session.link?.hasToldLoss = false
      return session.openClient == nil ? nil : session.delegate
    }
    delegate?.object?.peripheralIsReady(toSendWriteWithoutResponse: self)
  }

  func nameChanged(_ name: String) {
    let delegate = session.withLock { session -> PeripheralDelegateReference? in
      let before = session.name
      session.deviceName = name
      return before == name ? nil : session.delegate
    }
    delegate?.object?.peripheralDidUpdateName(self)
  }

  func servicesChanged(_ ranges: [ClosedRange<AttributeHandle>]) {
    let gone = session.withLock { $0.link?.database.invalidate(ranges) }
    if let gone { currentDelegate?.peripheral(self, didModifyServices: gone) }
  }

  /// The radio has answered a request.
  func completed(_ id: RequestID, _ result: Result<GATTReply, GATTFailure>) {
    guard id.rawValue >> 32 == UInt64(ordinal) else { return }
    let number = UInt32(truncatingIfNeeded: id.rawValue)
    let request = session.withLock { session -> PeripheralSession.Request? in
      guard let request = session.link?.requests.complete(number) else { return nil }
      if case .success(let reply) = result { take(reply, to: request, &session) }
      return request
    }
    guard let request else { return }
    answer(request, result)
    deliverFailures()
  }

  /// Tells of requests that failed here and whose turn it is.
  func deliverFailures() {
    while let (request, error) = session.withLock({ $0.link?.requests.popFailure() }) {
      tell(request, error)
    }
  }

  /// Puts a reply where the program will look for it.
  private func take(
    _ reply: GATTReply, to request: PeripheralSession.Request, _ session: inout PeripheralSession
  ) {
    switch (request, reply) {
    case (.discoverServices, .services(let found)): session.link?.database.discovered(found, of: self)
    case (.discoverIncludedServices(let service), .services(let found)):
      session.link?.database.discovered(found, includedBy: service, of: self)
    case (.discoverCharacteristics(let service), .characteristics(let found)):
      session.link?.database.discovered(found, of: service)
    case (.discoverDescriptors(let characteristic), .descriptors(let found)):
      session.link?.database.discovered(found, of: characteristic)
    case (.read(let characteristic), .value(let value)):
      characteristic.contents.withLock { $0.value = value }
    case (.readDescriptor(let descriptor), .value(let value)): descriptor.setValue(value)
    case (.setNotify(let characteristic, let mode), _):
      characteristic.contents.withLock { $0.isNotifying = mode != .none }
    case (.readRSSI, .rssi(let value)): session.rssi = value
    default: break
    }
  }

  private func answer(_ request: PeripheralSession.Request, _ result: Result<GATTReply, GATTFailure>) {
    switch (request, result) {
    case (.openChannel, .success(.channel(let channel))):
      let channel = CBL2CAPChannel(_cb: channel, peer: self, clock: core.clock)
      currentDelegate?.peripheral(self, didOpen: channel, error: nil)
    case (.readRSSI, .success(.rssi(let value))):
      currentDelegate?.peripheral(self, didReadRSSI: NSNumber(value: value), error: nil)
    case (_, .success): tell(request, nil)
    case (_, .failure(let failure)): tell(request, failure.error)
    }
  }

  private func tell(_ request: PeripheralSession.Request, _ error: (any Error)?) {
    guard let delegate = currentDelegate else { return }
    switch request {
    case .discoverServices: delegate.peripheral(self, didDiscoverServices: error)
    case .discoverIncludedServices(let service):
      delegate.peripheral(self, didDiscoverIncludedServicesFor: service, error: error)
    case .discoverCharacteristics(let service):
      delegate.peripheral(self, didDiscoverCharacteristicsFor: service, error: error)
    case .discoverDescriptors(let characteristic):
      delegate.peripheral(self, didDiscoverDescriptorsFor: characteristic, error: error)
    case .read(let characteristic):
      delegate.peripheral(self, didUpdateValueFor: characteristic, error: error)
    case .readDescriptor(let descriptor):
      delegate.peripheral(self, didUpdateValueFor: descriptor, error: error)
    case .write(let characteristic): delegate.peripheral(self, didWriteValueFor: characteristic, error: error)
    case .writeDescriptor(let descriptor):
      delegate.peripheral(self, didWriteValueFor: descriptor, error: error)
    case .setNotify(let characteristic, _):
      delegate.peripheral(self, didUpdateNotificationStateFor: characteristic, error: error)
    // A reply of another kind than was asked for is the radio's mistake; the program gets its answer all the same.
    case .readRSSI:
      delegate.peripheral(self, didReadRSSI: NSNumber(value: 127), error: error ?? CBError(.unknown))
    case .openChannel: delegate.peripheral(self, didOpen: nil, error: error ?? CBError(.unknown))
    }
  }
}
