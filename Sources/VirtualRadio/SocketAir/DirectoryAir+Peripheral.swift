internal import Radio
internal import Readiness
internal import SystemCalls

/// The host's part: a name, a socket, visitors.
extension DirectoryAir {
  private static let mostVisitors = 64

  func obstacleToAdvertising(_ adapter: Adapter) -> RadioError? {
    do throws(VirtualAirError) {
      try takeName(of: adapter)
      return nil
    } catch {
      return RadioError(.other, error.message)
    }
  }

  /// Takes the adapter's name, once; it is kept until this ends.
  func takeName(of adapter: Adapter) throws(VirtualAirError) {
    guard listener == nil else { return }
    listener = try directory.listen(as: adapter.name)
  }

  func updateAdvertising(_ adapter: Adapter, _ host: HostState) {
    guard listener != nil, adapter.isOn, adapter.isInReach else { return stopAdvertising() }
    if accepting == nil { startAccepting(host) }
    if adapter.advertisements.isEmpty {
      stopAdvertising()
    } else if advertisingTimer == nil {
      advertise(host)
    }
  }

  private func stopAdvertising() {
    advertisingTimer?.cancel()
    advertisingTimer = nil
  }

  /// One advertising event, and the next as long as somebody listens.
  private func advertise(_ host: HostState) {
    stopAdvertising()
    guard let adapter = host.adapters.values.first, adapter.isInReach else { return }
    let advertisements = adapter.advertisements
    let listening = visitors.values.filter(\.isObserving)
    guard !advertisements.isEmpty, !listening.isEmpty else { return }
    for visitor in listening where visitor.connection.isIdle {
      visitor.show(advertisements, rssi: adapter.parameters.rssi)
    }
    let delay =
      InProcessAir.advertisingInterval + .microseconds(Int.random(in: 0...10_000, using: &generator))
    advertisingTimer = clock.schedule(after: delay) { [weak core = host.core] in
      core?.run { ($0.surroundings as? DirectoryAir)?.advertise($0) }
    }
  }

  // MARK: Visitors

  private func startAccepting(_ host: HostState) {
    guard let socket = listener?.socket else { return }
    accepting = .reading(socket.raw, monitor) { [weak core = host.core] in
      core?.run { ($0.surroundings as? DirectoryAir)?.accept($0) }
    }
    guard let accepting else { return acceptLater(host) }
    accepting.setEnabled(true)
  }

  private func accept(_ host: HostState) {
    guard let listener, accepting != nil else { return }
    do throws(SystemError) {
      while let socket = try UnixSocket.accept(listener.socket) {
        // Beyond the limit the socket is closed here.
        if visitors.count < Self.mostVisitors { welcome(socket, host) }
      }
    } catch {
      // Descriptors or memory are short: the socket would stay readable, so it is left alone for a while.
      accepting = nil
      acceptLater(host)
    }
  }

  private func acceptLater(_ host: HostState) {
    _ = clock.schedule(after: .seconds(1)) { [weak core = host.core] in
      core?.run { $0.surroundings.interestChanged($0) }
    }
  }

  private func welcome(_ socket: FileDescriptor, _ host: HostState) {
    let id = host.makeIdentity()
    let connection = AirConnection(socket, monitor) { [weak core = host.core] event in
      core?.run { ($0.surroundings as? DirectoryAir)?.handle(event, of: id, $0) }
    }
    let patience = clock.schedule(after: Self.greetingTime) { [weak core = host.core] in
      core?.run { ($0.surroundings as? DirectoryAir)?.dismiss(id) }
    }
    visitors[id] = Visitor(connection: connection, patience: patience)
    connection.send(.hello(version: AirMessage.version, name: listener?.name ?? ""))
    connection.start()
  }

  /// Ends a connection that has no link.
  private func dismiss(_ id: UInt64) {
    visitors.removeValue(forKey: id)?.abandon()
  }

  private func handle(_ event: AirConnection.Event, of id: UInt64, _ host: HostState) {
    guard let visitor = visitors[id] else { return }
    switch event {
    case .messages(let messages):
      for message in messages where visitors[id] != nil { handle(message, of: id, visitor, host) }
    case .drained:
      if case .linked(_, let link) = visitor.phase { links[link]?.resume() }
    case .ended:
      visitors[id] = nil
      visitor.abandon()
      // A process that is gone has not said so: its side falls silent.
      if case .linked(_, let link) = visitor.phase { leave(link) }
    }
  }

  private func leave(_ id: UInt64) {
    guard let link = links[id] else { return }
    link.remote = nil
    link.setSilent(.central, true)
    link.resume()
  }

  private func handle(_ message: AirMessage, of id: UInt64, _ visitor: Visitor, _ host: HostState) {
    switch (message, visitor.phase) {
    case (.hello(AirMessage.version, let name), .arrived): visitor.phase = .known(name)
    case (.hello, .arrived):
      // Our own hello tells the other version why.
      visitors[id] = nil
      visitor.leaveInOrder()
    case (.observe, .known(let name)):
      visitor.phase = .observing(name)
      visitor.patience.cancel()
      advertise(host)
    case (.faults(let plan), .known(let name)): bring(plan, by: FNV1a.hash(name.utf8))
    case (.connect(let parameters), .known(let name)):
      visitor.patience.cancel()
      connect(id, visitor, name, parameters, host)
    case (.frame(let frame), .linked(_, let link)):
      if links[link]?.send(frame, from: .central) == false { breakOff(id, link) }
    case (.terminate, .linked(_, let link)): links[link]?.terminate(by: .central)
    case (.interval(let units), .linked(_, let link)):
      if (6...3200).contains(units) { links[link]?.setInterval(.microseconds(1250 * Int(units))) }
    default:
      // Out of turn.
      if case .linked(_, let link) = visitor.phase { breakOff(id, link) } else { dismiss(id) }
    }
  }

  /// Ends the connection of a central that does not keep to the rules.
  private func breakOff(_ id: UInt64, _ link: UInt64) {
    dismiss(id)
    leave(link)
  }

  private func connect(
    _ id: UInt64, _ visitor: Visitor, _ name: String, _ parameters: LinkParameters, _ host: HostState
  ) {
    func refuse(_ reason: AirMessage.Refusal, _ text: String) {
      visitors[id] = nil
      visitor.connection.send(.refused(reason, text: text))
      visitor.leaveInOrder()
    }
    guard let adapter = host.adapters.values.first, adapter.isInReach, !adapter.advertisements.isEmpty else {
      return refuse(.notAdvertising, "not advertising")
    }
    let pair = DevicePair(central: FNV1a.hash(name.utf8), peripheral: adapter.id)
    let peer = PeerID(adapterName: name)
    guard adapter.linksAsPeripheral[peer] == nil, !links.values.contains(where: { $0.pair == pair }) else {
      return refuse(.alreadyLinked, "there is a link with \(name) already")
    }
    let merged = adapter.parameters.merged(with: parameters)
    do throws(SettingError) { try merged.validate() } catch {
      return refuse(.badParameters, error.description)
    }
    let link = AirLink(
      pair: pair, handle: nextHandle(), air: self, host: host, parameters: merged,
      generator: generator.split())
    links[link.id] = link
    visitor.phase = .linked(name, link.id)
    visitor.connection.send(.accepted(merged))
    link.remote = visitor
    capture?.linkMade(
      handle: link.handle, peerAddress: adapter.address, parameters: merged, at: clock.airNow)
    link.peripheral = host.linkUp(adapter, .peripheral, peer: peer, parameters: merged, medium: link)
    link.begin()
  }
}
