internal import Radio

/// The central's end of a link whose ``LinkLayer`` runs in the peripheral's process. Lives under the lock of a ``HostCore``.
final class RemoteLink: LinkMedium {
  private enum Phase {
    /// Waits for `hello` and `accepted`. Can transition to: up, over.
    case connecting(isGreeted: Bool)
    /// Can transition to: silent, over.
    case up
    /// The other process is gone, and this side does not know yet. Can transition to: over.
    case silent
    case over
  }

  let id: UInt64
  let peer: PeerID
  private let file: AirFileName
  private let connection: AirConnection
  private let handle: UInt16
  private unowned let air: DirectoryAir
  private unowned let host: HostState
  private let clock: VirtualClock
  private var phase = Phase.connecting(isGreeted: false)
  private var link: HostLink?
  private var parameters = LinkParameters()
  private var isTerminating = false
  /// Frames that the other process has and has not completed.
  private var outstanding = 0
  /// Their payloads, for the script.
  private var payloads = RingBuffer<Int>()
  private var lastHeard: Duration
  /// Looks whether the other process still does anything.
  private var patience: ScheduledWork?

  init(
    id: UInt64, peer: PeerID, file: AirFileName, connection: AirConnection, handle: UInt16, air: DirectoryAir,
    host: HostState
  ) {
    self.id = id
    self.peer = peer
    self.file = file
    self.connection = connection
    self.handle = handle
    self.air = air
    self.host = host
    clock = host.clock
    lastHeard = clock.now
  }

  func start(name: String, parameters: LinkParameters) {
    connection.send(.hello(version: AirMessage.version, name: name))
    if !air.faults.isEmpty { connection.send(.faults(air.faults)) }
    connection.send(.connect(parameters))
    connection.start()
    watchOver(DirectoryAir.greetingTime)
  }

  /// Lets go of everything without a word; for the end of the air.
  func abandon() {
    phase = .over
    patience?.cancel()
    connection.close()
    link = nil
  }

  // MARK: From the host

  func send(_ frame: [UInt8], from side: LinkSide) -> Bool {
    switch phase {
    case .connecting, .over: return false
    case .silent: return true
    case .up: break
    }
    guard outstanding < FrameBudget.mostFrames(parameters) else { return false }
    outstanding += 1
    if !air.faults.isEmpty { payloads.append(FaultScript.payload(of: frame) ?? 0) }
    air.capture?.frame(frame, handle: handle, from: .central, at: clock.airNow)
    connection.send(.frame(frame))
    if patience == nil {
      lastHeard = clock.now
      watchOver(stallLimit)
    }
    return true
  }

  func terminate(by side: LinkSide) {
    guard case .up = phase, !isTerminating else { return }
    isTerminating = true
    connection.send(.terminate)
    lastHeard = clock.now
    watchOver(stallLimit)
  }

  func vanish(_ side: LinkSide) { finish(nil) }

  func setInterval(_ interval: Duration) {
    guard case .up = phase else { return }
    connection.send(.interval(units: UInt16(clamping: interval.inNanoseconds / 1_250_000)))
  }

  func readySignal() -> FaultScript.ReadySignal {
    air.faults.isEmpty ? .prompt : air.withScript(of: Self.here) { $0.readySignal() }
  }

  /// The script of this process, of which the ready signal is played here; the peripheral's process plays the rest.
  private static let here = DevicePair(central: 0, peripheral: 0)

  /// Moves the script on as frames have arrived.
  private func count(_ frames: Int) {
    for _ in 0..<frames {
      guard let octets = payloads.popFirst() else { return }
      _ = air.withScript(of: Self.here) { $0.payloadArrived(octets: octets, now: clock.now) }
    }
  }

  // MARK: From the other process

  func handle(_ event: AirConnection.Event) {
    lastHeard = clock.now
    switch event {
    case .messages(let messages): for message in messages { handle(message) }
    case .drained: break
    case .ended: connectionEnded()
    }
  }

