internal import Foundation
internal import Radio

/// What happens to links as a whole.
extension HostState {
  // MARK: From below

  /// A link is up: makes this adapter's end of it and tells whoever waits.
  func linkUp(
    _ adapter: Adapter, _ side: LinkSide, peer: PeerID, parameters: LinkParameters, medium: any LinkMedium
  ) -> HostLink {
    let id = makeIdentity()
    let host = LinkHost(
      side: side, parameters: parameters, table: adapter.table, firstServerRequest: id << 32, now: clock.now)
    let link = HostLink(id: id, side: side, adapter: adapter, peer: peer, medium: medium, host: host)
    link.host.acceptedPSMs = adapter.acceptedPSMs
    links[id] = link
    switch side {
    case .central:
      adapter.linksAsCentral[peer] = link
      if let hold = adapter.startHold { holdWriters(of: link, for: hold.time, isAnnounced: hold.isAnnounced) }
      for client in adapter.centrals.keys.sorted() { join(link, client) }
      tellLinkUp(link)
    case .peripheral: adapter.linksAsPeripheral[peer] = link
    }
    return link
  }

  /// A pending client becomes a user of a link.
  func join(_ link: HostLink, _ client: UInt64) {
    guard link.adapter.centrals[client]?.pendingLinks.remove(link.peer) != nil else { return }
    link.users.insert(client)
    link.adapter.remember(link.peer) { $0.isShown = true }
    post(.connected(link.peer, name: link.adapter.peers[link.peer]?.name), to: client, of: link.adapter)
  }

  /// A frame has arrived.
  func received(_ frame: [UInt8], _ link: HostLink) {
    guard !link.isClosed else { return }
    link.host.received(frame, now: clock.now)
    service(link)
  }

  /// The peer has acknowledged frames of this side.
  func completed(_ frames: Int, _ link: HostLink) {
    guard !link.isClosed else { return }
    link.host.completed(frames, now: clock.now)
    service(link)
  }

  /// The link is gone.
  func ended(_ end: HostLink, _ why: RadioLinkEnd) {
    close(end, reason: end.ownReason ?? why.error)
    surroundings.interestChanged(self)
  }

  // MARK: Ends

  /// Forgets a link at this adapter: channels first, then its clients.
  func close(_ link: HostLink, reason: RadioError?, tellsClients: Bool = true) {
    guard !link.isClosed else { return }
    let subscriptions = link.host.server.subscriptions
    link.host.end(reason ?? Self.cancelled)
    link.isClosed = true
    service(link)
    link.writeHold?.cancel()
    link.writeHold = nil
    links[link.id] = nil
    switch link.side {
    case .central:
      link.adapter.linksAsCentral[link.peer] = nil
      if tellsClients {
        for user in link.users.sorted() {
          post(.disconnected(link.peer, reason, at: clock.now), to: user, of: link.adapter)
        }
        tellLinkDown(link)
      }
      link.users = []
    case .peripheral: link.adapter.linksAsPeripheral[link.peer] = nil
    }
    guard tellsClients else { return }
    for attribute in subscriptions {
      post(.unsubscribed(central: link.peer, attribute.id), to: attribute.client, of: link.adapter)
    }
    unblockNotifiers(of: link)
  }

  /// A client leaves a link; the last one ends it.
  func leave(_ link: HostLink, _ client: UInt64) {
    guard link.users.remove(client) != nil else { return }
    link.blockedWriters.remove(client)
    guard !link.users.isEmpty else {
      close(link, reason: nil)
      return link.medium.terminate(by: link.side)
    }
    // The link stays for others: only what this client had on it ends.
    let own = channels.values.filter { $0.link === link && $0.client == client && $0.end == nil }
    for channel in own.sorted(by: { $0.cid < $1.cid }) {
      closed(link, channel.cid, Self.cancelled, ByteQueue(capacity: 0))
      link.host.closeChannel(channel.cid, now: clock.now)
    }
    link.notifyRequests = link.notifyRequests.filter { $0.key.client != client }
    for handle in link.subscriptions.keys.sorted() {
      guard link.subscriptions[handle]?.remove(client) == true,
        let subscription = link.subscriptions[handle], subscription.modes.isEmpty
      else { continue }
      link.host.configure(subscription.characteristic, .none, now: clock.now)
    }
    service(link)
  }

  private static let cancelled = RadioError(.cancelled, "this side has ended the link")

  // MARK: Power

  /// Changes an adapter's state; leaving `poweredOn` ends all links and scans without further events.
  func setState(_ state: AdapterState, of adapter: Adapter, isOrderly: Bool) {
    guard adapter.state != state else { return }
    let wasOn = adapter.isOn
    adapter.state = state
    adapter.authorization = state == .unauthorized ? .denied : .allowed
    if wasOn {
      for link in adapter.allLinks {
        close(link, reason: RadioError(.notPoweredOn, "the adapter was switched off"), tellsClients: false)
        if isOrderly { link.medium.terminate(by: link.side) } else { link.medium.vanish(link.side) }
      }
      for client in adapter.centrals.keys {
        adapter.centrals[client]?.scan = nil
        adapter.centrals[client]?.pendingLinks = []
        adapter.centrals[client]?.watch = nil
      }
      for client in adapter.peripherals.keys { adapter.peripherals[client]?.blockedLinks = [] }
    }
    if state != .poweredOn, state != .poweredOff {
      for client in adapter.peripherals.keys { withdraw(client, adapter) }
    }
    for client in adapter.centrals.keys.sorted() {
      post(CentralEvent.adapterStateChanged(state), to: client, of: adapter)
    }
    for client in adapter.peripherals.keys.sorted() {
      post(PeripheralEvent.adapterStateChanged(state), to: client, of: adapter)
    }
    surroundings.interestChanged(self)
  }
}

/// How a link has ended, from one side's view.
enum RadioLinkEnd {
  case supervisionTimeout
  case peerTerminated
  case ownTermination

  var error: RadioError? {
    switch self {
    case .supervisionTimeout:
      RadioError(.supervisionTimeout, "the link was lost: nothing heard within the supervision timeout")
    case .peerTerminated: RadioError(.peerTerminated, "the peer has ended the link")
    case .ownTermination: nil
    }
  }
}
