internal import Foundation
internal import Radio

/// A client of the peripheral role of a virtual radio.
final class VirtualPeripheral: PeripheralRadio {
  private let core: HostCore
  private let adapter: UInt64
  private let client: UInt64

  init(core: HostCore, adapter: UInt64, sink: @escaping @Sendable (PeripheralEvent) -> Void) {
    self.core = core
    self.adapter = adapter
    client = core.run { state in
      let client = state.makeIdentity()
      if let adapter = state.adapters[adapter] {
        adapter.peripherals[client] = PeripheralClient(sink: sink)
        state.post(PeripheralEvent.adapterStateChanged(adapter.state), to: client, of: adapter)
      }
      return client
    }
  }

  deinit {
    let client = client
    run(()) { $0.removePeripheral(client, $1) }
  }

  var adapterState: AdapterState { run(.unknown) { $1.state } }

  func addService(_ service: LocalService) { run(()) { $0.addService(service, client, $1) } }

  func removeService(_ id: LocalServiceID) { run(()) { $0.removeService(id, client, $1) } }

  func removeAllServices() { run(()) { $0.removeAllServices(client, $1) } }

  func startAdvertising(_ advertisement: Advertisement) {
    run(()) { $0.startAdvertising(advertisement, client, $1) }
  }

  func stopAdvertising() { run(()) { $0.stopAdvertising(client, $1) } }

  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {
    core.run { $0.respond(toRead: id, with: result) }
  }

  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    core.run { $0.respond(toWrites: id, with: result) }
  }

  func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool {
    run(true) { $0.notify(value, characteristic, centrals, client, $1) }
  }

  func publishChannel(requiresEncryption: Bool) {
    run(()) { $0.publishChannel(requiresEncryption: requiresEncryption, client, $1) }
  }

  func unpublishChannel(_ psm: PSM) { run(()) { $0.unpublishChannel(psm, client, $1) } }

  func attMTU(of central: PeerID) -> Int? { run(nil) { $1.linksAsPeripheral[central]?.host.mtu } }

  func requestLatency(_ latency: LinkLatency, for central: PeerID) {
    run(()) { $0.requestLatency(latency, central, $1) }
  }

  private func run<Result: Sendable>(
    _ absent: Result, _ body: (HostState, Adapter) -> Result
  ) -> Result {
    core.run { state in state.adapters[adapter].map { body(state, $0) } ?? absent }
  }
}
