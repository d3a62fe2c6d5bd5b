internal import Foundation
internal import Radio

/// A client of the central role of a virtual radio.
final class VirtualCentral: CentralRadio {
  private let core: HostCore
  private let adapter: UInt64
  private let client: UInt64

  init(core: HostCore, adapter: UInt64, sink: @escaping @Sendable (CentralEvent) -> Void) {
    self.core = core
    self.adapter = adapter
    client = core.run { state in
      let client = state.makeIdentity()
      if let adapter = state.adapters[adapter] {
        adapter.centrals[client] = CentralClient(sink: sink)
        state.post(CentralEvent.adapterStateChanged(adapter.state), to: client, of: adapter)
      }
      return client
    }
  }

  deinit {
    let client = client
    run(()) { $0.removeCentral(client, $1) }
  }

  var adapterState: AdapterState { run(.unknown) { $1.state } }

  func startScan(_ filter: ScanFilter) { run(()) { $0.startScan(filter, client, $1) } }

  func stopScan() { run(()) { $0.stopScan(client, $1) } }

  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { run([]) { $0.knownPeers(ids, $1) } }

  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] {
    run([]) { $0.connectedPeers(services, $1) }
  }

  func watchLinks(_ filter: LinkFilter?) { run(()) { $0.watchLinks(filter, client, $1) } }

  func connect(_ peer: PeerID) { run(()) { $0.connect(peer, client, $1) } }

  func cancelConnection(_ peer: PeerID) { run(()) { $0.cancelConnection(peer, client, $1) } }

  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {
    run(()) { $0.request(request, peer, id, client, $1) }
  }

  func attMTU(of peer: PeerID) -> Int? { run(nil) { $0.link(to: peer, client, $1)?.host.mtu } }

  func canWriteWithoutResponse(to peer: PeerID) -> Bool { run(false) { $0.canWrite(peer, client, $1) } }

  func writeWithoutResponse(
    _ value: Data, to characteristic: AttributeHandle, of peer: PeerID
  ) -> WriteOutcome {
    run(.notConnected) { $0.write(value, characteristic, peer, client, $1) }
  }

  func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {
    run(()) { $0.openChannel(psm, peer, id, client, $1) }
  }

  private func run<Result: Sendable>(
    _ absent: Result, _ body: (HostState, Adapter) -> Result
  ) -> Result {
    core.run { state in state.adapters[adapter].map { body(state, $0) } ?? absent }
  }
}
