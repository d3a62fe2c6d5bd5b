internal import Locking
internal import Radio

/// One client of the central role, as the host knows it.
///
/// What is not behind the lock is touched on the host's queue only.
final class CentralClient: @unchecked Sendable {
  /// Unique in its host.
  let id: UInt64
  private let sink: @Sendable (CentralEvent) -> Void

  private struct Shared: Sendable {
    var adapterState = AdapterState.unknown
    /// Links that are up for this client.
    var gates: [PeerID: WriteGate] = [:]
  }

  private let shared = PosixMutex(Shared())

  var scan: ScanReports?
  var watch: LinkWatch?
  private var hasLeft = false

  init(_ id: UInt64, _ sink: @escaping @Sendable (CentralEvent) -> Void) {
    self.id = id
    self.sink = sink
  }

  var adapterState: AdapterState { shared.withLock { $0.adapterState } }

  func gate(to peer: PeerID) -> WriteGate? { shared.withLock { $0.gates[peer] } }

  /// Posts an event; on the host's queue, so that events have one order.
  func post(_ event: CentralEvent) { if !hasLeft { sink(event) } }

  /// What getters tell has to be at least as new as the event.
  func setState(_ state: AdapterState) {
    shared.withLock { shared in
      shared.adapterState = state
      if state != .poweredOn { shared.gates = [:] }
    }
    if state != .poweredOn {
      scan = nil
      watch = nil
    }
    post(.adapterStateChanged(state))
  }

  func setGate(_ gate: WriteGate?, to peer: PeerID) { shared.withLock { $0.gates[peer] = gate } }

  func leave() {
    hasLeft = true
    shared.withLock { $0.gates = [:] }
  }
}
