internal import Radio

/// What this program wants the daemon's discovery to be: one for all of its scans and searches, as the daemon knows one for each connection to the bus.
struct DiscoveryPlan: Sendable {
  /// The daemon's filter. Source: org.bluez.Adapter(5), "SetDiscoveryFilter".
  struct Filter: Sendable, Hashable {
    /// Only devices with one of these; empty: all.
    var services: [BluetoothUUID] = []
    var allowDuplicates = false
    /// A scan that begins anew has a new number: what was reported before is to be reported again.
    var generation = 0
  }

  enum Action: Sendable, Hashable {
    case start(Filter)
    case stop
  }

  private var scans: [ScanFilter] = []
  private var searches = 0
  private var generation = 0
  private var current: Filter?
  private var running: Action?

  /// The filters of all scans that are on. `isNew`: one of them has just begun.
  mutating func setScans(_ scans: [ScanFilter], isNew: Bool) {
    self.scans = scans
    if isNew { generation += 1 }
  }

  /// Somebody looks for a device that the daemon does not know, or no longer does.
  mutating func addSearches(_ count: Int) { searches = max(0, searches + count) }

  private var wanted: Filter? {
    guard !scans.isEmpty || searches > 0 else { return nil }
    var filter = Filter(generation: generation)
    filter.allowDuplicates = scans.contains { $0.allowDuplicates }
    // The daemon cannot look for what a device solicits, so then it has to report all.
    if searches == 0, scans.allSatisfy({ !$0.services.isEmpty && $0.solicitedServices.isEmpty }) {
      var seen: Set<BluetoothUUID> = []
      filter.services = scans.flatMap(\.services).filter { seen.insert($0).inserted }
    }
    return filter
  }

  /// The next call to make; nil: all is as wanted, or a call runs.
  mutating func next() -> Action? {
    guard running == nil, wanted != current else { return nil }
    running = current != nil ? .stop : wanted.map { .start($0) }
    return running
  }

  /// The call has ended; returns whether to try again after a pause.
  mutating func ended(_ action: Action, success: Bool) -> Bool {
    guard action == running else { return false }
    running = nil
    switch action {
    case .start(let filter): current = success ? filter : nil
    case .stop: current = nil
    }
    return !success && wanted != nil
  }

  /// The daemon or the adapter has gone, and every scan with it.
  mutating func reset() { self = DiscoveryPlan() }
}
