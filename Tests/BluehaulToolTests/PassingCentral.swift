import Foundation
import Radio

/// A central that passes everything on, for those that change or watch a part of it.
// Sendable: it has nothing that changes, and neither may what inherits from it.
class PassingCentral: CentralRadio, @unchecked Sendable {
  private let base: any CentralRadio

  init(_ base: any CentralRadio) { self.base = base }

  var adapterState: AdapterState { base.adapterState }
  func startScan(_ filter: ScanFilter) { base.startScan(filter) }
  func stopScan() { base.stopScan() }
  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { base.knownPeers(ids) }
  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] {
    base.connectedPeers(withServices: services)
  }
  func watchLinks(_ filter: LinkFilter?) { base.watchLinks(filter) }
  func connect(_ peer: PeerID) { base.connect(peer) }
  func cancelConnection(_ peer: PeerID) { base.cancelConnection(peer) }
  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {
    base.request(request, of: peer, id: id)
  }
  func attMTU(of peer: PeerID) -> Int? { base.attMTU(of: peer) }
  func canWriteWithoutResponse(to peer: PeerID) -> Bool { base.canWriteWithoutResponse(to: peer) }
  func writeWithoutResponse(
    _ value: Data, to characteristic: AttributeHandle, of peer: PeerID
  ) -> WriteOutcome { base.writeWithoutResponse(value, to: characteristic, of: peer) }
  func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {
    base.openChannel(psm: psm, of: peer, id: id)
  }
}
