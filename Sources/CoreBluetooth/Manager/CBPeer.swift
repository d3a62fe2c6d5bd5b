public import Foundation
internal import Radio

/// A remote device.
// Sendable: nothing of it changes; what changes in subclasses is behind locks.
open class CBPeer: NSObject, NSCopying, @unchecked Sendable {
  let peer: PeerID

  init(_cb peer: PeerID) {
    self.peer = peer
    super.init()
  }

  /// Identifies the device to this host, stable over restarts; not its address on the air.
  open var identifier: UUID { peer.uuid }

  /// Returns the object itself: there is one per device and manager.
  open func copy(with zone: NSZone? = nil) -> Any { self }
}
