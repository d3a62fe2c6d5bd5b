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

  public func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    VirtualCentral(core: core, adapter: adapter, sink: sink)
  }

  public func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    VirtualPeripheral(core: core, adapter: adapter, sink: sink)
  }
}
