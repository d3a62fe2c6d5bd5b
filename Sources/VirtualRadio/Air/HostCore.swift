internal import Locking
internal import Radio

/// The lock around a ``HostState``, and the rule that goes with it.
///
/// Sinks are called with the lock held: they store and return. Nothing else is called out. Objects whose end would come back here (a
/// channel that a sink has dropped, a sink that is replaced) are kept until the lock is free again.
final class HostCore: Sendable {
  let clock: VirtualClock
  private let state: PosixMutex<HostState>

  /// Makes the host of some adapters; `makeSurroundings` is called once.
  init(clock: VirtualClock, makeSurroundings: (VirtualClock) -> sending any Surroundings) {
    self.clock = clock
    state = PosixMutex(HostState(clock: clock, surroundings: makeSurroundings(clock)))
    run { $0.core = self }
  }

  /// Does something under the lock.
  func run<Result: Sendable>(_ body: (HostState) -> Result) -> Result {
    let (result, released) = state.withLock { state in
      let result = body(state)
      let released = state.released
      if !released.isEmpty { state.released = [] }
      return (result, released)
    }
    // The objects end here, without the lock.
    withExtendedLifetime(released) {}
    return result
  }
}

/// Adapters, their clients and links. Lives under the lock of its ``HostCore``.
final class HostState {
  let clock: VirtualClock
  let surroundings: any Surroundings
  weak var core: HostCore?
  var adapters: [UInt64: Adapter] = [:]
  var links: [UInt64: HostLink] = [:]
  var channels: [UInt64: ChannelEnd] = [:]
  /// What must end outside the lock.
  var released: [any Sendable] = []
  /// Whether a sink was called since this was last set to false.
  var hasPosted = false
  private var lastIdentity: UInt64 = 0
  private var scratch: [LinkHost.Output] = []

  init(clock: VirtualClock, surroundings: any Surroundings) {
    self.clock = clock
    self.surroundings = surroundings
  }

  // Adapters and the ends of their links hold each other.
  deinit {
    for adapter in adapters.values { (adapter.linksAsCentral, adapter.linksAsPeripheral) = ([:], [:]) }
  }

  func makeIdentity() -> UInt64 {
    lastIdentity += 1
    return lastIdentity
  }

  // MARK: Events

  func post(_ event: CentralEvent, to client: UInt64, of adapter: Adapter) {
    guard let client = adapter.centrals[client] else { return }
    hasPosted = true
    client.sink(event)
  }

  func post(_ event: PeripheralEvent, to client: UInt64, of adapter: Adapter) {
    guard let client = adapter.peripherals[client] else { return }
    hasPosted = true
    client.sink(event)
  }

  // MARK: Service

  /// Carries out what the host of a link wants, until it wants nothing more.
  func service(_ link: HostLink) {
    var outputs: [LinkHost.Output] = []
    swap(&outputs, &scratch)
    while !link.host.outputs.isEmpty {
      link.host.takeOutputs(into: &outputs)
      for output in outputs { carryOut(output, link) }
      outputs.removeAll(keepingCapacity: true)
    }
    swap(&outputs, &scratch)
    setTimer(link)
  }

  private func carryOut(_ output: LinkHost.Output, _ link: HostLink) {
    switch output {
    case .send(let frame):
      guard !link.isClosed else { return }
      if !link.medium.send(frame, from: link.side) {
        fail(link, RadioError(.other, "the link's queue has overrun"))
      }
    case .terminate(let reason): fail(link, reason)
    case .intervalRequested(let interval):
      if !link.isClosed { link.medium.setInterval(.microseconds(1250 * Int(interval.lowerBound))) }
    case .mtuChanged(let mtu):
      for user in link.users.sorted() { post(.mtuChanged(link.peer, mtu), to: user, of: link.adapter) }
    case .completed, .notified, .servicesChanged, .deviceName, .readyToWrite, .channelConnected:
      carryOutForCentral(output, link)
    case .read, .write, .subscribed, .unsubscribed, .readyToNotify, .channelAccepted:
      carryOutForPeripheral(output, link)
    case .channelEvent(let cid, let event): post(event, link, cid)
    case .channelClosed(let cid, let reason, let unread): closed(link, cid, reason, unread)
    }
  }

  /// Ends a link because of `reason`; the clients hear of it when the link has ended.
  private func fail(_ link: HostLink, _ reason: RadioError) {
    guard !link.isClosed, link.ownReason == nil else { return }
    link.ownReason = reason
    link.medium.terminate(by: link.side)
  }

  /// Keeps one timer a link, and none where nothing is due: simulated time must be able to come to rest.
  private func setTimer(_ link: HostLink) {
    let deadline = link.isClosed ? nil : link.host.nextDeadline()
    switch (link.hostTimer?.deadline, deadline) {
    case (nil, nil): return
    case (let old?, let new?) where old <= new: return
    default: break
    }
    link.hostTimer?.work.cancel()
    link.hostTimer = nil
    guard let deadline else { return }
    let id = link.id
    let work = clock.schedule(after: deadline - clock.now) { [weak core] in
      core?.run { $0.timeElapsed(id) }
    }
    link.hostTimer = (deadline, work)
  }

  private func timeElapsed(_ id: UInt64) {
    guard let link = links[id] else { return }
    link.hostTimer = nil
    link.host.timeElapsed(now: clock.now)
    service(link)
  }
}
