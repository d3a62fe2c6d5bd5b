internal import DBus
internal import Dispatch
internal import Radio
internal import Readiness

/// The central role as all clients of a host share it: scans, links by device, and who is told of what.
///
/// Everything happens on the host's queue. It lives in its host and ends with it.
final class CentralHost: BlueZObserver, @unchecked Sendable {
  unowned let host: BlueZHost
  private(set) var clients: [CentralClient] = []
  private var links: [PeerID: CentralLink] = [:]
  private var discovery = DiscoveryPlan()
  /// Counts lives of the adapter, so that late answers are known as such.
  private var life = 0
  /// Devices that are linked, with what is known of them, to tell watchers of their end.
  private var linked: [ObjectPath: KnownPeer] = [:]
  private var lastSeen: [ObjectPath: DeviceFacts] = [:]
  let connector: L2CAPConnector
  /// Of the descriptors for values; nil where the system has none left.
  let monitor: ReadinessMonitor?

  init(_ host: BlueZHost) {
    self.host = host
    monitor = ReadinessMonitor(queue: host.queue)
    connector = L2CAPConnector(clock: host.clock)
  }

  // MARK: Clients

  func add(_ client: CentralClient) {
    clients.append(client)
    if host.state != .unknown { client.setState(host.state) }
  }

  func remove(_ client: CentralClient) {
    client.leave()
    clients.removeAll { $0 === client }
    for link in Array(links.values) { link.leave(client) }
    planScans(isNew: false)
  }

  func client(_ id: UInt64) -> CentralClient? { clients.first { $0.id == id } }

  private var isOn: Bool { host.state == .poweredOn }

  // MARK: Adapter

  func adapterStateChanged(_ state: AdapterState) {
    if state != .poweredOn {
      life += 1
      for link in Array(links.values) { link.reset() }
      links = [:]
      linked = [:]
      lastSeen = [:]
      discovery.reset()
    } else {
      for path in devices where DeviceFacts(host.store, path)?.isConnected == true { noteLink(path) }
    }
    for client in clients { client.setState(state) }
  }

  /// Paths of the adapter's devices.
  private var devices: [ObjectPath] {
    guard let adapter = host.adapter.path else { return [] }
    return host.store.paths(with: BlueZ.device, within: adapter)
  }

  func objectChanged(_ change: ObjectStore.Change) {
    guard isOn, let path = devicePath(change.path) else { return }
    let link = links.values.first { $0.path == path || ($0.path == nil && $0.expectedPath == path) }
    guard change.path == path else {
      link?.attributesChanged(change)
      return
    }
    guard change.interface == BlueZ.device else { return }
    if case .changed(_, _, let names) = change, names.contains("ServicesResolved"),
      let facts = DeviceFacts(host.store, path), facts.areServicesResolved, !facts.isConnected
    {
      // The daemon has not told that it is connected.
      host.refresh(path, BlueZ.device) {}
    }
    // Sightings first: what a link says of the device comes after it was heard.
    if case .removed = change { lastSeen[path] = nil } else { noteSighting(change, path) }
    noteLink(path)
    link?.deviceChanged(change)
  }

  /// The device that an object is or belongs to.
  private func devicePath(_ path: ObjectPath) -> ObjectPath? {
    guard let adapter = host.adapter.path, path != adapter, path.isWithin(adapter) else { return nil }
    let rest = path.text.dropFirst(adapter.text.count + 1).prefix { $0 != "/" }
    return rest.hasPrefix("dev_") ? try? adapter.appending(String(rest)) : nil
  }

  /// Where the daemon has a device, if it knows it.
  func path(of address: DeviceAddress) -> ObjectPath? {
    guard let adapter = host.adapter.path else { return nil }
    let usual = Self.usualPath(address, adapter)
    if let usual, DeviceFacts(host.store, usual)?.address == address { return usual }
    return devices.first { DeviceFacts(host.store, $0)?.address == address }
  }

