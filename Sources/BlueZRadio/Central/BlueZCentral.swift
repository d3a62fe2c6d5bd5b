internal import Foundation
internal import Locking
internal import Radio

/// A client of the central role on bluetoothd.
final class BlueZCentral: CentralRadio, BlueZObserver {
  private let host: BlueZHost
  private let sink: @Sendable (CentralEvent) -> Void
  private let shared = PosixMutex(AdapterState.unknown)

  init(_ host: BlueZHost, sink: @escaping @Sendable (CentralEvent) -> Void) {
    self.host = host
    self.sink = sink
  }

  var adapterState: AdapterState { shared.withLock { $0 } }

  func adapterStateChanged(_ state: AdapterState) {
    shared.withLock { $0 = state }
    sink(.adapterStateChanged(state))
  }

  func objectChanged(_ change: ObjectStore.Change) {}

  func startScan(_ filter: ScanFilter) {}
  func stopScan() {}
  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { [] }
  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] { [] }
  func watchLinks(_ filter: LinkFilter?) {}
  func connect(_ peer: PeerID) {}
  func cancelConnection(_ peer: PeerID) {}

  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {
    sink(.completed(id, peer, .failure(.radio(RadioError(.notConnected)))))
  }

  func attMTU(of peer: PeerID) -> Int? { nil }
  func canWriteWithoutResponse(to peer: PeerID) -> Bool { false }

  func writeWithoutResponse(_ value: Data, to characteristic: AttributeHandle, of peer: PeerID)
    -> WriteOutcome
  { .notConnected }

  func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {
    sink(.completed(id, peer, .failure(.radio(RadioError(.notConnected)))))
  }
}
