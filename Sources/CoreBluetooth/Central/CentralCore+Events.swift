internal import Locking
internal import CoreFoundation
internal import Foundation
internal import Radio

extension CentralCore {
  /// Handles one input on the manager's queue; never two at a time.
  func handle(_ input: Input) {
    switch input {
    case .radio(let event): handle(event)
    case .connectedAlready(let id):
      guard let (manager, peripheral) = pair(id, in: .connected) else { return }
      delegate?.centralManager(manager, didConnect: peripheral)
    case .requestFailed(let id): peripheral(id)?.deliverFailures()
    case .released(let id): released(id)
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
    }
  }

  private var delegate: (any CBCentralManagerDelegate)? { state.withLock { $0.delegate }.object }

  private func peripheral(_ id: PeerID) -> CBPeripheral? { state.withLock { $0.peers[id]?.object } }

  private func pair(_ id: PeerID, in phase: Phase) -> (CBCentralManager, CBPeripheral)? {
    state.withLock { state in
      guard let manager = state.manager, let peer = state.peers[id], peer.phase == phase,
        let peripheral = peer.object
      else { return nil }
      return (manager, peripheral)
    }
  }

  private func adapterChanged(to new: CBManagerState) {
    let (manager, lost) = state.withLock { state -> (CBCentralManager?, [CBPeripheral]) in
      guard new != state.adapter else { return (nil, []) }
      state.adapter = new
      guard new != .poweredOn else { return (state.manager, []) }
      let lost = state.peers.values.compactMap(\.object)
      state.isScanning = false
      // Commands that the radio took after the adapter had come back, before this end of it was heard of, must not live on unseen.
      state.client?.stopScan()
      for (id, peer) in state.peers where peer.phase != .idle { state.client?.cancelConnection(id) }
      if new.isBelowPoweredOff {
        state.peers = [:]
      } else {
        for id in state.peers.keys {
          state.peers[id]?.phase = .idle
          state.peers[id]?.kept = nil
        }
      }
      return (state.manager, lost)
    }
    for peripheral in lost { peripheral.endLink() }
    if let manager { delegate?.centralManagerDidUpdateState(manager) }
  }

  private func discovered(_ sighting: Sighting) {
    let found = state.withLock { state -> (CBCentralManager, CBPeripheral)? in
      guard state.isScanning, let manager = state.manager else { return nil }
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

  private func connected(_ id: PeerID, _ name: String?) {
    let connected = state.withLock { state -> (CBCentralManager, CBPeripheral)? in
      guard state.adapter == .poweredOn, let client = state.client else { return nil }
      switch state.peers[id]?.phase {
      case .connecting:
        guard let manager = state.manager, let peripheral = state.peers[id]?.object else {
          abandonPending(id, &state)
          return nil
        }
        state.peers[id]?.phase = .connected
        state.peers[id]?.kept = peripheral
        peripheral.beginLink(client, name: name)
        return (manager, peripheral)
      case .idle, nil:
        // Nobody wants this link (any more).
        state.peers[id, default: Peer()].phase = .closing(reconnect: false, isReported: false)
        client.cancelConnection(id)
        return nil
      case .connected, .closing: return nil
      }
    }
    if let (manager, peripheral) = connected { delegate?.centralManager(manager, didConnect: peripheral) }
  }

  /// Whom to tell of the end of a connection, and what.
  private enum End {
    case failedToConnect(CBPeripheral)
    case disconnected(CBPeripheral, (any Error)?)
    case untold(CBPeripheral?)
  }

  private func ended(_ id: PeerID, _ error: RadioError?, at time: Duration, wasRefused: Bool) {
    let timestamp = CFAbsoluteTimeGetCurrent() - (clock.now - time) / .seconds(1)
    let (manager, end) = state.withLock { state -> (CBCentralManager?, End) in
      state.disconnectionTime = timestamp
      // Taken out first: the last reference must not go while the lock is held.
      let object = state.peers[id]?.object
      switch state.peers[id]?.phase {
      case .idle, nil: return (nil, .untold(nil))
      case .connecting:
        if error == nil, !wasRefused, object != nil {
          // The answer to an earlier cancellation: what was asked since stands.
          state.client?.connect(id)
          return (nil, .untold(nil))
        }
        finish(id, &state)
        return (state.manager, object.map { .failedToConnect($0) } ?? .untold(nil))
      case .connected:
        finish(id, &state)
        return (state.manager, object.map { .disconnected($0, error?.cbError) } ?? .untold(nil))
      case .closing(let reconnect, let isReported):
        finish(id, &state)
        if reconnect, object != nil {
          state.peers[id]?.phase = .connecting
          state.client?.connect(id)
        }
        guard isReported, let object else { return (nil, .untold(object)) }
        return (state.manager, .disconnected(object, wasRefused ? nil : error?.cbError))
      }
    }
    switch end {
    case .untold(let peripheral): peripheral?.endLink()
    case .failedToConnect(let peripheral):
      guard let manager else { return }
      delegate?.centralManager(
        manager, didFailToConnect: peripheral, error: (error ?? RadioError(.connectionFailed)).cbError)
    case .disconnected(let peripheral, let error):
      peripheral.endLink()
      guard let manager else { return }
      delegate?.centralManager(manager, didDisconnectPeripheral: peripheral, error: error)
    }
  }

  /// Puts a connection to rest, and forgets a device whose object is gone.
  private func finish(_ id: PeerID, _ state: inout State) {
    state.peers[id]?.phase = .idle
    state.peers[id]?.kept = nil
    if state.peers[id]?.object == nil { state.peers[id] = nil }
  }

  private func released(_ id: PeerID) {
    let wasPending = state.withLock { state -> Bool in
      guard let peer = state.peers[id], peer.object == nil else { return false }
      if peer.phase == .idle { state.peers[id] = nil }
      abandonPending(id, &state)
      return peer.phase == .connecting
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
