internal import Foundation
internal import Locking
internal import Radio

extension PeripheralCore {
  /// A service as it is saved.
  struct Published: Sendable {
    fileprivate let saved: SavedPeripheral.Service
    fileprivate let included: [LocalServiceID]
    fileprivate let characteristics: [LocalCharacteristicID]

    init(_ service: CBMutableService, _ local: LocalService) {
      saved = SavedPeripheral.Service(service)
      included = local.includedServices
      characteristics = local.characteristics.map(\.id)
    }
  }

  /// Who was subscribed to what.
  typealias Subscription = (PeerID, LocalCharacteristicID)

  /// What a former run has left.
  struct Restoration: Sendable {
    /// Whether it waits for the first `poweredOn`.
    fileprivate(set) var isAwaited = false
    /// Services in the order of their adding.
    fileprivate var services: [LocalService] = []
    fileprivate var subscriptions: [Subscription] = []
    /// Whether the delegate has turned out to have no method for it.
    fileprivate var isDeclined = false
    /// Services that the radio was given and has not answered.
    var unanswered: Set<LocalServiceID> = []
    /// Services that the radio was given when Bluetooth had gone off already.
    var postponed: Set<LocalServiceID> = []
    /// Whether the radio was asked to advertise and has not answered.
    var isAdvertisingUnanswered = false
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
  func saveChanges(waits: Bool = true) {
    recorder?.saveMarked(waits: waits) { state.withLock { Self.savedState(of: $0) } }
  }

  /// What is to be saved; nil while Bluetooth is off or gone: then what was saved stays.
  private static func savedState(of state: State) -> SavedPeripheral? {
    guard state.adapter == .poweredOn else { return nil }
    let ids = state.published.keys.sorted { $0.rawValue < $1.rawValue }
    let services = ids.compactMap { id -> SavedPeripheral.Service? in
      guard let published = state.published[id] else { return nil }
      var saved = published.saved
      saved.included = published.included.compactMap { ids.firstIndex(of: $0) }
      for (index, id) in zip(saved.characteristics.indices, published.characteristics) {
        let subscribers = state.database.characteristic(id)?.subscribedCentrals ?? []
        saved.characteristics[index].subscribers = subscribers.map(\.identifier)
      }
      return saved
    }
    return SavedPeripheral(
      services: services, advertisement: state.advertising == .off ? nil : state.advertised)
  }

  // MARK: Restoring

  /// Makes objects of what was saved, for the delegate and later for the radio; returns lines for the log.
  func restore(_ saved: SavedPeripheral, _ state: inout State) -> [String] {
    var refusals: [String] = []
    var objects: [Int: CBMutableService] = [:]
    state.restoration.isAwaited = true
    for (index, saved) in saved.services.enumerated() {
      let service = saved.makeService()
      if !saved.included.isEmpty { service.includedServices = saved.included.compactMap { objects[$0] } }
      do throws(LocalDatabase.Refusal) {
        let local = try state.database.add(service)
        objects[index] = service
        state.published[local.id] = Published(service, local)
        state.restoration.services.append(local)
        for (characteristic, saved) in zip(local.characteristics, saved.characteristics) {
          restore(saved.subscribers.map { PeerID($0) }, of: characteristic.id, &state)
        }
      } catch {
        refusals.append("The service \(service.uuid) is not restored: the manager \(error.words).")
      }
    }
    if let advertisement = saved.advertisement {
      state.advertising = .restored
      state.advertised = advertisement
    }
    inbox.post(.restored)
    return refusals
  }

  private func restore(_ subscribers: [PeerID], of id: LocalCharacteristicID, _ state: inout State) {
    let centrals = subscribers.map { central($0, &state) }
    state.database.characteristic(id)?.contents.withLock { $0.subscribedCentrals = centrals }
    state.restoration.subscriptions += subscribers.map { ($0, id) }
  }

  /// Tells the delegate what is restored; without one that takes it, it is dropped.
  func tellRestored() {
    let (audience, services, advertisement) = state.withLock { state in
      let services = state.restoration.services.compactMap { state.database.service($0.id) }
      return (listeners(in: state), services, state.advertising == .restored ? state.advertised : nil)
    }
    guard let (manager, delegate) = audience else { return }
    var dict: [String: Any] = [:]
    if !services.isEmpty { dict[CBPeripheralManagerRestoredStateServicesKey] = services }
    if let data = advertisement?.data, !data.isEmpty {
      dict[CBPeripheralManagerRestoredStateAdvertisementDataKey] = data
    }
    let isTaken = delegate.object != nil
    delegate.object?.peripheralManager(manager, willRestoreState: dict)
    guard !isTaken || state.withLock({ $0.restoration.isDeclined }) else { return }
    log.misuse(
      manager,
      "has a restore identifier, and its delegate no willRestoreState; what was saved is dropped")
    dropRestored()
  }

  /// The delegate has no method for restored state.
  func declineRestored() { state.withLock { $0.restoration.isDeclined = true } }

  private func dropRestored() {
    state.withLock { state in
      state.restoration = Restoration()
      state.database.removeAll()
      state.published = [:]
      state.advertising = .off
    }
    recorder?.save(SavedPeripheral(services: [], advertisement: nil))
  }

  /// Gives the radio what waits for the first `poweredOn`, or met an adapter that was off again; returns the subscriptions that went with the former run.
  func resumeRestored(_ state: inout State) -> [Subscription] {
    guard let client = state.client else { return [] }
    let (isAwaited, postponed) = (state.restoration.isAwaited, state.restoration.postponed)
    state.restoration.isAwaited = false
    state.restoration.postponed = []
    for service in state.restoration.services where isAwaited || postponed.contains(service.id) {
      // What the program has removed since, or went with the adapter, stays away.
      guard state.published[service.id] != nil else { continue }
      state.restoration.unanswered.insert(service.id)
      client.addService(service)
    }
    guard isAwaited else { return [] }
    if state.advertising == .restored, let advertised = state.advertised {
      state.restoration.isAdvertisingUnanswered = true
      client.startAdvertising(advertised.budget.advertisement)
    }
    defer { state.restoration.subscriptions = [] }
    return state.restoration.subscriptions
  }

  /// Whether a service of that type was restored and is there.
  func hasRestored(_ type: CBUUID, _ state: State) -> Bool {
    state.restoration.services.contains { $0.uuid == type.value && state.published[$0.id] != nil }
  }
}

extension PeripheralCore.State {
  /// Whether the program has it that the manager advertises.
  var isAdvertising: Bool {
    switch advertising {
    case .on, .restored: true
    case .off, .starting: false
    }
  }
}
