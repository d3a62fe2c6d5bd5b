internal import Foundation
public import Radio

/// An adapter that exists in software only, with both roles.
public final class VirtualRadio: Radio {
  public let name: String
  /// The identifier by which other radios know this one.
  public let peerID: PeerID
  let adapter: UInt64
  let core: HostCore

  init(name: String, core: HostCore, adapter: UInt64, peerID: PeerID) {
    self.name = name
    self.core = core
    self.adapter = adapter
    self.peerID = peerID
  }

  public var clock: any RadioClock { core.clock }

  public var authorization: RadioAuthorization {
    core.run { $0.adapters[adapter]?.authorization ?? .allowed }
  }

  /// Forbids this process the radio, as a policy of the system would, or allows it again: the adapter becomes `unauthorized` or `poweredOn`.
  public func setAuthorization(_ authorization: RadioAuthorization) {
    core.run { host in
      guard let adapter = host.adapters[adapter] else { return }
      let isAllowed = authorization == .allowed
      host.setState(isAllowed ? .poweredOn : .unauthorized, of: adapter, isOrderly: false)
      adapter.authorization = authorization
    }
  }

  public func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    VirtualCentral(core: core, adapter: adapter, sink: sink)
  }

  public func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    VirtualPeripheral(core: core, adapter: adapter, sink: sink)
  }
}
