internal import Foundation
internal import Radio

/// The radio of a host that has none: its adapter is unsupported, and every command is ignored.
final class AbsentRadio: Radio {
  let name = "none"
  let clock: any RadioClock = WallClock()

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    sink(.adapterStateChanged(.unsupported))
    return Central()
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    sink(.adapterStateChanged(.unsupported))
    return Peripheral()
  }

  private final class Central: CentralRadio {
    var adapterState: AdapterState { .unsupported }
    func startScan(_ filter: ScanFilter) {}
    func stopScan() {}
    func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { [] }
    func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] { [] }
    func watchLinks(_ filter: LinkFilter?) {}
    func connect(_ peer: PeerID) {}
    func cancelConnection(_ peer: PeerID) {}
    func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {}
    func attMTU(of peer: PeerID) -> Int? { nil }
    func canWriteWithoutResponse(to peer: PeerID) -> Bool { false }
    func writeWithoutResponse(_ value: Data, to characteristic: AttributeHandle, of peer: PeerID)
      -> WriteOutcome
    { .notConnected }
    func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {}
  }

  private final class Peripheral: PeripheralRadio {
    var adapterState: AdapterState { .unsupported }
    func addService(_ service: LocalService) {}
    func removeService(_ id: LocalServiceID) {}
    func removeAllServices() {}
    func startAdvertising(_ advertisement: Advertisement) {}
    func stopAdvertising() {}
    func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {}
    func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {}
    func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool {
      true
    }
    func publishChannel(requiresEncryption: Bool) {}
    func unpublishChannel(_ psm: PSM) {}
    func attMTU(of central: PeerID) -> Int? { nil }
    func requestLatency(_ latency: LinkLatency, for central: PeerID) {}
  }
}
