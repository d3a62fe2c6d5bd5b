internal import Foundation
internal import Radio

/// The peripheral role: calls of its clients, and what a link's host has for them.
extension HostState {
  /// PSMs that are given out: those that a specification may not assign (Core Vol 3 Part A 4.22).
  private static let dynamicPSMs: ClosedRange<PSM> = 0x0080...0x00FF
  /// The answer to a command that met an adapter which is not on.
  private static let poweredDown = RadioError(.notPoweredOn, "Bluetooth is not on")

  func addService(_ service: LocalService, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.isOn else {
      return post(.serviceAdded(service.id, .failure(Self.poweredDown)), to: client, of: adapter)
    }
    do {
      let handles = try adapter.table.add(service, client: client)
      replaceTable(of: adapter, changed: handles)
      post(.serviceAdded(service.id, .success(())), to: client, of: adapter)
    } catch {
      post(.serviceAdded(service.id, .failure(error)), to: client, of: adapter)
    }
  }

  func removeService(_ id: LocalServiceID, _ client: UInt64, _ adapter: Adapter) {
    guard let handles = adapter.table.remove(id, client: client) else { return }
    replaceTable(of: adapter, changed: handles)
  }

  func removeAllServices(_ client: UInt64, _ adapter: Adapter) {
    for id in adapter.table.serviceIDs(of: client) { removeService(id, client, adapter) }
  }

  private func replaceTable(of adapter: Adapter, changed: ClosedRange<AttributeHandle>) {
    for link in adapter.allLinks {
      link.host.replaceTable(adapter.table, changed: changed, now: clock.now)
      service(link)
    }
  }

  func startAdvertising(_ advertisement: Advertisement, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.peripherals[client] != nil else { return }
    guard adapter.isOn else {
      return post(.advertisingStarted(.failure(Self.poweredDown)), to: client, of: adapter)
    }
    guard adapter.peripherals[client]?.advertisement == nil else {
      let error = RadioError(.alreadyAdvertising, "this client is advertising already")
      return post(.advertisingStarted(.failure(error)), to: client, of: adapter)
    }
    if let obstacle = surroundings.obstacleToAdvertising(adapter) {
      return post(.advertisingStarted(.failure(obstacle)), to: client, of: adapter)
    }
    adapter.peripherals[client]?.advertisement = advertisement
    post(.advertisingStarted(.success(())), to: client, of: adapter)
    surroundings.interestChanged(self)
  }

