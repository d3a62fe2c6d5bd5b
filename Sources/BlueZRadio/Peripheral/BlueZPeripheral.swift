internal import Foundation
internal import Locking
internal import Radio

/// A client of the peripheral role on bluetoothd.
final class BlueZPeripheral: PeripheralRadio, BlueZObserver {
  private let host: BlueZHost
  private let sink: @Sendable (PeripheralEvent) -> Void
  private let shared = PosixMutex(AdapterState.unknown)

  init(_ host: BlueZHost, sink: @escaping @Sendable (PeripheralEvent) -> Void) {
    self.host = host
    self.sink = sink
  }

  var adapterState: AdapterState { shared.withLock { $0 } }

  func adapterStateChanged(_ state: AdapterState) {
    shared.withLock { $0 = state }
    sink(.adapterStateChanged(state))
  }

  func objectChanged(_ change: ObjectStore.Change) {}

  func addService(_ service: LocalService) {
    sink(.serviceAdded(service.id, .failure(RadioError(.notPoweredOn))))
  }

  func removeService(_ id: LocalServiceID) {}
  func removeAllServices() {}
  func startAdvertising(_ advertisement: Advertisement) {
    sink(.advertisingStarted(.failure(RadioError(.notPoweredOn))))
  }

  func stopAdvertising() {}
  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {}
  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {}

  func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool {
    true
  }

  func publishChannel(requiresEncryption: Bool) {
    sink(.channelPublished(.failure(RadioError(.notPoweredOn))))
  }

  func unpublishChannel(_ psm: PSM) {
    sink(.channelUnpublished(psm, .failure(RadioError(.notPoweredOn))))
  }

  func attMTU(of central: PeerID) -> Int? { nil }
  func requestLatency(_ latency: LinkLatency, for central: PeerID) {}
}
