internal import Locking
internal import Foundation
internal import Radio

extension PeripheralCore {
  /// Whom to tell: the manager, and its delegate where it has one.
  typealias Audience = (manager: CBPeripheralManager, delegate: PeripheralManagerDelegateReference)

  /// Load them last, and return them: where the last reference to the manager went with the lock held, its end would wait for that lock.
  func listeners(in state: State) -> Audience? { state.manager.map { ($0, state.delegate) } }

  private var currentAudience: Audience? { state.withLock { listeners(in: $0) } }

  /// Handles one input on the manager's queue; never two at a time.
  func handle(_ input: Input) {
    // What the program has asked for before is durable before it is told anything more.
    saveChanges()
    switch input {
    case .radio(let event):
      intake.handled(event)
      handle(event)
    case .overrun:
      log.note(
        "More than \(PeripheralIntakeRules.mostCommands) writes without response wait for the manager's queue: those beyond were dropped."
      )
    case .restored: tellRestored()
    case .changed: break
    case .addFailed(let service, let code):
      guard let (manager, delegate) = currentAudience else { return }
      delegate.object?.peripheralManager(manager, didAdd: service, error: CBError(code))
    case .advertisingAlready:
      guard let (manager, delegate) = currentAudience else { return }
      delegate.object?.peripheralManagerDidStartAdvertising(manager, error: CBError(.alreadyAdvertising))
    }
  }

  private func handle(_ event: PeripheralEvent) {
    switch event {
    case .adapterStateChanged(let state): adapterChanged(to: CBManagerState(state))
    case .serviceAdded(let id, let result): serviceAdded(id, result)
    case .advertisingStarted(let result): advertisingStarted(result)
    case .read(let id, let central, let characteristic, let offset):
      read(id, central, characteristic, offset)
    case .write(let id, let central, let writes, let needsResponse):
      write(id, central, writes, needsResponse)
    case .subscribed(let central, let id): subscription(central, id, isSubscribed: true)
    case .unsubscribed(let central, let id): subscription(central, id, isSubscribed: false)
    case .readyToNotify:
      guard let (manager, delegate) = currentAudience else { return }
      delegate.object?.peripheralManagerIsReady(toUpdateSubscribers: manager)
    case .channelPublished(let result):
      guard let (manager, delegate) = currentAudience else { return }
      switch result {
      case .success(let psm):
        delegate.object?.peripheralManager(manager, didPublishL2CAPChannel: psm, error: nil)
      case .failure(let error):
        delegate.object?.peripheralManager(manager, didPublishL2CAPChannel: 0, error: error.cbError)
      }
    case .channelUnpublished(let psm, let result):
      guard let (manager, delegate) = currentAudience else { return }
      delegate.object?.peripheralManager(
        manager, didUnpublishL2CAPChannel: psm, error: result.failure?.cbError)
    case .channelOpened(let id, _, let channel):
      let opened = state.withLock { state in
        listeners(in: state).map { ($0, central(id, &state)) }
      }
      guard let ((manager, delegate), central) = opened else { return }
      let channel = CBL2CAPChannel(_cb: channel, peer: central, clock: clock)
      delegate.object?.peripheralManager(manager, didOpen: channel, error: nil)
    }
  }

  private func adapterChanged(to new: CBManagerState) {
    let (audience, lost) = state.withLock { state -> (Audience?, [Subscription]) in
      guard new != state.adapter else { return (nil, []) }
      state.adapter = new
      var lost: [Subscription] = []
      if new == .poweredOn {
        lost = resumeRestored(&state)
      } else if !state.restoration.isAwaited {
        // As in the central role: what the radio took in between must not live on unseen.
        state.client?.stopAdvertising()
        stopAdvertising(&state)
        state.database.unsubscribeAll()
        if new.isBelowPoweredOff {
          state.client?.removeAllServices()
          state.database.removeAll()
          state.published = [:]
        }
      }
      return (listeners(in: state), lost)
    }
    if new == .poweredOn { changed() }
    if let (manager, delegate) = audience { delegate.object?.peripheralManagerDidUpdateState(manager) }
    for (peer, characteristic) in lost {
      // As in handle(_:), for each callback of several.
      saveChanges()
      subscription(peer, characteristic, isSubscribed: false)
    }
  }

