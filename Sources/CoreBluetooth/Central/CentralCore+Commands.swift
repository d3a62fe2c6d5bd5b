internal import Locking
internal import Foundation
internal import Radio

extension CentralCore {
  /// Why a command was dropped.
  enum Misuse {
    case notPoweredOn
    case foreignPeripheral
  }

  /// Writes the line for a command that was dropped.
  func logMisuse(_ misuse: Misuse, of manager: CBCentralManager, command: String) {
    switch misuse {
    case .notPoweredOn:
      log.misuse(manager, "accepts this command only while it is powered on; \(command) was dropped")
    case .foreignPeripheral:
      log.misuse(
        manager,
        "does not know that peripheral: it is another manager's, or of before Bluetooth was reset; \(command) was dropped"
      )
    }
  }

  func startScan(_ scan: ScanRequest) -> Misuse? {
    state.withLock { state in
      guard state.adapter == .poweredOn, let client = state.client else { return .notPoweredOn }
      state.isScanning = true
      state.scan = scan
      changed()
      client.startScan(scan.filter)
      return nil
    }
  }

  func stopScan() -> Misuse? {
    state.withLock { state in
      guard state.adapter == .poweredOn, let client = state.client else { return .notPoweredOn }
      state.isScanning = false
      changed()
      client.stopScan()
      return nil
    }
  }

  /// Asks for connection events, also while Bluetooth is off: they come once it is on.
  func watchLinks(_ filter: LinkFilter?) {
    state.withLock { state in
      state.linkFilter = filter
      if state.adapter == .poweredOn { state.client?.watchLinks(filter) }
    }
  }

  func connect(_ peripheral: CBPeripheral, _ options: ConnectOptions) -> Misuse? {
    let id = peripheral.peer
    return state.withLock { state in
      guard state.adapter == .poweredOn, state.client != nil else { return .notPoweredOn }
      guard let peer = state.peers[id], peer.object === peripheral else { return .foreignPeripheral }
      state.peers[id]?.options = options
      changed()
      switch peer.phase {
      case .idle, .waiting: begin(id, &state)
      case .connecting, .checking: break
      case .connected: inbox.post(.connectedAlready(id))
      case .closing(_, let isReported):
        state.peers[id]?.phase = .closing(reconnect: true, isReported: isReported)
      }
      return nil
    }
  }

  /// Asks the radio for a link, now or when the delay that the program has set is over.
  func begin(_ id: PeerID, _ state: inout State) {
    state.peers[id]?.delay?.cancel()
    state.peers[id]?.delay = nil
    if let start = state.peers[id]?.options.start, start > clock.now {
      state.peers[id]?.phase = .waiting
      state.peers[id]?.delay = clock.schedule(after: start - clock.now) { [inbox] in
        inbox.post(.delayElapsed(id))
      }
    } else {
      state.peers[id]?.phase = .connecting
      state.client?.connect(id)
    }
  }

  func cancel(_ peripheral: CBPeripheral) -> Misuse? {
    let id = peripheral.peer
    return state.withLock { state in
      guard state.adapter == .poweredOn, let client = state.client else { return .notPoweredOn }
      guard let peer = state.peers[id], peer.object === peripheral else { return .foreignPeripheral }
      changed()
      switch peer.phase {
      case .idle:
        // Nothing is there to end, but the link that was lost is not made again.
        if state.disconnection?.peer == id { state.disconnection?.isCancelled = true }
      case .waiting:
        close(peripheral, &state)
        // The radio knows of nothing that could end.
        inbox.post(.radio(.disconnected(id, nil, at: clock.now)))
      case .connecting, .checking, .connected:
        close(peripheral, &state)
        client.cancelConnection(id)
      case .closing(let reconnect, let isReported):
        // A connection asked for since the last cancellation counts as pending, and its end is told.
        state.peers[id]?.phase = .closing(reconnect: false, isReported: isReported || reconnect)
        state.peers[id]?.kept = peripheral
      }
      return nil
    }
  }

  private func close(_ peripheral: CBPeripheral, _ state: inout State) {
    let id = peripheral.peer
    state.peers[id]?.delay?.cancel()
    state.peers[id]?.delay = nil
    state.peers[id]?.phase = .closing(reconnect: false, isReported: true)
    state.peers[id]?.kept = peripheral
    peripheral.session.withLock { $0.link?.takesCommands = false }
  }

  /// Writes a line, once a manager, for each option that asks for what Linux does not have.
  func noteAbsent(_ options: [String: Any]?) {
    for (key, thing) in ConnectOptions.absent where OptionValue.bool(options?[key]) {
      if state.withLock({ $0.toldAbsent.insert(key).inserted }) {
        log.note("The option \(key) asks for \(thing), which does not exist on Linux: it has no effect.")
      }
    }
  }

  func connectionState(of peripheral: CBPeripheral) -> CBPeripheralState {
    state.withLock { state in
      guard let peer = state.peers[peripheral.peer], peer.object === peripheral else { return .disconnected }
      switch peer.phase {
      case .idle: return .disconnected
      case .waiting, .connecting, .checking, .closing(reconnect: true, _): return .connecting
      case .connected: return .connected
      case .closing(reconnect: false, isReported: true): return .disconnecting
      // The end of something that this object was never connected by.
      case .closing(reconnect: false, isReported: false): return .disconnected
      }
    }
  }

  /// The objects of devices that the radio knows; nil: not powered on.
  func retrieve(_ list: (any CentralRadio) -> [KnownPeer]) -> [CBPeripheral]? {
    state.withLock { state in
      guard state.adapter == .poweredOn, let client = state.client else { return nil }
      return list(client).map { object(for: $0.id, name: $0.name, &state) }
    }
  }

  /// The objects of devices that the radio knows, or that the program or a connection holds; nil: not powered on.
  func retrieve(_ ids: [PeerID]) -> [CBPeripheral]? {
    state.withLock { state in
      guard state.adapter == .poweredOn, let client = state.client else { return nil }
      let known = Dictionary(client.knownPeers(ids).map { ($0.id, $0.name) }) { first, _ in first }
      var seen: Set<PeerID> = []
      return ids.compactMap { id in
        guard seen.insert(id).inserted else { return nil }
        if let object = state.peers[id]?.object { return object }
        return known[id].map { object(for: id, name: $0, &state) }
      }
    }
  }

  /// The one object of a device.
  func object(for id: PeerID, name: String?, _ state: inout State) -> CBPeripheral {
    if let object = state.peers[id]?.object { return object }
    state.lastOrdinal &+= 1
    let object = CBPeripheral(_cb: id, name: name, ordinal: state.lastOrdinal, core: self)
    // What the program asked of an object that it has released is not asked of its successor.
    abandonPending(id, &state)
    state.peers[id, default: Peer()].object = object
    return object
  }

  /// Cancels the pending connection of a device whose object the program has released.
  func abandonPending(_ id: PeerID, _ state: inout State) {
    switch state.peers[id]?.phase {
    case .waiting:
      state.peers[id]?.delay?.cancel()
      state.peers[id]?.delay = nil
      state.peers[id]?.phase = .idle
    case .connecting where state.restoration.isAwaited:
      // The radio was not asked yet.
      state.peers[id]?.phase = .idle
    case .connecting:
      state.peers[id]?.phase = .closing(reconnect: false, isReported: false)
      state.client?.cancelConnection(id)
    case .closing(reconnect: true, _):
      state.peers[id]?.phase = .closing(reconnect: false, isReported: false)
    default: break
    }
  }
}
