internal import Locking
internal import Foundation
internal import Radio

/// What the core calls on the manager's queue, one at a time.
extension CBPeripheral {
  private var currentDelegate: (any CBPeripheralDelegate)? { session.withLock { $0.delegate }.object }

  /// The link is up. Returns false where the program must not know of it yet: it is told once what is known was compared with what the peer has.
  func beginLink(_ client: any CentralRadio, name: String?) -> Bool {
    session.withLock { session in
      if let name { session.deviceName = name }
      var link = PeripheralSession.Link(client: client)
      link.requests = RequestQueue(from: session.nextRequest)
      if let remembered = session.remembered {
        session.remembered = nil
        link.database = remembered
        link.check = DatabaseCheck(remembered.known)
      }
      link.takesCommands = link.check?.request == nil
      if link.takesCommands { link.check = nil }
      session.link = link
      goOnChecking(&session)
      return link.takesCommands
    }
  }

  /// The link has ended: pending requests are forgotten, discovered attributes are void.
  func endLink() {
    // Objects of the link are let go of outside the lock.
    let (link, remembered) = session.withLock { session in
      defer { (session.remembered, session.resubscriptions) = (nil, []) }
      return (session.takeLink(), session.remembered)
    }
    link?.database.end()
    remembered?.end()
  }

  /// The link was lost and may be made again: pending requests are forgotten, and the attributes handed over.
  func pauseLink() -> RemoteDatabase? {
    let (link, resubscriptions) = session.withLock { ($0.takeLink(), $0.resubscriptions) }
    link?.database.pause()
    for characteristic in resubscriptions { characteristic.contents.withLock { $0.isNotifying = true } }
    return link?.database
  }

  /// Keeps the attributes of a lost link for the one that the manager is making.
  func remember(_ database: RemoteDatabase) { session.withLock { $0.remembered = database } }

  /// Asks what is next to be compared, if anything is.
  private func goOnChecking(_ session: inout PeripheralSession) {
    guard let link = session.link, let request = link.check?.request,
      let number = session.link?.requests.append(.check)
    else { return }
    link.client.request(request, of: peer, id: requestID(number))
  }

  /// Compares an answer with what is known.
  private func checked(_ result: Result<GATTReply, GATTFailure>) {
    // The link is going, which is told next: nothing was learnt of the database.
    if case .failure(.radio(let error)) = result, error.code == .notConnected { return }
    let isFinished = session.withLock { session -> Bool in
      guard var check = session.link?.check else { return false }
      check.handle(result)
      session.link?.check = check
      guard check.request == nil else {
        goOnChecking(&session)
        return false
      }
      let gone = session.link?.database.invalidate(check.changed.map(\.handles)) ?? []
      session.link?.modified += gone
      return true
    }
    if isFinished { core.checked(self) }
  }

  /// The comparison is over, and the program is about to be told of the link.
  func open() {
    session.withLock { session in
      session.link?.check = nil
      session.link?.takesCommands = true
      resubscribe(&session)
    }
  }

  /// Tells of services that were not found again on a link that the manager has made by itself.
  func tellModified() {
    let (gone, delegate) = session.withLock { session in
      defer { session.link?.modified = [] }
      return (session.link?.modified ?? [], session.delegate)
    }
    guard !gone.isEmpty else { return }
    // What the program has asked for in the callback before is durable before this one.
    core.saveChanges()
    delegate.object?.peripheral(self, didModifyServices: gone)
  }

  func notified(_ handle: AttributeHandle, _ value: Data) {
    let (characteristic, delegate) = session.withLock {
      ($0.link?.check == nil ? $0.link?.database.characteristic(handle) : nil, $0.delegate)
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
    core.changedByPeer()
    delegate?.object?.peripheralDidUpdateName(self)
  }

  func servicesChanged(_ ranges: [ClosedRange<AttributeHandle>]) {
    let gone = session.withLock { session -> [CBService]? in
      let gone = session.link?.database.invalidate(ranges)
      guard session.link?.check != nil else { return gone }
      session.link?.modified += gone ?? []
      return nil
    }
    core.changedByPeer()
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
    if case .check = request { return checked(result) }
    saveOutcome(of: request)
    answer(request, result)
    deliverFailures()
  }

  /// Tells of requests that failed here and whose turn it is.
  func deliverFailures() {
    while let (request, error) = session.withLock({ $0.link?.requests.popFailure() }) {
      // What the program has asked for in the callback before is durable before this one.
      core.saveChanges()
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
    // For the program nothing has changed.
    case (.resubscribe, .success): break
    case (.resubscribe(let characteristic), .failure):
      characteristic.contents.withLock { $0.isNotifying = false }
      core.changed()
      tell(request, result.failure?.error)
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
    case .setNotify(let characteristic, _), .resubscribe(let characteristic):
      delegate.peripheral(self, didUpdateNotificationStateFor: characteristic, error: error)
    // A reply of another kind than was asked for is the radio's mistake; the program gets its answer all the same.
    case .readRSSI:
      delegate.peripheral(self, didReadRSSI: NSNumber(value: 127), error: error ?? CBError(.unknown))
    case .openChannel: delegate.peripheral(self, didOpen: nil, error: error ?? CBError(.unknown))
    case .check: break
    }
  }
}
