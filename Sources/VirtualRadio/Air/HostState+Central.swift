internal import Foundation
internal import Radio

/// The central role: calls of its clients, and what a link's host has for them.
extension HostState {
  func startScan(_ filter: ScanFilter, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.isOn else { return }
    adapter.centrals[client]?.scan = ScanReports(filter)
    surroundings.interestChanged(self)
  }

  func stopScan(_ client: UInt64, _ adapter: Adapter) {
    adapter.centrals[client]?.scan = nil
    surroundings.interestChanged(self)
  }

  /// An advertising event has been heard.
  func sighted(
    _ advertisement: Advertisement, of peer: PeerID, rssi: Int, isConnectable: Bool, by adapter: Adapter
  ) {
    guard adapter.isOn else { return }
    adapter.remember(peer) { $0.services = Set(advertisement.services + advertisement.overflowServices) }
    for client in adapter.centrals.keys.sorted() {
      guard adapter.centrals[client]?.scan?.take(peer, advertisement) == true else { continue }
      adapter.remember(peer) { known in
        known.isShown = true
        known.name = advertisement.localName ?? known.name
      }
      let sighting = Sighting(
        peer: peer, advertisement: advertisement, rssi: rssi, isConnectable: isConnectable)
      post(.discovered(sighting), to: client, of: adapter)
    }
  }

  func knownPeers(_ ids: [PeerID], _ adapter: Adapter) -> [KnownPeer] {
    ids.compactMap { id in
      if let known = adapter.peers[id], known.isShown { return KnownPeer(id: id, name: known.name) }
      guard id != adapter.peerID, let name = surroundings.rememberedName(of: id) else { return nil }
      return KnownPeer(id: id, name: name)
    }
  }

  func connectedPeers(_ services: [BluetoothUUID], _ adapter: Adapter) -> [KnownPeer] {
    adapter.linksAsCentral.values.sorted { $0.id < $1.id }.compactMap { link in
      guard !knownServices(over: link).isDisjoint(with: services) else { return nil }
      return KnownPeer(id: link.peer, name: adapter.peers[link.peer]?.name)
    }
  }

  /// What the host knows of a peer's services.
  private func knownServices(over link: HostLink) -> Set<BluetoothUUID> {
    link.knownServices.union(link.adapter.peers[link.peer]?.services ?? [])
  }

  func watchLinks(_ filter: LinkFilter?, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.isOn else { return }
    let present = Set(adapter.linksAsCentral.keys)
    adapter.centrals[client]?.watch = filter.map { CentralClient.LinkWatch(filter: $0, told: present) }
  }

  /// A link is up, or more is known of the peer's services: tells whoever has asked for such links.
  func tellLinkUp(_ link: HostLink) {
    guard !link.isClosed else { return }
    tellWatchers(of: link, isUp: true) { watch in watch.told.insert(link.peer).inserted }
  }

  /// A link has ended.
  func tellLinkDown(_ link: HostLink) {
    tellWatchers(of: link, isUp: false) { watch in watch.told.remove(link.peer) != nil }
  }

  private func tellWatchers(
    of link: HostLink, isUp: Bool, if note: (inout CentralClient.LinkWatch) -> Bool
  ) {
    let adapter = link.adapter
    let services = knownServices(over: link)
    let peer = KnownPeer(id: link.peer, name: adapter.peers[link.peer]?.name)
    for client in adapter.centrals.keys.sorted() {
      guard var watch = adapter.centrals[client]?.watch else { continue }
      let matches = watch.filter.matches(link.peer, services: services)
      let isNews = (matches || !isUp) && note(&watch)
      adapter.centrals[client]?.watch = watch
      if matches, isNews { post(.hostLinkChanged(peer, isUp: isUp), to: client, of: adapter) }
    }
  }

  func connect(_ peer: PeerID, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.isOn, adapter.linksAsCentral[peer]?.users.contains(client) != true else { return }
    adapter.centrals[client]?.pendingLinks.insert(peer)
    if let link = adapter.linksAsCentral[peer] {
      join(link, client)
    } else {
      surroundings.interestChanged(self)
    }
  }

  func cancelConnection(_ peer: PeerID, _ client: UInt64, _ adapter: Adapter) {
    if adapter.centrals[client]?.pendingLinks.remove(peer) != nil {
      post(.disconnected(peer, nil, at: clock.now), to: client, of: adapter)
    } else if let link = adapter.linksAsCentral[peer], link.users.contains(client) {
      leave(link, client)
      post(.disconnected(peer, nil, at: clock.now), to: client, of: adapter)
    }
    surroundings.interestChanged(self)
  }

  /// The link of a client to a peer.
  func link(to peer: PeerID, _ client: UInt64, _ adapter: Adapter) -> HostLink? {
    guard let link = adapter.linksAsCentral[peer], link.users.contains(client) else { return nil }
    return link
  }

  func request(
    _ request: GATTRequest, _ peer: PeerID, _ id: RequestID, _ client: UInt64, _ adapter: Adapter
  ) {
    guard let link = link(to: peer, client, adapter) else { return refuse(id, peer, client, adapter) }
    let tag = ClientRequest(client: client, id: id)
    if case .setNotify(let characteristic, let mode) = request {
      // Notifications may come before the reply, so the client counts as subscribed from now on.
      var subscription = link.subscriptions[characteristic.handle] ?? HostLink.Subscription(characteristic)
      subscription.ask(for: mode, client)
      link.subscriptions[characteristic.handle] = subscription
      link.notifyRequests[tag] = (characteristic.handle, mode)
      if mode == .none, let kept = subscription.modes.values.first {
        link.host.request(.setNotify(characteristic, kept), tag, now: clock.now)
        return service(link)
      }
    }
    link.host.request(request, tag, now: clock.now)
    service(link)
  }