  private func handle(_ message: AirMessage) {
    switch (phase, message) {
    case (.over, _), (.silent, _): break
    case (.connecting(isGreeted: false), .hello(AirMessage.version, let name))
    where AirFileName(peripheral: name) == file:
      phase = .connecting(isGreeted: true)
    case (.connecting(isGreeted: true), .accepted(let parameters)): begin(parameters)
    case (.up, .frame(let frame)): received(frame)
    case (.up, .completed(let frames)):
      // More than were sent is the other side's mistake and must not make room.
      let frames = min(Int(frames), outstanding)
      outstanding -= frames
      if !payloads.isEmpty { count(frames) }
      if let link { host.completed(frames, link) }
    case (.up, .parameters(let parameters)):
      self.parameters = parameters
      link?.host.replaceParameters(parameters)
    case (.up, .mtu(let mtu)):
      guard let link else { return }
      link.host.setMTU(Int(mtu))
      host.service(link)
    case (.up, .ended(let reason)): finish(reason)
    default:
      // Refused, or out of turn: an attempt is repeated at the next advertisement, a link is broken.
      connectionEnded()
    }
  }

  private func begin(_ parameters: LinkParameters) {
    guard let adapter = host.adapters.values.first, adapter.wantsLink(to: peer) else {
      // Nobody wants it any more.
      connection.send(.terminate)
      connection.closeWhenSent()
      return finish(nil)
    }
    self.parameters = parameters
    phase = .up
    patience?.cancel()
    patience = nil
    air.capture?.linkMade(
      handle: handle, peerAddress: Adapter.address(of: peer), parameters: parameters, at: clock.airNow)
    if !air.faults.isEmpty { _ = air.withScript(of: Self.here) { $0.linkMade(now: clock.now) } }
    let link = host.linkUp(adapter, .central, peer: peer, parameters: parameters, medium: self)
    self.link = link
    host.service(link)
    air.interestChanged(host)
  }

  private func received(_ frame: [UInt8]) {
    air.capture?.frame(frame, handle: handle, from: .peripheral, at: clock.airNow)
    if let link { host.received(frame, link) }
  }

  // MARK: Ends

  /// How long the other process may do nothing while something waits for it.
  private var stallLimit: Duration { max(AirLink.longestStall, parameters.supervisionTimeout) }

  private func watchOver(_ delay: Duration) {
    patience?.cancel()
    let id = id
    patience = clock.schedule(after: delay) { [weak core = host.core] in
      core?.run { ($0.surroundings as? DirectoryAir)?.remoteLinks[id]?.checkStall() }
    }
  }

  private func checkStall() {
    patience = nil
    switch phase {
    case .over: break
    case .connecting: finish(nil)
    case .silent: finish(.supervisionTimeout)
    case .up:
      guard outstanding > 0 || isTerminating else { return }
      let quiet = clock.now - lastHeard
      if quiet >= stallLimit { finish(.supervisionTimeout) } else { watchOver(stallLimit - quiet) }
    }
  }

  /// Falls silent: the other process finds the connection closed.
  func losePeer() {
    isTerminating = false
    connectionEnded()
  }

  /// The other process is gone, or what it says makes no sense.
  private func connectionEnded() {
    connection.close()
    switch phase {
    case .over, .silent: break
    case .connecting: finish(nil)
    case .up where isTerminating: finish(.terminated(by: .central))
    case .up where clock.mode == .unpaced: finish(.supervisionTimeout)
    case .up:
      phase = .silent
      watchOver(parameters.supervisionTimeout)
    }
  }

  /// The end; nil: nobody is to be told.
  private func finish(_ reason: LinkEnd?) {
    if case .over = phase { return }
    let wasUp = if case .connecting = phase { false } else { true }
    phase = .over
    patience?.cancel()
    connection.closeWhenSent()
    air.remove(self)
    if wasUp, !air.faults.isEmpty { air.withScript(of: Self.here) { $0.linkEnded() } }
    if wasUp { air.capture?.linkEnded(handle: handle, reason ?? .supervisionTimeout, at: clock.airNow) }
    if let link, let reason {
      self.link = nil
      switch reason {
      case .supervisionTimeout: host.ended(link, .supervisionTimeout)
      case .terminated(by: .central): host.ended(link, .ownTermination)
      case .terminated(by: .peripheral): host.ended(link, .peerTerminated)
      }
    }
    link = nil
    air.interestChanged(host)
  }
}
