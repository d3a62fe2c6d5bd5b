internal import Radio

/// Which links of the host a client has been told of.
struct LinkWatch: Sendable {
  let filter: LinkFilter
  private var told: Set<PeerID>

  /// Begins; links that are `present` count once they end.
  init(_ filter: LinkFilter, present: Set<PeerID>) {
    self.filter = filter
    told = present
  }

  /// A link is up, or more is known of its peer; returns whether that is to be told.
  mutating func linkIsUp(_ peer: PeerID, services: Set<BluetoothUUID>) -> Bool {
    filter.matches(peer, services: services) && told.insert(peer).inserted
  }

  /// A link has ended; returns whether that is to be told.
  mutating func linkHasEnded(_ peer: PeerID, services: Set<BluetoothUUID>) -> Bool {
    told.remove(peer) != nil && filter.matches(peer, services: services)
  }
}
