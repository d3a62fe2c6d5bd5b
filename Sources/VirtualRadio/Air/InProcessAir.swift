internal import Foundation
internal import Radio

/// The air between the adapters of one process: advertising and the making of links. Lives under the lock of a ``HostCore``.
///
/// An advertiser has advertising events only while an adapter in reach has a use for them.
final class InProcessAir: Surroundings {
  let clock: VirtualClock
  let capture: BTSnoopWriter?
  var faults: FaultPlan
  private(set) var links: [UInt64: AirLink] = [:]
  private var scripts: [DevicePair: FaultScript] = [:]
  /// What links that are gone have used.
  private var ended: [DevicePair: [LinkSide: LinkUsage]] = [:]
  private var advertising: [UInt64: ScheduledWork] = [:]
  private var generator: SeededGenerator
  private var lastHandle: UInt16 = 0

  /// Time between two advertising events, to which 0...10 ms are added (Core Vol 6 Part B 4.4.2.2).
  static let advertisingInterval = Duration.milliseconds(100)
  private static let advertisingDelay = 0...10_000

  init(clock: VirtualClock, seed: UInt64, faults: FaultPlan, capture: BTSnoopWriter?) {
    self.clock = clock
    self.faults = faults
    self.capture = capture
    generator = SeededGenerator(seed: seed)
  }

  // Links and their ends hold each other.
  deinit { for link in links.values { link.releaseEnds() } }

  // MARK: Advertising

  func interestChanged(_ host: HostState) {
    for adapter in host.adapters.values.sorted(by: { $0.id < $1.id }) {
      if isAwaited(adapter, host) {
        if advertising[adapter.id] == nil { scheduleAdvertising(adapter.id, host) }
      } else {
        advertising.removeValue(forKey: adapter.id)?.cancel()
      }
    }
  }

  /// Whether the next advertising event of an adapter would matter to anyone.
  private func isAwaited(_ advertiser: Adapter, _ host: HostState) -> Bool {
    guard advertiser.isInReach else { return false }
    let advertisements = advertiser.advertisements
    guard !advertisements.isEmpty else { return false }
    return listeners(of: advertiser, host).contains { listener in
      listener.wantsLink(to: advertiser.peerID)
        || listener.centrals.values.contains { client in
          advertisements.contains { client.scan?.wants(advertiser.peerID, $0) == true }
        }
    }
  }

  private func listeners(of advertiser: Adapter, _ host: HostState) -> [Adapter] {
    host.adapters.values.filter { $0 !== advertiser && $0.isOn && $0.isInReach }.sorted { $0.id < $1.id }
  }

  private func scheduleAdvertising(_ id: UInt64, _ host: HostState) {
    let delay =
      Self.advertisingInterval + .microseconds(Int.random(in: Self.advertisingDelay, using: &generator))
    advertising[id] = clock.schedule(after: delay) { [weak core = host.core] in
      core?.run { ($0.surroundings as? InProcessAir)?.advertise(id, $0) }
    }
  }

  private func advertise(_ id: UInt64, _ host: HostState) {
    advertising[id] = nil
    guard let advertiser = host.adapters[id], advertiser.isInReach else { return }
    let advertisements = advertiser.advertisements
    guard !advertisements.isEmpty else { return }
    for listener in listeners(of: advertiser, host) {
      let parameters = advertiser.parameters.merged(with: listener.parameters)
      for advertisement in advertisements {
        host.sighted(
          advertisement, of: advertiser.peerID, rssi: parameters.rssi, isConnectable: true, by: listener)
      }
      if listener.wantsLink(to: advertiser.peerID) { connect(listener, advertiser, parameters, host) }
    }
    interestChanged(host)
  }

  /// What runs in one process has no former runs.
  func rememberedName(of peer: PeerID) -> String? { nil }

  // MARK: Links

  private func connect(
    _ central: Adapter, _ peripheral: Adapter, _ parameters: LinkParameters, _ host: HostState
  ) {
    let pair = DevicePair(central: central.id, peripheral: peripheral.id)
    // The link before may still be ending; then the next advertising event is in time.
    guard !links.values.contains(where: { $0.pair == pair }) else { return }
    lastHandle = lastHandle % 0x0EFF + 1
    let link = AirLink(
      pair: pair, handle: lastHandle, air: self, host: host, parameters: parameters,
      generator: generator.split())
    links[link.id] = link
    link.peripheral = host.linkUp(
      peripheral, .peripheral, peer: central.peerID, parameters: parameters, medium: link)
    link.central = host.linkUp(
      central, .central, peer: peripheral.peerID, parameters: parameters, medium: link)
    capture?.linkMade(
      handle: link.handle, peerAddress: peripheral.address, parameters: parameters, at: clock.airNow)
    link.begin()
  }

  func link(_ id: UInt64) -> AirLink? { links[id] }

  func remove(_ link: AirLink) {
    links[link.id] = nil
    for side in [LinkSide.central, .peripheral] {
      let before = ended[link.pair]?[side] ?? LinkUsage()
      ended[link.pair, default: [:]][side] = before + link.usage(from: side)
    }
  }

  /// What all links from one adapter to another have used, whichever of them was the central.
  func usage(from sender: UInt64, to receiver: UInt64) -> LinkUsage {
    let ways = [
      (DevicePair(central: sender, peripheral: receiver), LinkSide.central),
      (DevicePair(central: receiver, peripheral: sender), .peripheral),
    ]
    return ways.reduce(LinkUsage()) { sum, way in
      let (pair, side) = way
      let present = links.values.first { $0.pair == pair }?.usage(from: side) ?? LinkUsage()
      return sum + (ended[pair]?[side] ?? LinkUsage()) + present
    }
  }

  // MARK: Faults

  /// Replaces the script of all pairs; what has happened is forgotten.
  func setFaults(_ plan: FaultPlan) {
    faults = plan
    scripts = [:]
    for link in links.values.sorted(by: { $0.id < $1.id }) { link.beginScript() }
  }

  func resolveFaults(totalBytes: Int) {
    faults = faults.resolved(totalBytes: totalBytes)
    for pair in scripts.keys { scripts[pair]?.resolve(totalBytes: totalBytes) }
  }

  /// Lets the script of a pair decide something.
  func hasFaults(_ pair: DevicePair) -> Bool { !faults.isEmpty }

  func withScript<Result>(of pair: DevicePair, _ body: (inout FaultScript) -> Result) -> Result {
    body(&scripts[pair, default: FaultScript(faults)])
  }

  /// Makes an adapter unreachable, or reachable again.
  func setInReach(_ isInReach: Bool, of adapter: Adapter, _ host: HostState) {
    guard adapter.isInReach != isInReach else { return }
    adapter.isInReach = isInReach
    for link in links.values.sorted(by: { $0.id < $1.id }) {
      if link.pair.central == adapter.id { link.setSilent(.central, !isInReach) }
      if link.pair.peripheral == adapter.id { link.setSilent(.peripheral, !isInReach) }
    }
    interestChanged(host)
  }
}