  static func usualPath(_ address: DeviceAddress, _ adapter: ObjectPath) -> ObjectPath? {
    try? adapter.appending("dev_" + address.description.replacing(":", with: "_"))
  }

  func deviceDisconnected(_ path: ObjectPath, _ reason: RadioError) {
    links.values.first { $0.path == path }?.noteReason(reason)
  }

  /// A link that nobody wants has come to rest: the next one begins anew, so devices that come and go leave nothing behind.
  func forget(_ link: CentralLink) {
    if links[link.peer] === link { links[link.peer] = nil }
  }

  /// Whether a device has a link here, or is wanted.
  func isLinking(_ device: ObjectPath) -> Bool { links.values.contains { $0.path == device } }

  /// How many devices have a link here, or are wanted.
  var linkCount: Int { links.count }

  // MARK: Scans

  func startScan(_ filter: ScanFilter, _ client: CentralClient) {
    guard isOn else { return }
    client.scan = ScanReports(filter)
    planScans(isNew: true)
  }

  func stopScan(_ client: CentralClient) {
    guard client.scan != nil else { return }
    client.scan = nil
    planScans(isNew: false)
  }

  private func planScans(isNew: Bool) {
    discovery.setScans(clients.compactMap { $0.scan?.filter }, isNew: isNew)
    goOnDiscovering()
  }

  /// A link looks for its device, or no longer does.
  func setSearching(_ isSearching: Bool) {
    discovery.addSearches(isSearching ? 1 : -1)
    goOnDiscovering()
  }

  private func goOnDiscovering() {
    guard isOn, let adapter = host.adapter.path, let action = discovery.next() else { return }
    let life = life
    let finish: @Sendable (Result<DBusMessage, DBusError>) -> Void = { [weak self] result in
      self?.discoveryCalled(action, result, life)
    }
    switch action {
    case .stop: host.call(adapter, BlueZ.adapter, "StopDiscovery", completion: finish)
    case .start(let filter):
      var entries: [(String, DBusValue)] = [
        ("Transport", .string("le")), ("DuplicateData", .boolean(filter.allowDuplicates)),
      ]
      if !filter.services.isEmpty { entries.append(("UUIDs", filter.services.map(\.longText).dbusValue)) }
      let options = Dictionary(uniqueKeysWithValues: entries).mapValues { DBusVariant(containing: $0) }
      host.call(adapter, BlueZ.adapter, "SetDiscoveryFilter", [options.dbusValue]) { [weak self] result in
        guard let self, life == self.life, case .success = result else { return finish(result) }
        host.call(adapter, BlueZ.adapter, "StartDiscovery", completion: finish)
      }
    }
  }

  private func discoveryCalled(
    _ action: DiscoveryPlan.Action, _ result: Result<DBusMessage, DBusError>, _ life: Int
  ) {
    guard life == self.life else { return }
    var isDone = true
    if case .failure(let error) = result {
      isDone = false
      if error.name != BlueZ.Failure.inProgress { host.log("bluetoothd does not scan: \(error)") }
    }
    if discovery.ended(action, success: isDone) {
      host.after(.seconds(1)) { [weak self] in
        if life == self?.life { self?.goOnDiscovering() }
      }
    } else {
      goOnDiscovering()
    }
  }

  private func noteSighting(_ change: ObjectStore.Change, _ path: ObjectPath) {
    guard let facts = DeviceFacts(host.store, path), let address = facts.address else { return }
    let before = lastSeen[path]
    lastSeen[path] = facts
    // A device that the daemon has from before has no signal strength; one that is heard has.
    switch change {
    case .added: guard facts.rssi != nil else { return }
    case .changed(_, _, let names):
      guard !names.isDisjoint(with: DeviceFacts.evidence), !names.contains("RSSI") || facts.rssi != nil else {
        return
      }
    case .removed: return
    }
    let sighting = Sighting(
      peer: address.peer, advertisement: facts.advertisement(before: before), rssi: facts.rssi,
      isConnectable: true)
    for client in clients where client.scan?.take(address.peer, sighting.advertisement) == true {
      client.post(.discovered(sighting))
    }
  }

