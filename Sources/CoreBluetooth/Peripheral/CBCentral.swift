internal import Foundation
internal import Radio

/// A remote device in the central role that has subscribed to, read or written something local.
// Sendable: nothing of it changes.
open class CBCentral: CBPeer, @unchecked Sendable {
  private let core: WeakCore

  /// A weak reference to the core that knows the link. Sendable: weak references are read atomically, and this one is never written.
  private struct WeakCore: @unchecked Sendable {
    weak var core: PeripheralCore?
  }

  init(_cb peer: PeerID, core: PeripheralCore) {
    self.core = WeakCore(core: core)
    super.init(_cb: peer)
  }

  /// The longest value that one update carries to this central now: ATT MTU - 3, at most 512. Ask each time: the ATT MTU changes.
  open var maximumUpdateValueLength: Int {
    ATT.payload(ofMTU: core.core?.client?.attMTU(of: peer) ?? ATT.minimumMTU)
  }
}
