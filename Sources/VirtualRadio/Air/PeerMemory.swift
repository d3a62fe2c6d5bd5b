internal import Radio

/// What a host knows of devices, of so many of them: identities that change for ever must not fill the memory.
///
/// Two generations: where the recent one is full, it becomes the older one, and what nothing was heard of meanwhile is forgotten. So at
/// least ``capacity``/2 devices are known at any time, the ones that were heard last, and looking one up costs no search.
struct PeerMemory {
  /// Most devices that are known at a time, but for those that must be.
  static let capacity = 2 * ScanReports.capacity

  struct Peer {
    /// As it has said it, over the air or over a link.
    var name: String?
    /// Whether a client was shown it; of others no client needs to know.
    var isShown = false
    /// What it advertised last.
    var services: Set<BluetoothUUID> = []
  }

  private var recent: [PeerID: Peer] = [:]
  private var older: [PeerID: Peer] = [:]

  var count: Int { recent.count + older.count }

  subscript(peer: PeerID) -> Peer? { recent[peer] ?? older[peer] }

  /// Changes what is known of a device, which becomes one of the recent ones; `isNeeded` tells which must not be forgotten.
  mutating func update(_ peer: PeerID, _ change: (inout Peer) -> Void, isNeeded: (PeerID) -> Bool) {
    if recent[peer] == nil {
      let known = older.removeValue(forKey: peer)
      if recent.count >= Self.capacity / 2 {
        let kept = older.filter { isNeeded($0.key) }
        older = recent
        recent = kept
      }
      recent[peer] = known ?? Peer()
    }
    change(&recent[peer, default: Peer()])
  }
}
