internal import Locking
internal import CoreFoundation
internal import Foundation
internal import Radio

extension CentralCore {
  /// Handles one input on the manager's queue; never two at a time.
  func handle(_ input: Input) {
    // What the program has asked for before is durable before it is told anything more.
    saveChanges()
    switch input {
    case .radio(let event):
      intake.handled(event)
      handle(event)
    case .overrun(let id): overrun(id)
    case .missed: missed()
    case .connectedAlready(let id):
      guard let (manager, peripheral) = pair(id, in: .connected) else { return }
      delegate?.centralManager(manager, didConnect: peripheral)
    case .requestFailed(let id): peripheral(id)?.deliverFailures()
    case .released(let id): released(id)
    case .delayElapsed(let id):
      state.withLock { if $0.peers[id]?.phase == .waiting { begin(id, &$0) } }
    case .restored: tellRestored()
    case .changed: break
    }
  }

  private func handle(_ event: CentralEvent) {
    switch event {
    case .adapterStateChanged(let state): adapterChanged(to: CBManagerState(state))
    case .discovered(let sighting): discovered(sighting)
    case .connected(let id, let name): connected(id, name)
    case .connectionFailed(let id, let error): ended(id, error, at: clock.now, wasRefused: true)
    case .disconnected(let id, let error, let time): ended(id, error, at: time, wasRefused: false)
    case .completed(let request, let id, let result): peripheral(id)?.completed(request, result)
    case .notified(let id, let handle, let value): peripheral(id)?.notified(handle, value)
    case .mtuChanged: break
    case .readyToWrite(let id): peripheral(id)?.readyToWrite()
    case .nameChanged(let id, let name): peripheral(id)?.nameChanged(name)
    case .servicesChanged(let id, let ranges): peripheral(id)?.servicesChanged(ranges)
    case .hostLinkChanged(let peer, let isUp): hostLinkChanged(peer, isUp: isUp)
    }
  }

  private var delegate: (any CBCentralManagerDelegate)? { state.withLock { $0.delegate }.object }

  private func peripheral(_ id: PeerID) -> CBPeripheral? { state.withLock { $0.peers[id]?.object } }

  private func pair(_ id: PeerID, in phase: Phase) -> (CBCentralManager, CBPeripheral)? {
    state.withLock { state in
      // The manager comes last: where the last reference to it went with the lock held, its end would wait for that lock.
      guard let peer = state.peers[id], peer.phase == phase, let peripheral = peer.object,
        let manager = state.manager
      else { return nil }
      return (manager, peripheral)
    }
  }

  private func adapterChanged(to new: CBManagerState) {
    let (manager, lost) = state.withLock { state -> (CBCentralManager?, [CBPeripheral]) in
      guard new != state.adapter else { return (nil, []) }
      state.adapter = new
      guard new != .poweredOn else {
        resumeRestored(&state)
        if let filter = state.linkFilter { state.client?.watchLinks(filter) }
        changed()
        return (state.manager, [])
      }
      guard !state.restoration.isAwaited else { return (state.manager, []) }
      let lost = state.peers.values.compactMap(\.object)
      state.isScanning = false
      // Commands that the radio took after the adapter had come back, before this end of it was heard of, must not live on unseen.
      state.client?.stopScan()
      for (id, peer) in state.peers where peer.phase != .idle {
        peer.delay?.cancel()
        state.client?.cancelConnection(id)
      }
      if new.isBelowPoweredOff {
        state.peers = [:]
      } else {
        state.peers = state.peers.mapValues { Peer(object: $0.object) }
      }
      return (state.manager, lost)
    }
    for peripheral in lost { peripheral.endLink() }
    if let manager { delegate?.centralManagerDidUpdateState(manager) }
  }

  private func discovered(_ sighting: Sighting) {
    let found = state.withLock { state -> (CBCentralManager, CBPeripheral)? in
      // What an earlier scan has seen is not told as a hit of this one.
      guard state.isScanning, state.scan?.filter.matches(sighting.advertisement) != false,
        let manager = state.manager
      else { return nil }
      return (manager, object(for: sighting.peer, name: sighting.advertisement.localName, &state))
    }
    guard let (manager, peripheral) = found else { return }
    if let name = sighting.advertisement.localName {
      peripheral.session.withLock { $0.advertisedName = name }
    }
    delegate?.centralManager(
      manager, didDiscover: peripheral, advertisementData: sighting.advertisementData,
      rssi: NSNumber(value: sighting.rssi ?? 127))
  }