  func stopAdvertising(_ client: UInt64, _ adapter: Adapter) {
    adapter.peripherals[client]?.advertisement = nil
    surroundings.interestChanged(self)
  }

  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {
    guard let link = links[id.rawValue >> 32] else { return }
    link.host.respond(toRead: id, with: result)
    service(link)
  }

  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    guard let link = links[id.rawValue >> 32] else { return }
    link.host.respond(toWrites: id, with: result)
    service(link)
  }

  func notify(
    _ value: Data, _ id: LocalCharacteristicID, _ centrals: [PeerID]?, _ client: UInt64, _ adapter: Adapter
  ) -> Bool {
    let attribute = LocalAttribute(client: client, id: id)
    let subscribers = adapter.linksAsPeripheral.values.filter { link in
      link.host.isSubscribed(to: attribute) && centrals?.contains(link.peer) ?? true
    }
    var blocked: Set<UInt64> = []
    for link in subscribers where !link.host.canNotify(attribute) { blocked.insert(link.id) }
    guard blocked.isEmpty else {
      adapter.peripherals[client]?.blockedLinks.formUnion(blocked)
      return false
    }
    for link in subscribers.sorted(by: { $0.id < $1.id }) {
      link.host.notify(value, of: attribute, now: clock.now)
      service(link)
    }
    return true
  }

  /// A link has room again or is gone: clients that waited for nothing else are told.
  func unblockNotifiers(of link: HostLink) {
    let adapter = link.adapter
    for client in adapter.peripherals.keys.sorted() {
      guard adapter.peripherals[client]?.blockedLinks.remove(link.id) != nil,
        adapter.peripherals[client]?.blockedLinks.isEmpty == true
      else { continue }
      post(.readyToNotify, to: client, of: adapter)
    }
  }

  func publishChannel(requiresEncryption: Bool, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.isOn else {
      return post(.channelPublished(.failure(Self.poweredDown)), to: client, of: adapter)
    }
    guard let psm = Self.dynamicPSMs.first(where: { adapter.publishedChannels[$0] == nil }) else {
      let error = RadioError(.outOfSpace, "all \(Self.dynamicPSMs.count) PSMs are published")
      return post(.channelPublished(.failure(error)), to: client, of: adapter)
    }
    adapter.publishedChannels[psm] = Adapter.PublishedChannel(
      client: client, requiresEncryption: requiresEncryption)
    for link in adapter.allLinks { link.host.acceptedPSMs = adapter.acceptedPSMs }
    post(.channelPublished(.success(psm)), to: client, of: adapter)
  }

  func unpublishChannel(_ psm: PSM, _ client: UInt64, _ adapter: Adapter) {
    guard adapter.publishedChannels[psm]?.client == client else {
      let error = RadioError(.invalidParameters, "PSM \(psm) is not published by this client")
      return post(.channelUnpublished(psm, .failure(error)), to: client, of: adapter)
    }
    adapter.publishedChannels[psm] = nil
    for link in adapter.allLinks {
      link.host.acceptedPSMs = adapter.acceptedPSMs
      link.host.closeChannels(of: psm, now: clock.now)
      service(link)
    }
    post(.channelUnpublished(psm, .success(())), to: client, of: adapter)
  }

  func requestLatency(_ latency: LinkLatency, _ central: PeerID, _ adapter: Adapter) {
    guard let link = adapter.linksAsPeripheral[central] else { return }
    let timeout = link.host.parameters.supervisionTimeout / .milliseconds(10)
    link.host.requestInterval(latency.intervals, timeout: UInt16(min(max(timeout, 10), 3200)))
    service(link)
  }

  /// Takes back everything that a client has published.
  func withdraw(_ client: UInt64, _ adapter: Adapter) {
    adapter.peripherals[client]?.advertisement = nil
    removeAllServices(client, adapter)
    let published = adapter.publishedChannels.filter { $0.value.client == client }.keys
    for psm in published.sorted() {
      adapter.publishedChannels[psm] = nil
      for link in adapter.allLinks {
        link.host.acceptedPSMs = adapter.acceptedPSMs
        link.host.closeChannels(of: psm, now: clock.now)
        service(link)
      }
    }
  }

  /// Ends a client of the peripheral role.
  func removePeripheral(_ client: UInt64, _ adapter: Adapter) {
    withdraw(client, adapter)
    if let removed = adapter.peripherals.removeValue(forKey: client) { released.append(removed.sink) }
    surroundings.interestChanged(self)
  }

  // MARK: From the host

  func carryOutForPeripheral(_ output: LinkHost.Output, _ link: HostLink) {
    guard !link.isClosed else { return }
    switch output {
    case .read(let id, let attribute, let offset):
      guard link.adapter.peripherals[attribute.client] != nil else {
        return link.host.respond(toRead: id, with: .failure(.unlikelyError))
      }
      post(
        .read(id, central: link.peer, attribute.id, offset: offset), to: attribute.client, of: link.adapter)
    case .write(let id, let client, let writes, let needsResponse):
      guard link.adapter.peripherals[client] != nil else {
        return link.host.respond(toWrites: id, with: .failure(.unlikelyError))
      }
      post(
        .write(id, central: link.peer, writes, needsResponse: needsResponse), to: client, of: link.adapter)
    case .subscribed(let attribute):
      post(.subscribed(central: link.peer, attribute.id), to: attribute.client, of: link.adapter)
    case .unsubscribed(let attribute):
      post(.unsubscribed(central: link.peer, attribute.id), to: attribute.client, of: link.adapter)
    case .readyToNotify: unblockNotifiers(of: link)
    case .channelAccepted(let psm, let cid):
      guard let client = link.adapter.publishedChannels[psm]?.client,
        let channel = makeChannel(link, cid, psm, client: nil)
      else { return link.host.closeChannel(cid, now: clock.now) }
      post(.channelOpened(central: link.peer, psm, channel), to: client, of: link.adapter)
    default: break
    }
  }
}

extension LinkLatency {
  /// Connection intervals that are asked for, in units of 1.25 ms: 11.25...15, 30...50 and 100...250 ms.
  fileprivate var intervals: ClosedRange<UInt16> {
    switch self {
    case .low: 9...12
    case .medium: 24...40
    case .high: 80...200
    }
  }
}
