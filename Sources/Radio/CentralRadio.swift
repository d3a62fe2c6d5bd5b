public import Foundation

/// The central role: scans, connects, and is a GATT client and an L2CAP initiator.
///
/// ## Order of events of one link
/// `connected` → any of the link's events → `disconnected`. Nothing of the link comes before the first or after the last. Between them
/// requests are served first in, first out (ATT has one request at a time), and their replies come in that order. Notifications may come
/// between a request and its reply. `disconnected` closes channels first: each open channel posts its `closed` event.
public protocol CentralRadio: AnyObject, Sendable {
  /// What the adapter can do right now.
  var adapterState: AdapterState { get }

  /// Starts scanning or replaces the filter of a running scan; never ends by itself.
  func startScan(_ filter: ScanFilter)

  /// Ends the scan; idempotent.
  func stopScan()

  /// The peers among `ids` that this host knows: seen, connected or remembered. Unknown ones are left out.
  func knownPeers(_ ids: [PeerID]) -> [KnownPeer]

  /// The peers that this host (any process of it) is linked to and that have one of `services`, as far as the host knows their services:
  /// advertised or discovered, by whomever.
  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer]

  /// Asks for ``CentralEvent/hostLinkChanged(_:isUp:)`` at links of this host, whichever of its processes makes them; nil: no more. Links in which
  /// the host is the peripheral count where the radio cannot tell them apart.
  ///
  /// Replaces what was asked before, and ends when the adapter leaves `poweredOn`. Links that are up already count once they end. A peer whose services
  /// the host gets to know only over the link is told of then.
  func watchLinks(_ filter: LinkFilter?)

  /// Makes a link, now or whenever the peer comes into reach: there is no time limit.
  ///
  /// Ends with `connected` or, where the radio can tell that it will never be, `connectionFailed`.
  func connect(_ peer: PeerID)

  /// Gives up a pending connection or ends the link of this client.
  ///
  /// Ends with `disconnected` and no error. Without a link or a pending connection nothing happens and no event comes.
  func cancelConnection(_ peer: PeerID)

  /// Queues a request; the answer is ``CentralEvent/completed(_:_:_:)`` with the same identifier.
  ///
  /// Not connected: answered with ``RadioError/Code/notConnected``.
  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID)

  /// The ATT MTU of the link now (23...517), or nil without a link. Ask each time: it changes after connecting.
  func attMTU(of peer: PeerID) -> Int?

  /// Whether a write without response would be taken now.
  ///
  /// True again is announced: each time a write was refused with ``WriteOutcome/notReady``, or this property was read as false, exactly one
  /// ``CentralEvent/readyToWrite(_:)`` follows when room is back, unless the link ends first.
  func canWriteWithoutResponse(to peer: PeerID) -> Bool

  /// Hands one value to the radio, to be sent as one Write Command.
  ///
  /// Never stores more than its stated queue: it takes the value whole or refuses it whole.
  func writeWithoutResponse(_ value: Data, to characteristic: AttributeHandle, of peer: PeerID)
    -> WriteOutcome

  /// Opens a credit-based channel; the answer is `completed` with ``GATTReply/channel(_:)`` or an error.
  func openChannel(psm: PSM, of peer: PeerID, id: RequestID)
}

/// What became of a write without response.
public enum WriteOutcome: Hashable, Sendable {
  /// Taken; it will be sent in order.
  case accepted
  /// The queue is full; wait for `readyToWrite`.
  case notReady
  /// Longer than ATT MTU - 3, or than the 512 octets that an attribute can have: refused, the link goes on.
  case tooLong(limit: Int)
  /// There is no link.
  case notConnected
  /// The host knows the peer's attributes, and this one takes no write commands or is not there: refused, the link goes on.
  case invalidHandle
}

/// Which links of the host are told of: those to peers for which anything of it holds.
public struct LinkFilter: Hashable, Sendable {
  /// Peers that have at least one of these services.
  public var services: [BluetoothUUID]
  /// These peers.
  public var peers: [PeerID]

  /// Makes a filter.
  public init(services: [BluetoothUUID] = [], peers: [PeerID] = []) {
    self.services = services
    self.peers = peers
  }

  /// Whether the link to a peer is told of, as far as its services are known.
  public func matches(_ peer: PeerID, services known: Set<BluetoothUUID>) -> Bool {
    peers.contains(peer) || services.contains { known.contains($0) }
  }
}

/// A peer of which the host knows more than its identifier.
public struct KnownPeer: Hashable, Sendable {
  /// Who.
  public var id: PeerID
  /// GAP device name or advertised name.
  public var name: String?

  /// Makes a description.
  public init(id: PeerID, name: String?) {
    self.id = id
    self.name = name
  }
}

/// One sighting of an advertiser.
public struct Sighting: Hashable, Sendable {
  /// Who advertises.
  public var peer: PeerID
  /// What it says, scan response included where there was one.
  public var advertisement: Advertisement
  /// Signal strength in dBm; nil where not known.
  public var rssi: Int?
  /// Whether it accepts links.
  public var isConnectable: Bool

  /// Makes a sighting.
  public init(peer: PeerID, advertisement: Advertisement, rssi: Int?, isConnectable: Bool) {
    self.peer = peer
    self.advertisement = advertisement
    self.rssi = rssi
    self.isConnectable = isConnectable
  }
}

/// What a central is told.
public enum CentralEvent: Sendable {
  /// The adapter's state; when it leaves `poweredOn`, links are gone without further events, and the scan is off.
  case adapterStateChanged(AdapterState)
  /// An advertiser that passes the filter.
  case discovered(Sighting)
  /// The link is up; `name` where the host knows one.
  case connected(PeerID, name: String?)
  /// A pending connection has ended without a link.
  case connectionFailed(PeerID, RadioError)
  /// The link is gone, or a pending connection was cancelled. `nil`: as this client asked. `at`: when, on the radio's clock.
  case disconnected(PeerID, RadioError?, at: Duration)
  /// The answer to a request.
  case completed(RequestID, PeerID, Result<GATTReply, GATTFailure>)
  /// A notification or an indication (which the radio has confirmed), one event a packet.
  case notified(PeerID, AttributeHandle, Data)
  /// The ATT MTU has changed.
  case mtuChanged(PeerID, Int)
  /// Room for writes without response is back.
  case readyToWrite(PeerID)
  /// The peer's GAP device name has become known or has changed.
  case nameChanged(PeerID, String)
  /// Services in these handle ranges are no longer valid (Service Changed).
  case servicesChanged(PeerID, [ClosedRange<AttributeHandle>])
  /// A link of the host has come or gone that ``CentralRadio/watchLinks(_:)`` has asked for, this client's own links included. Once each, but
  /// independent of the order of this client's events.
  case hostLinkChanged(KnownPeer, isUp: Bool)
}
