/// Which advertisements a scan reports.
public struct ScanFilter: Hashable, Sendable {
  /// Report a peer that advertises at least one of these; empty: all peers.
  public var services: [BluetoothUUID]
  /// Report a peer that solicits at least one of these as well.
  public var solicitedServices: [BluetoothUUID]
  /// Report every advertisement, instead of one per peer and scan and one more each time that the peer has said more kinds of things.
  public var allowDuplicates: Bool

  /// Makes a filter.
  public init(
    services: [BluetoothUUID] = [], solicitedServices: [BluetoothUUID] = [], allowDuplicates: Bool = false
  ) {
    self.services = services
    self.solicitedServices = solicitedServices
    self.allowDuplicates = allowDuplicates
  }

  /// Whether an advertisement has what is looked for; services that are known by hash only count.
  public func matches(_ advertisement: Advertisement) -> Bool {
    services.isEmpty
      || (advertisement.services + advertisement.overflowServices).contains { services.contains($0) }
      || advertisement.solicitedServices.contains { solicitedServices.contains($0) }
  }
}

/// What one scan reports: decides about each sighting. A new scan begins with a new value.
///
/// Without duplicates it remembers ``capacity`` peers; beyond, it forgets them all and reports them once more, so that addresses that
/// change for ever do not fill the memory.
public struct ScanReports: Sendable {
  /// How many peers are remembered.
  public static let capacity = 4096

  /// What is looked for.
  public let filter: ScanFilter
  private var reported: [PeerID: Advertisement.Fields] = [:]

  /// Begins a scan.
  public init(_ filter: ScanFilter) { self.filter = filter }

  /// Whether a sighting of these contents is to be reported.
  public func wants(_ peer: PeerID, _ advertisement: Advertisement) -> Bool {
    guard filter.matches(advertisement) else { return false }
    if filter.allowDuplicates { return true }
    guard let known = reported[peer] else { return true }
    return !known.isSuperset(of: advertisement.fields)
  }

  /// Takes note of a sighting; returns whether it is to be reported.
  public mutating func take(_ peer: PeerID, _ advertisement: Advertisement) -> Bool {
    guard wants(peer, advertisement) else { return false }
    guard !filter.allowDuplicates else { return true }
    if reported[peer] == nil, reported.count >= Self.capacity { reported = [:] }
    reported[peer, default: []].formUnion(advertisement.fields)
    return true
  }
}
