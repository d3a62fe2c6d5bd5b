internal import Radio
internal import Readiness

/// The air between processes, as one process sees it: a directory with the sockets of peripherals. Lives under the lock of a
/// ``HostCore`` that has one adapter. The files and messages are described in docs/virtual-air.md.
final class DirectoryAir: Surroundings {
  let clock: VirtualClock
  let directory: AirDirectory
  let capture: BTSnoopWriter?
  private(set) var faults: FaultPlan
  /// Plays ``faults`` for all centrals together.
  private var script: FaultScript
  /// Where sockets are read and written.
  let monitor: ReadinessMonitor
  var generator: SeededGenerator
  /// Faults that centrals bring along, for their own links; by central.
  private var broughtScripts: [UInt64: (plan: FaultPlan, script: FaultScript)] = [:]
  private var lastHandle: UInt16 = 0
  /// Tells this radio from others of its name that do not hold it.
  private let token = String(UInt32.random(in: 0x1000_0000...UInt32.max), radix: 16)

  // As a peripheral.
  var listener: AirListener?
  var accepting: ReadinessSource?
  var visitors: [UInt64: Visitor] = [:]
  var advertisingTimer: ScheduledWork?
  var links: [UInt64: AirLink] = [:]

  // As a central.
  var watch: DirectoryWatch?
  var observers: [AirFileName: Observer] = [:]
  var nextLook: ScheduledWork?
  var remoteLinks: [UInt64: RemoteLink] = [:]

  /// How long a process may take for its part of a greeting.
  static let greetingTime = Duration.seconds(10)

  init(
    clock: VirtualClock, directory: AirDirectory, monitor: ReadinessMonitor, seed: UInt64,
    faults: FaultPlan, capture: BTSnoopWriter?
  ) {
    self.clock = clock
    self.directory = directory
    self.monitor = monitor
    self.faults = faults
    script = FaultScript(faults)
    self.capture = capture
    generator = SeededGenerator(seed: seed)
  }

  deinit {
    advertisingTimer?.cancel()
    nextLook?.cancel()
    for visitor in visitors.values { visitor.abandon() }
    for observer in observers.values { observer.connection.close() }
    // Links and their ends hold each other.
    for link in links.values { link.releaseEnds() }
    for link in remoteLinks.values { link.abandon() }
  }

  func interestChanged(_ host: HostState) {
    guard let adapter = host.adapters.values.first else { return }
    updateAdvertising(adapter, host)
    updateSearch(adapter, host)
  }

  func setInReach(_ isInReach: Bool, of adapter: Adapter, _ host: HostState) {
    guard adapter.isInReach != isInReach else { return }
    adapter.isInReach = isInReach
    for link in links.values.sorted(by: { $0.id < $1.id }) { link.setSilent(.peripheral, !isInReach) }
    if !isInReach {
      for link in remoteLinks.values.sorted(by: { $0.id < $1.id }) { link.losePeer() }
    }
    interestChanged(host)
  }

  /// Peripherals leave their lock files behind.
  func rememberedName(of peer: PeerID) -> String? {
    directory.locks().lazy.compactMap(\.peripheral).first { PeerID(adapterName: $0) == peer }
  }

  /// What an adapter calls itself to a peripheral: only who holds a name may use it, and every central must differ.
  func visitorName(of adapter: Adapter) -> String {
    guard listener == nil else { return adapter.name }
    let longest = AirMessage.longestName - token.utf8.count - 1
    var name = adapter.name
    while name.utf8.count > longest { name.removeLast() }
    return "\(name)~\(token)"
  }

  /// A connection handle for captures.
  func nextHandle() -> UInt16 {
    lastHandle = lastHandle % 0x0EFF + 1
    return lastHandle
  }

  // MARK: Links and faults

  func link(_ id: UInt64) -> AirLink? { links[id] }

  func remove(_ link: AirLink) {
    links[link.id] = nil
    // The connection closes by itself once the end was sent.
    for (id, visitor) in visitors where visitor === link.remote { visitors[id] = nil }
  }

  func hasFaults(_ pair: DevicePair) -> Bool { !faults.isEmpty || broughtScripts[pair.central] != nil }

  func withScript<Result>(of pair: DevicePair, _ body: (inout FaultScript) -> Result) -> Result {
    guard broughtScripts[pair.central] != nil else { return body(&script) }
    var brought = broughtScripts[pair.central]?.script ?? script
    defer { broughtScripts[pair.central]?.script = brought }
    return body(&brought)
  }

  /// A central wants faults of its own; the same plan again goes on where it was.
  func bring(_ plan: FaultPlan, by central: UInt64) {
    guard broughtScripts[central]?.plan != plan else { return }
    if broughtScripts.count >= 256 { broughtScripts = [:] }
    broughtScripts[central] = (plan, FaultScript(plan))
  }

  /// Plays another plan from its beginning.
  func setFaults(_ plan: FaultPlan) {
    faults = plan
    script = FaultScript(plan)
    for link in links.values.sorted(by: { $0.id < $1.id }) { link.beginScript() }
  }

  /// Turns shares of the payload into places.
  func resolveFaults(totalBytes: Int) {
    faults = faults.resolved(totalBytes: totalBytes)
    script.resolve(totalBytes: totalBytes)
  }
}