  private func serviceAdded(_ id: LocalServiceID, _ result: Result<Void, RadioError>) {
    let added = state.withLock { state -> (Audience, CBMutableService)? in
      guard let service = state.database.service(id) else { return nil }
      let isRestored = state.restoration.unanswered.remove(id) != nil
      if isRestored, result.failure?.code == .notPoweredOn {
        // For the program the service is there: it is published with the next power.
        state.restoration.postponed.insert(id)
        return nil
      }
      if result.failure != nil {
        state.database.remove(id)
        state.published[id] = nil
        changed()
      } else if isRestored {
        return nil
      }
      return listeners(in: state).map { ($0, service) }
    }
    guard let ((manager, delegate), service) = added else { return }
    delegate.object?.peripheralManager(manager, didAdd: service, error: result.failure?.cbError)
  }

  private func advertisingStarted(_ result: Result<Void, RadioError>) {
    let audience = state.withLock { state -> Audience? in
      if state.restoration.isAdvertisingUnanswered {
        state.restoration.isAdvertisingUnanswered = false
        if state.advertising == .restored { state.advertising = result.failure == nil ? .on : .off }
        if result.failure == nil { return nil }
      } else if state.voidStarts > 0 {
        state.voidStarts -= 1
      } else if state.advertising == .starting {
        state.advertising = result.failure == nil ? .on : .off
      }
      if result.failure != nil { changed() }
      return listeners(in: state)
    }
    guard let (manager, delegate) = audience else { return }
    delegate.object?.peripheralManagerDidStartAdvertising(manager, error: result.failure?.cbError)
  }

  /// Notes that advertising is off; the answer to a start that is under way says nothing about a later one.
  func stopAdvertising(_ state: inout State) {
    if state.advertising == .starting { state.voidStarts += 1 }
    state.advertising = .off
  }

  private func read(_ id: ServerRequestID, _ peer: PeerID, _ target: LocalCharacteristicID, _ offset: Int) {
    let request = state.withLock { state -> (Audience, CBATTRequest)? in
      guard let client = state.client else { return nil }
      let ticket = RequestTicket(.read, id: id, client: client, log: log)
      guard let characteristic = state.database.characteristic(target), let audience = listeners(in: state)
      else {
        _ = ticket.answer(nil, .attributeNotFound)
        return nil
      }
      let request = CBATTRequest(
        central: central(peer, &state), characteristic: characteristic, offset: offset, value: nil,
        ticket: ticket)
      return (audience, request)
    }
    guard let ((manager, delegate), request) = request else { return }
    guard let delegate = delegate.object else {
      _ = request.ticket.answer(nil, .requestNotSupported)
      return
    }
    delegate.peripheralManager(manager, didReceiveRead: request)
  }

  private func write(_ id: ServerRequestID, _ peer: PeerID, _ writes: [ServerWrite], _ needsResponse: Bool) {
    let requests = state.withLock { state -> (Audience, [CBATTRequest])? in
      guard let client = state.client else { return nil }
      let ticket = RequestTicket(.writes(needsResponse: needsResponse), id: id, client: client, log: log)
      let central = central(peer, &state)
      let requests = writes.compactMap { write in
        state.database.characteristic(write.characteristic).map {
          CBATTRequest(
            central: central, characteristic: $0, offset: write.offset, value: write.value, ticket: ticket)
        }
      }
      guard requests.count == writes.count, !requests.isEmpty, let audience = listeners(in: state) else {
        _ = ticket.answer(nil, .attributeNotFound)
        return nil
      }
      return (audience, requests)
    }
    guard let ((manager, delegate), requests) = requests else { return }
    guard let delegate = delegate.object else {
      _ = requests.first?.ticket.answer(nil, .requestNotSupported)
      return
    }
    delegate.peripheralManager(manager, didReceiveWrite: requests)
  }

  private func subscription(_ peer: PeerID, _ id: LocalCharacteristicID, isSubscribed: Bool) {
    let change = state.withLock { state -> (Audience, CBCentral, CBMutableCharacteristic)? in
      guard let characteristic = state.database.characteristic(id) else { return nil }
      let central = central(peer, &state)
      let hasChanged = characteristic.contents.withLock { contents -> Bool in
        let wasSubscribed = contents.subscribedCentrals.contains { $0 === central }
        guard wasSubscribed != isSubscribed else { return false }
        if isSubscribed {
          contents.subscribedCentrals.append(central)
        } else {
          contents.subscribedCentrals.removeAll { $0 === central }
        }
        return true
      }
      return hasChanged ? listeners(in: state).map { ($0, central, characteristic) } : nil
    }
    guard let ((manager, delegate), central, characteristic) = change else { return }
    changedByPeer()
    if isSubscribed {
      delegate.object?.peripheralManager(manager, central: central, didSubscribeTo: characteristic)
    } else {
      delegate.object?.peripheralManager(manager, central: central, didUnsubscribeFrom: characteristic)
    }
  }
}

extension Result {
  /// The error, if it is one.
  var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}
