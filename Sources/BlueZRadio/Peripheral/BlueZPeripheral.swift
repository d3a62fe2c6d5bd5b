internal import Foundation
internal import Locking
internal import Radio

/// A client of the peripheral role on bluetoothd: hands everything on to ``PeripheralCore``, and ends it when it is released.
final class BlueZPeripheral: PeripheralRadio {
  private let core: PeripheralCore
  // After the core, so that it is let go after it.
  private let lease: HostLease

  init(
    _ host: BlueZHost, sockets: any L2CAPSockets = KernelL2CAPSockets(),
    sink: @escaping @Sendable (PeripheralEvent) -> Void
  ) {
    core = PeripheralCore(host, sockets: sockets, sink: sink)
    lease = HostLease(host)
    run { $0.start() }
  }

  deinit { run { $0.end() } }

  private func run(_ body: @escaping @Sendable (PeripheralCore) -> Void) {
    core.host.queue.async { [core] in body(core) }
  }

  var adapterState: AdapterState { core.shared.withLock { $0.state } }

  func addService(_ service: LocalService) { run { $0.addService(service) } }
  func removeService(_ id: LocalServiceID) { run { $0.removeService(id) } }
  func removeAllServices() { run { $0.removeAllServices() } }

  func startAdvertising(_ advertisement: Advertisement) { run { $0.startAdvertising(advertisement) } }
  func stopAdvertising() { run { $0.stopAdvertising() } }

  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {
    run { $0.answer(id, result.map { .read($0) }) }
  }

  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    run { $0.answer(id, result.map { .write }) }
  }

  func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool {
    core.notify(value, characteristic, centrals)
  }

  func publishChannel(requiresEncryption: Bool) {
    run { $0.publishChannel(requiresEncryption: requiresEncryption) }
  }

  func unpublishChannel(_ psm: PSM) { run { $0.unpublishChannel(psm) } }

  /// Two octets less than the link has, where that is possible: to a central that can take several values in one notification, the daemon sends
  /// each as one of several, which has room for so much less (Core Vol 3 Part F 3.4.7.4), and cuts it. It does not tell which centrals can.
  func attMTU(of central: PeerID) -> Int? {
    core.shared.withLock { $0.subscriptions.mtu(of: central) }.map { max(Subscriptions.defaultMTU, $0 - 2) }
  }

  /// Does nothing: bluetoothd has no way for a peripheral to ask for other connection parameters. The kernel's own wishes are those of the adapter's
  /// settings.
  func requestLatency(_ latency: LinkLatency, for central: PeerID) {}
}
