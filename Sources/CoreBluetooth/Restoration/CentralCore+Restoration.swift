internal import Foundation
internal import Locking
internal import Radio

extension CentralCore {
  /// What a former run has left.
  struct Restoration: Sendable {
    /// Whether it waits for the first `poweredOn`.
    fileprivate(set) var isAwaited = false
    fileprivate var peers: [PeerID] = []
    /// Whether the delegate has turned out to have no method for it.
    fileprivate var isDeclined = false
  }

  // MARK: Saving

  /// Sees to it that a change which the program has made is saved.
  func changed() {
    if recorder?.mark() == true { inbox.post(.changed) }
  }

  /// The same for a change that a peer has made, which must not cost a write each time.
  func changedByPeer() {
    recorder?.markLater(clock) { [weak self] in self?.changed() }
  }

  /// Writes what has changed; on the manager's queue.
  func saveChanges(waits: Bool = true) { recorder?.saveMarked(waits: waits) { savedState() } }

  /// What is to be saved; nil while Bluetooth is off or gone: then what was saved stays.
  private func savedState() -> SavedCentral? {
    let saved = state.withLock { state -> ([(CBPeripheral, ConnectOptions)], ScanRequest?)? in
      guard state.adapter == .poweredOn else { return nil }
      let wanted = state.peers.values.compactMap { peer in
        peer.phase.isWanted ? peer.object.map { ($0, peer.options) } : nil
      }
      return (wanted, state.isScanning ? state.scan : nil)
    }
    guard let (wanted, scan) = saved else { return nil }
    let peripherals = wanted.sorted { $0.0.ordinal < $1.0.ordinal }.map { peripheral, options in
      SavedCentral.Peripheral(
        identifier: peripheral.identifier, name: peripheral.name, options: options.given,
        services: peripheral.savedServices)
    }
    return SavedCentral(peripherals: peripherals, scan: scan)
  }

  // MARK: Restoring

  /// Makes objects of what was saved, for the delegate and later for the radio.
  func restore(_ saved: SavedCentral, _ state: inout State) {
    state.restoration.isAwaited = true
    for saved in saved.peripherals {
      let id = PeerID(saved.identifier)
      let peripheral = object(for: id, name: saved.name, &state)
      if let services = saved.services { peripheral.restore(services) }
      state.peers[id]?.phase = .connecting
      state.peers[id]?.options = ConnectOptions(restoring: saved.options)
      // Until the delegate was told.
      state.peers[id]?.kept = peripheral
      state.restoration.peers.append(id)
    }
    if let scan = saved.scan {
      state.isScanning = true
      state.scan = scan
    }
    inbox.post(.restored)
  }

  /// Tells the delegate what is restored; without one that takes it, it is dropped.
  func tellRestored() {
    let (manager, delegate, peripherals, scan) = state.withLock { state in
      let peripherals = state.restoration.peers.compactMap { state.peers[$0]?.object }
      return (state.manager, state.delegate, peripherals, state.isScanning ? state.scan : nil)
    }
    guard let manager else { return }
    var dict: [String: Any] = [:]
    if !peripherals.isEmpty { dict[CBCentralManagerRestoredStatePeripheralsKey] = peripherals }
    if let scan, !scan.services.isEmpty {
      dict[CBCentralManagerRestoredStateScanServicesKey] = scan.services.map { CBUUID($0.value) }
    }
    if let options = scan?.options, !options.isEmpty {
      dict[CBCentralManagerRestoredStateScanOptionsKey] = options
    }
    let isTaken = delegate.object != nil
    delegate.object?.centralManager(manager, willRestoreState: dict)
    let isDropped = state.withLock { state in
      // From here on the program holds them, or they go.
      for id in state.restoration.peers { state.peers[id]?.kept = nil }
      guard !isTaken || state.restoration.isDeclined else { return false }
      for id in state.restoration.peers { state.peers[id] = nil }
      state.restoration = Restoration()
      state.isScanning = false
      return true
    }
    guard isDropped else { return }
    for peripheral in peripherals { peripheral.endLink() }
    log.misuse(
      manager, "has a restore identifier, and its delegate no willRestoreState; what was saved is dropped")
    recorder?.save(SavedCentral(peripherals: [], scan: nil))
  }

  /// The delegate has no method for restored state.
  func declineRestored() { state.withLock { $0.restoration.isDeclined = true } }

  /// Asks the radio for what waits for the first `poweredOn`.
  func resumeRestored(_ state: inout State) {
    guard state.restoration.isAwaited, let client = state.client else { return }
    state.restoration.isAwaited = false
    for id in state.restoration.peers where state.peers[id]?.phase == .connecting {
      if state.peers[id]?.object == nil { state.peers[id] = nil } else { begin(id, &state) }
    }
    state.restoration.peers = []
    if state.isScanning, let scan = state.scan { client.startScan(scan.filter) }
  }
}

extension CentralCore.Phase {
  /// Whether the program has a link or wants one.
  fileprivate var isWanted: Bool {
    switch self {
    case .waiting, .connecting, .checking, .connected, .closing(reconnect: true, _): true
    case .idle, .closing(reconnect: false, _): false
    }
  }
}