  private func hostLinkChanged(_ peer: KnownPeer, isUp: Bool) {
    let found = state.withLock { state -> (CBCentralManager, CBPeripheral)? in
      guard state.linkFilter != nil, state.adapter == .poweredOn, let manager = state.manager else {
        return nil
      }
      return (manager, object(for: peer.id, name: peer.name, &state))
    }
    guard let (manager, peripheral) = found else { return }
    delegate?.centralManager(
      manager, connectionEventDidOccur: isUp ? .peerConnected : .peerDisconnected, for: peripheral)
  }

  private func connected(_ id: PeerID, _ name: String?) {
    let connected = state.withLock { state -> (CBCentralManager, CBPeripheral)? in
      guard state.adapter == .poweredOn, let client = state.client else { return nil }
      switch state.peers[id]?.phase {
      case .connecting:
        guard let peripheral = state.peers[id]?.object else {
          abandonPending(id, &state)
          return nil
        }
        state.peers[id]?.kept = peripheral
        guard peripheral.beginLink(client, name: name) else {
          state.peers[id]?.phase = .checking
          return nil
        }
        state.peers[id]?.phase = .connected
        changedByPeer()
        return state.manager.map { ($0, peripheral) }
      case .idle, nil:
        // Nobody wants this link (any more).
        state.peers[id, default: Peer()].phase = .closing(reconnect: false, isReported: false)
        client.cancelConnection(id)
        return nil
      case .waiting, .checking, .connected, .closing: return nil
      }
    }
    if let (manager, peripheral) = connected { delegate?.centralManager(manager, didConnect: peripheral) }
  }

  /// What is known of a device was compared with what it has: now the link is the program's.
  func checked(_ peripheral: CBPeripheral) {
    let manager = state.withLock { state -> CBCentralManager? in
      guard let peer = state.peers[peripheral.peer], peer.phase == .checking, peer.object === peripheral
      else { return nil }
      state.peers[peripheral.peer]?.phase = .connected
      changedByPeer()
      peripheral.open()
      return state.manager
    }
    guard let manager else { return }
    delegate?.centralManager(manager, didConnect: peripheral)
    peripheral.tellModified()
  }

  /// Whom to tell of the end of a connection, and what.
  private enum End {
    case failedToConnect(CBPeripheral)
    case disconnected(CBPeripheral, (any Error)?, mayReconnect: Bool)
    case untold(CBPeripheral?)
    /// Lost again before the program knew of it.
    case stillReconnecting(CBPeripheral)
  }

  private func ended(_ id: PeerID, _ error: RadioError?, at time: Duration, wasRefused: Bool) {
    let timestamp = CFAbsoluteTimeGetCurrent() - (clock.now - time) / .seconds(1)
    let (manager, end) = state.withLock { state -> (CBCentralManager?, End) in
      state.disconnectionTime = timestamp
      // Taken out first: the last reference must not go while the lock is held.
      let object = state.peers[id]?.object
      switch state.peers[id]?.phase {
      // The end of something earlier; what was asked since stands.
      case .idle, .waiting, nil: return (nil, .untold(nil))
      case .connecting:
        if error == nil, !wasRefused, object != nil {
          // The answer to an earlier cancellation: what was asked since stands.
          state.client?.connect(id)
          return (nil, .untold(nil))
        }
        finish(id, &state)
        return (state.manager, object.map { .failedToConnect($0) } ?? .untold(nil))
      case .checking:
        state.peers[id]?.phase = .connecting
        state.peers[id]?.failure = nil
        if state.peers[id]?.options.reconnects != true { state.peers[id]?.kept = nil }
        // With the same lock: a cancellation always meets a radio that has something to cancel.
        if object != nil { state.client?.connect(id) }
        return (nil, object.map { .stillReconnecting($0) } ?? .untold(nil))
      case .connected:
        let error = error ?? state.peers[id]?.failure
        let mayReconnect = error != nil && state.peers[id]?.options.reconnects == true
        finish(id, &state)
        if mayReconnect, object != nil { state.disconnection = Disconnection(peer: id) }
        let end = object.map { End.disconnected($0, error?.cbError, mayReconnect: mayReconnect) }
        return (state.manager, end ?? .untold(nil))
      case .closing(let reconnect, let isReported):
        finish(id, &state)
        if reconnect, object != nil { begin(id, &state) }
        guard isReported, let object else { return (nil, .untold(object)) }
        let error = wasRefused ? nil : error?.cbError
        return (state.manager, .disconnected(object, error, mayReconnect: false))
      }
    }
    switch end {
    case .untold(let peripheral): peripheral?.endLink()
    case .stillReconnecting(let peripheral):
      if let database = peripheral.pauseLink() { peripheral.remember(database) }
    case .failedToConnect(let peripheral):
      peripheral.endLink()
      guard let manager else { return }
      delegate?.centralManager(
        manager, didFailToConnect: peripheral, error: (error ?? RadioError(.connectionFailed)).cbError)
    case .disconnected(let peripheral, let error, false):
      peripheral.endLink()
      guard let manager else { return }
      delegate?.centralManager(manager, didDisconnectPeripheral: peripheral, error: error)
    case .disconnected(let peripheral, let error, true):
      let database = peripheral.pauseLink() ?? RemoteDatabase()
      guard let manager else { return database.end() }
      state.withLock { $0.disconnection?.database = database }
      if let delegate {
        delegate.centralManager(manager, didDisconnectPeripheral: peripheral, error: error)
      } else {
        _ = reconnect(peripheral)
      }
      let unused = state.withLock { state in
        defer { state.disconnection = nil }
        return state.disconnection?.database
      }
      unused?.end()
    }
  }

