internal import Foundation
internal import Radio

/// A client of the central role on bluetoothd: hands calls to the host's queue, and answers at once what can be.
final class BlueZCentral: CentralRadio {
  private let host: BlueZHost
  // After the host, so that it is let go after it.
  private let lease: HostLease
  private let client: CentralClient

  init(_ host: BlueZHost, sink: @escaping @Sendable (CentralEvent) -> Void) {
    self.host = host
    lease = HostLease(host)
    client = CentralClient(host.makeNumber(), sink)
    later { $0.add($1) }
  }

  deinit { later { $0.remove($1) } }

  private func later(_ body: @escaping @Sendable (CentralHost, CentralClient) -> Void) {
    host.queue.async { [host, client] in body(host.central, client) }
  }

  var adapterState: AdapterState { client.adapterState }

  func startScan(_ filter: ScanFilter) { later { $0.startScan(filter, $1) } }

  func stopScan() { later { $0.stopScan($1) } }

  // These two look into what the host knows, which its queue never holds for long.
  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { host.queue.sync { host.central.knownPeers(ids) } }

  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] {
    host.queue.sync { host.central.connectedPeers(services) }
  }

  func watchLinks(_ filter: LinkFilter?) { later { $0.watchLinks(filter, $1) } }

  func connect(_ peer: PeerID) { later { $0.connect(peer, $1) } }

  func cancelConnection(_ peer: PeerID) { later { $0.cancelConnection(peer, $1) } }

  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {
    // Its place is that of this call.
    let place = request.isOnAir ? client.gate(to: peer)?.addRequest() : nil
    later { $0.request(.gatt(request), peer, id, $1, place) }
  }

  func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {
    later { $0.openChannel(psm, peer, id, $1) }
  }

  func attMTU(of peer: PeerID) -> Int? { client.gate(to: peer)?.mtu }

  func canWriteWithoutResponse(to peer: PeerID) -> Bool {
    client.gate(to: peer)?.canWrite(client.id) ?? false
  }

  func writeWithoutResponse(
    _ value: Data, to characteristic: AttributeHandle, of peer: PeerID
  ) -> WriteOutcome {
    client.gate(to: peer)?.write(value, to: characteristic, by: client.id) ?? .notConnected
  }
}
