internal import Foundation
internal import Radio

/// One adapter with its clients. Lives under the lock of its ``HostCore``.
final class Adapter {
  let id: UInt64
  /// How it calls itself; its GAP device name.
  let name: String
  /// How other adapters know it.
  let peerID: PeerID
  let parameters: LinkParameters
  var state = AdapterState.poweredOn
  var authorization = RadioAuthorization.allowed
  /// Whether the air carries its packets.
  var isInReach = true
  /// How long new links of the central role refuse Write Commands, and whether the end of that is told.
  var startHold: (time: Duration, isAnnounced: Bool)?
  var table: AttributeTable
  var centrals: [UInt64: CentralClient] = [:]
  var peripherals: [UInt64: PeripheralClient] = [:]
  var publishedChannels: [PSM: PublishedChannel] = [:]
  /// What this host knows of the devices that it has heard or was linked to.
  private(set) var peers = PeerMemory()
  /// Links by peer, in each of the two roles.
  var linksAsCentral: [PeerID: HostLink] = [:]
  var linksAsPeripheral: [PeerID: HostLink] = [:]

  struct PublishedChannel {
    var client: UInt64
    var requiresEncryption: Bool
  }

  init(id: UInt64, name: String, peerID: PeerID, parameters: LinkParameters) {
    self.id = id
    self.name = name
    self.peerID = peerID
    self.parameters = parameters
    table = AttributeTable(deviceName: name)
  }

  /// How it appears in captures.
  var address: [UInt8] { Self.address(of: peerID) }

  /// A random static device address (Core Vol 6 Part B 1.3.2.1) for captures, least significant octet first.
  static func address(of peer: PeerID) -> [UInt8] {
    let uuid = peer.uuid.uuid
    return [uuid.0, uuid.1, uuid.2, uuid.3, uuid.4, uuid.5 | 0xC0]
  }

  var isOn: Bool { state == .poweredOn }

  var acceptedPSMs: [PSM: Bool] { publishedChannels.mapValues(\.requiresEncryption) }

  /// What its clients advertise now.
  var advertisements: [Advertisement] {
    isOn ? peripherals.keys.sorted().compactMap { peripherals[$0]?.advertisement } : []
  }

  /// Whether a client waits for a link to a peer that there is none to.
  func wantsLink(to peer: PeerID) -> Bool {
    isOn && linksAsCentral[peer] == nil && centrals.values.contains { $0.pendingLinks.contains(peer) }
  }

  /// Takes note of something about a device.
  func remember(_ peer: PeerID, _ change: (inout PeerMemory.Peer) -> Void) {
    peers.update(peer, change) { linksAsCentral[$0] != nil || wantsLink(to: $0) }
  }

  var allLinks: [HostLink] {
    (Array(linksAsCentral.values) + Array(linksAsPeripheral.values)).sorted { $0.id < $1.id }
  }
}

/// A client of the central role.
struct CentralClient {
  let sink: @Sendable (CentralEvent) -> Void
  var scan: ScanReports?
  /// Peers to be connected to as soon as there is a link.
  var pendingLinks: Set<PeerID> = []
  /// Links of the host that it wants to be told of.
  var watch: LinkWatch?

  struct LinkWatch {
    var filter: LinkFilter
    /// Peers with a link that was told of, or was there before.
    var told: Set<PeerID>
  }
}

/// A client of the peripheral role.
struct PeripheralClient {
  let sink: @Sendable (PeripheralEvent) -> Void
  var advertisement: Advertisement?
  /// Links that had no room for a notification of this client.
  var blockedLinks: Set<UInt64> = []
}