  func openChannel(_ psm: PSM, _ peer: PeerID, _ id: RequestID, _ client: UInt64, _ adapter: Adapter) {
    guard let link = link(to: peer, client, adapter) else { return refuse(id, peer, client, adapter) }
    link.host.openChannel(psm, ClientRequest(client: client, id: id), now: clock.now)
    service(link)
  }

  func write(
    _ value: Data, _ handle: AttributeHandle, _ peer: PeerID, _ client: UInt64, _ adapter: Adapter
  ) -> WriteOutcome {
    guard let link = link(to: peer, client, adapter) else { return .notConnected }
    let outcome =
      link.writeHold != nil && value.count <= link.host.commandLimit
      ? .notReady : link.host.writeWithoutResponse(value, to: handle)
    switch outcome {
    case .accepted: service(link)
    case .notReady: link.blockedWriters.insert(client)
    case .tooLong, .notConnected, .invalidHandle: break
    }
    return outcome
  }

  func canWrite(_ peer: PeerID, _ client: UInt64, _ adapter: Adapter) -> Bool {
    guard let link = link(to: peer, client, adapter) else { return false }
    let canWrite = link.writeHold == nil && link.host.canWriteWithoutResponse()
    if !canWrite { link.blockedWriters.insert(client) }
    return canWrite
  }

  /// Ends a client of the central role.
  func removeCentral(_ client: UInt64, _ adapter: Adapter) {
    for link in adapter.allLinks { leave(link, client) }
    if let removed = adapter.centrals.removeValue(forKey: client) { released.append(removed.sink) }
    surroundings.interestChanged(self)
  }

  /// There is room for the writers of a link: tells them, unless the script says otherwise.
  private func announceReady(_ link: HostLink) {
    guard !link.blockedWriters.isEmpty else { return }
    switch link.medium.readySignal() {
    case .prompt: unblockWriters(link)
    case .never: link.blockedWriters = []
    case .late(let delay): holdWriters(of: link, for: delay, isAnnounced: true)
    }
  }

  /// Refuses all writes of a link for some time, as if the queue were full; then tells those who noticed, or nobody.
  func holdWriters(of link: HostLink, for time: Duration, isAnnounced: Bool) {
    let id = link.id
    link.writeHold?.cancel()
    link.writeHold = clock.schedule(after: time) { [weak core] in
      core?.run { $0.endHold(id, isAnnounced: isAnnounced) }
    }
  }

  private func endHold(_ id: UInt64, isAnnounced: Bool) {
    guard let link = links[id] else { return }
    link.writeHold = nil
    guard isAnnounced else { return link.blockedWriters = [] }
    // Without room, the host takes note here and tells in time.
    guard !link.blockedWriters.isEmpty, link.host.canWriteWithoutResponse() else { return }
    unblockWriters(link)
  }

  private func unblockWriters(_ link: HostLink) {
    let waiting = link.blockedWriters.sorted()
    link.blockedWriters = []
    for client in waiting { post(.readyToWrite(link.peer), to: client, of: link.adapter) }
  }

  private func refuse(_ id: RequestID, _ peer: PeerID, _ client: UInt64, _ adapter: Adapter) {
    let error = RadioError(.notConnected, "there is no link to \(peer)")
    post(.completed(id, peer, .failure(.radio(error))), to: client, of: adapter)
  }

  // MARK: From the host

  func carryOutForCentral(_ output: LinkHost.Output, _ link: HostLink) {
    guard !link.isClosed else { return }
    switch output {
    case .completed(let id, let result): complete(id, result, link)
    case .notified(let handle, let value):
      guard let modes = link.subscriptions[handle]?.modes else { return }
      for client in modes.keys.sorted() {
        post(.notified(link.peer, handle, value), to: client, of: link.adapter)
      }
    case .servicesChanged(let ranges):
      for user in link.users.sorted() {
        post(.servicesChanged(link.peer, ranges), to: user, of: link.adapter)
      }
    case .deviceName(let name):
      guard link.adapter.peers[link.peer]?.name != name else { return }
      link.adapter.remember(link.peer) { $0.name = name }
      for user in link.users.sorted() { post(.nameChanged(link.peer, name), to: user, of: link.adapter) }
    case .readyToWrite: announceReady(link)
    case .channelConnected(let id, let psm, let cid):
      guard link.users.contains(id.client), let channel = makeChannel(link, cid, psm, client: id.client)
      else { return link.host.closeChannel(cid, now: clock.now) }
      complete(id, .success(.channel(channel)), link)
    default: break
    }
  }

  private func complete(_ id: ClientRequest, _ result: Result<GATTReply, GATTFailure>, _ link: HostLink) {
    settleSubscription(id, result, link)
    guard link.users.contains(id.client) else { return }
    post(.completed(id.id, link.peer, result), to: id.client, of: link.adapter)
    if case .success(.services(let services)) = result {
      link.knownServices.formUnion(services.map(\.uuid))
      tellLinkUp(link)
    }
  }

  /// Where a subscription was refused, its client is to get no values that others have subscribed to.
  private func settleSubscription(
    _ id: ClientRequest, _ result: Result<GATTReply, GATTFailure>, _ link: HostLink
  ) {
    guard let asked = link.notifyRequests.removeValue(forKey: id) else { return }
    let isLast = !link.notifyRequests.contains {
      $0.key.client == id.client && $0.value.handle == asked.handle
    }
    let isDone = if case .success = result { true } else { false }
    link.subscriptions[asked.handle]?.settle(asked.mode, id.client, isDone: isDone, isLast: isLast)
  }
}