  /// Begins to make a link again whose loss is being reported, once, where the program has asked for that; returns whether it did.
  ///
  /// Called by the default of the method that excludes it, so that only delegates without that method get here.
  func reconnect(_ peripheral: CBPeripheral) -> Bool {
    let id = peripheral.peer
    let database = state.withLock { state -> RemoteDatabase? in
      guard let end = state.disconnection, end.peer == id, !end.isCancelled, let database = end.database,
        state.adapter == .poweredOn, let client = state.client, let peer = state.peers[id],
        peer.object === peripheral, peer.phase == .idle
      else { return nil }
      state.disconnection?.database = nil
      state.peers[id]?.phase = .connecting
      // The program has asked for a link that lasts, so that releasing the object does not end it.
      state.peers[id]?.kept = peripheral
      peripheral.remember(database)
      changed()
      client.connect(id)
      return database
    }
    return database != nil
  }

  /// Puts a connection to rest, and forgets a device whose object is gone.
  private func finish(_ id: PeerID, _ state: inout State) {
    state.peers[id]?.phase = .idle
    state.peers[id]?.kept = nil
    state.peers[id]?.failure = nil
    changed()
    if state.peers[id]?.object == nil { state.peers[id] = nil }
  }

  /// Notifications of a device were lost here: ends its link, so that the program learns of the gap.
  private func overrun(_ id: PeerID) {
    let isEnding = state.withLock { state in
      // Where the program does not know of the link yet, it does not learn of its end either: the next one is compared anew.
      guard let peer = state.peers[id], peer.phase == .connected || peer.phase == .checking else {
        return false
      }
      state.peers[id]?.failure = RadioError(
        .outOfSpace, "the program did not take the device's notifications")
      peer.object?.session.withLock { $0.link?.takesCommands = false }
      state.client?.cancelConnection(id)
      return true
    }
    if isEnding {
      log.note(
        "More than \(CentralIntakeRules.mostNotifications) notifications of a device wait for the manager's queue: its link ends."
      )
    }
  }

  /// Sightings were lost here, which the radio takes for told: begins the scan anew, so that those devices come once more.
  private func missed() {
    state.withLock { state in
      guard state.isScanning, state.adapter == .poweredOn, let filter = state.scan?.filter,
        !filter.allowDuplicates
      else { return }
      state.client?.startScan(filter)
    }
  }

  private func released(_ id: PeerID) {
    let wasPending = state.withLock { state -> Bool in
      guard let peer = state.peers[id], peer.object == nil else { return false }
      abandonPending(id, &state)
      if state.peers[id]?.phase == .idle { state.peers[id] = nil }
      changed()
      return peer.phase == .connecting || peer.phase == .waiting
    }
    if wasPending {
      log.note("A pending connection was cancelled: its CBPeripheral was released. Keep a reference to it.")
    }
  }
}

extension Sighting {
  /// The advertisement in the form in which programs get it: only keys of what was there.
  var advertisementData: [String: Any] {
    var data: [String: Any] = [CBAdvertisementDataIsConnectable: NSNumber(value: isConnectable)]
    data[CBAdvertisementDataLocalNameKey] = advertisement.localName
    data[CBAdvertisementDataManufacturerDataKey] = advertisement.manufacturerData
    data[CBAdvertisementDataTxPowerLevelKey] = advertisement.txPower.map { NSNumber(value: $0) }
    func put(_ uuids: [BluetoothUUID], _ key: String) {
      if !uuids.isEmpty { data[key] = uuids.map { CBUUID($0) } }
    }
    put(advertisement.services, CBAdvertisementDataServiceUUIDsKey)
    put(advertisement.overflowServices, CBAdvertisementDataOverflowServiceUUIDsKey)
    put(advertisement.solicitedServices, CBAdvertisementDataSolicitedServiceUUIDsKey)
    if !advertisement.serviceData.isEmpty {
      data[CBAdvertisementDataServiceDataKey] = Dictionary(
        uniqueKeysWithValues: advertisement.serviceData.map { (CBUUID($0.key), $0.value) })
    }
    return data
  }
}