  // MARK: Peers

  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] {
    ids.compactMap { id in
      guard let address = DeviceAddress(id), let path = path(of: address) else { return nil }
      return KnownPeer(id: id, name: DeviceFacts(host.store, path)?.name)
    }
  }

  func connectedPeers(_ services: [BluetoothUUID]) -> [KnownPeer] {
    guard isOn else { return [] }
    return linked.keys.sorted().compactMap { path in
      guard !knownServices(path).isDisjoint(with: services) else { return nil }
      return linked[path]
    }
  }

  /// What is known of a device's services: over a link of this host what its clients have asked for, else what the daemon has.
  private func knownServices(_ path: ObjectPath) -> Set<BluetoothUUID> {
    if let session = links.values.first(where: { $0.path == path })?.session { return session.knownServices }
    return Set(DeviceFacts(host.store, path)?.services ?? [])
  }

  func watchLinks(_ filter: LinkFilter?, _ client: CentralClient) {
    guard isOn else { return }
    client.watch = filter.map { LinkWatch($0, present: Set(linked.values.map(\.id))) }
  }

  /// Looks whether a device is linked, and tells watchers of news.
  func noteLink(_ path: ObjectPath) {
    let facts = DeviceFacts(host.store, path)
    if let facts, facts.isConnected, let address = facts.address {
      let peer = KnownPeer(id: address.peer, name: facts.name)
      linked[path] = peer
      let services = knownServices(path)
      for client in clients where client.watch?.linkIsUp(peer.id, services: services) == true {
        client.post(.hostLinkChanged(peer, isUp: true))
      }
    } else if let peer = linked.removeValue(forKey: path) {
      let services = knownServices(path)
      for client in clients where client.watch?.linkHasEnded(peer.id, services: services) == true {
        client.post(.hostLinkChanged(peer, isUp: false))
      }
    }
  }

  // MARK: Links

  func connect(_ peer: PeerID, _ client: CentralClient) {
    guard isOn else { return }
    guard let address = DeviceAddress(peer) else {
      let error = RadioError(.unknownPeer, "\(peer) is no device that this host has seen")
      return client.post(.connectionFailed(peer, error))
    }
    let link = links[peer] ?? CentralLink(self, address)
    links[peer] = link
    host.pairing.prepare()
    link.join(client)
  }

  func cancelConnection(_ peer: PeerID, _ client: CentralClient) {
    guard let link = links[peer], link.leave(client) else { return }
    client.post(.disconnected(peer, nil, at: host.clock.now))
  }

  func request(
    _ request: LinkSession.Request, _ peer: PeerID, _ id: RequestID, _ client: CentralClient,
    _ place: WriteGate.Place?
  ) {
    guard let session = links[peer]?.session(of: client) else {
      if let place { place.gate.pass(place) }
      let error = RadioError(.notConnected, "there is no link to \(peer)")
      return client.post(.completed(id, peer, .failure(.radio(error))))
    }
    session.ask(request, id, client, place)
  }

  func openChannel(_ psm: PSM, _ peer: PeerID, _ id: RequestID, _ client: CentralClient) {
    guard let session = links[peer]?.session(of: client) else {
      let error = RadioError(.notConnected, "there is no link to \(peer)")
      return client.post(.completed(id, peer, .failure(.radio(error))))
    }
    session.openChannel(psm, id, client)
  }
}

extension ObjectStore.Change {
  var path: ObjectPath {
    switch self {
    case .added(let path, _), .removed(let path, _, _), .changed(let path, _, _): path
    }
  }

  var interface: String {
    switch self {
    case .added(_, let interface), .removed(_, let interface, _), .changed(_, let interface, _): interface
    }
  }
}
