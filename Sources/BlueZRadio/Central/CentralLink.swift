internal import DBus
internal import Radio

/// The link to one device, shared by the clients of a host: it is kept as long as one of them wants it.
///
/// Everything happens on the host's queue.
final class CentralLink: @unchecked Sendable {
  private unowned let central: CentralHost
  let address: DeviceAddress
  let peer: PeerID
  private var machine = LinkMachine()
  /// The device's object, while a link is wanted and the daemon knows it: it may have another address once it is paired.
  private(set) var path: ObjectPath?
  /// In the order in which they came.
  private var users: [CentralClient] = []
  /// While the link is up.
  private(set) var session: LinkSession?
  private var reason: RadioError?

  init(_ central: CentralHost, _ address: DeviceAddress) {
    self.central = central
    self.address = address
    peer = address.peer
  }

  private var host: BlueZHost { central.host }

  /// Where the object will be once the daemon knows the device.
  var expectedPath: ObjectPath? {
    host.adapter.path.flatMap { CentralHost.usualPath(address, $0) }
  }

  // MARK: Clients

  func session(of client: CentralClient) -> LinkSession? {
    session.flatMap { $0.users.contains { $0 === client } ? $0 : nil }
  }

  func join(_ client: CentralClient) {
    guard !users.contains(where: { $0 === client }) else { return }
    users.append(client)
    if let session {
      welcome(client, session)
    } else {
      look()
      carryOut(machine.setWanted(true, now: host.clock.now))
    }
  }

  /// Returns false where the client had neither a link nor a wish for one.
  @discardableResult
  func leave(_ client: CentralClient) -> Bool {
    guard users.contains(where: { $0 === client }) else { return false }
    users.removeAll { $0 === client }
    client.setGate(nil, to: peer)
    session?.leave(client)
    if users.isEmpty {
      endSession(nil)
      carryOut(machine.setWanted(false, now: host.clock.now))
    }
    return true
  }

  /// The adapter is not usable any more; no events.
  func reset() {
    _ = machine.reset()
    endSession(nil)
    users = []
    path = nil
  }

  private func welcome(_ client: CentralClient, _ session: LinkSession) {
    session.join(client)
    client.setGate(session.gate, to: peer)
    client.post(.connected(peer, name: path.flatMap { DeviceFacts(host.store, $0)?.name }))
  }

  // MARK: The device

  func deviceChanged(_ change: ObjectStore.Change) {
    look()
    guard let session, case .changed(_, _, let names) = change, let path else { return }
    session.deviceChanged()
    if names.contains("Name"), let name = DeviceFacts(host.store, path)?.name {
      for user in session.users { user.post(.nameChanged(peer, name)) }
    }
  }

  func attributesChanged(_ change: ObjectStore.Change) { session?.attributesChanged(change) }

  func noteReason(_ reason: RadioError) { self.reason = reason }

  /// Tells the machine what the daemon says now.
  private func look() {
    if path.flatMap({ DeviceFacts(host.store, $0) }) == nil { path = central.path(of: address) }
    let facts = path.flatMap { DeviceFacts(host.store, $0) }
    let device: LinkMachine.Device = facts.map { $0.isConnected ? .linked : .apart } ?? .absent
    carryOut(machine.deviceChanged(device, now: host.clock.now))
  }

  private func carryOut(_ actions: [LinkMachine.Action]) {
    for action in actions {
      switch action {
      case .startSearch: central.setSearching(true)
      case .stopSearch: central.setSearching(false)
      case .connect(let round): connect(round)
      case .disconnect(let round): disconnect(round)
      case .up: begin()
      case .down: end()
      case .fail(let error):
        let old = users
        users = []
        for user in old { user.post(.connectionFailed(peer, error)) }
      case .wake(let instant):
        host.after(instant - host.clock.now) { [weak self] in
          guard let self else { return }
          carryOut(machine.tick(now: host.clock.now))
        }
      }
    }
    if users.isEmpty, session == nil, machine.phase == .idle { central.forget(self) }
  }

  /// The daemon's own limit is below this one.
  private static let connectLimit = Duration.seconds(90)

  private func connect(_ round: UInt64) {
    guard let path else { return connected(round, .passing) }
    host.call(path, BlueZ.device, "Connect", timeLimit: Self.connectLimit) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success:
        // Where ATT was quicker than the controller's event, the daemon does not tell that the device is connected.
        host.refresh(path, BlueZ.device) { [weak self] in self?.connected(round, nil) }
      case .failure(let error): connected(round, LinkMachine.Failure(error))
      }
    }
  }

  private func connected(_ round: UInt64, _ failure: LinkMachine.Failure?) {
    carryOut(machine.connectEnded(round: round, failure, now: host.clock.now))
  }

  private func disconnect(_ round: UInt64) {
    guard let path else {
      return carryOut(machine.disconnectEnded(round: round, now: host.clock.now))
    }
    host.call(path, BlueZ.device, "Disconnect") { [weak self] _ in
      guard let self else { return }
      carryOut(machine.disconnectEnded(round: round, now: host.clock.now))
    }
  }

  // MARK: Up and down

  private func begin() {
    guard let path, !users.isEmpty else { return }
    reason = nil
    let session = LinkSession(central, self, path)
    self.session = session
    for user in users { welcome(user, session) }
    session.begin()
  }

  private func end() {
    let error = reason ?? RadioError(.peerTerminated, "the link has ended; bluetoothd does not say why")
    lose(error)
  }

  /// The link cannot be used any more, whatever the daemon says.
  func fail(_ error: RadioError) {
    guard session != nil else { return }
    lose(error)
    carryOut(machine.setWanted(false, now: host.clock.now))
  }

  private func lose(_ error: RadioError) {
    let old = users
    users = []
    for user in old { user.setGate(nil, to: peer) }
    endSession(error)
    for user in old { user.post(.disconnected(peer, error, at: host.clock.now)) }
  }

  private func endSession(_ error: RadioError?) {
    session?.end(error)
    session = nil
  }
}
