internal import Radio

/// The centrals of a peripheral client: who is linked, who has subscribed to what, and who has room for another value.
///
/// A value, kept under a lock, since values are sent from any thread.
struct Subscriptions: Sendable {
  private struct Link: Sendable {
    /// Tells this link from earlier ones of the same central.
    let number: UInt64
    var mtu: Int
    var characteristics: Set<LocalCharacteristicID> = []
    var window = SendWindow()
    /// Values of each characteristic that this central has yet to confirm.
    var indications: [LocalCharacteristicID: Int] = [:]
    /// Whether evidence is being looked for.
    var isProbed = false
    /// A value was refused for want of room here.
    var isBlocked = false
  }

  /// How a value goes to its subscribers.
  enum Sending: Hashable, Sendable {
    case toAll(Set<PeerID>)
    /// Nobody listens.
    case nowhere
    /// Some of them have no room: wait for ready.
    case full
    /// bluetoothd sends a value to all subscribers or to none.
    case onlySomeWanted
  }

  /// Confirmed one by one, so a few on their way are enough.
  static let mostIndications = 4
  /// The ATT MTU of a new link (Core Vol 3 Part G 5.2.1).
  static let defaultMTU = 23

  private var links: [PeerID: Link] = [:]
  private var lastNumber: UInt64 = 0

  /// A central that has done something has a link; its ATT MTU, where it is known.
  mutating func touch(_ central: PeerID, mtu: Int? = nil) {
    if links[central] == nil {
      lastNumber += 1
      links[central] = Link(number: lastNumber, mtu: Self.defaultMTU)
    }
    if let mtu { links[central]?.mtu = mtu }
  }

  func mtu(of central: PeerID) -> Int? { links[central]?.mtu }

  func isLinked(_ central: PeerID) -> Bool { links[central] != nil }

  func subscribers(of characteristic: LocalCharacteristicID) -> Set<PeerID> {
    Set(links.filter { $0.value.characteristics.contains(characteristic) }.keys)
  }

  /// False where it had.
  mutating func subscribe(_ central: PeerID, to characteristic: LocalCharacteristicID) -> Bool {
    touch(central)
    return links[central]?.characteristics.insert(characteristic).inserted == true
  }

  /// What happens where somebody leaves.
  struct Leaving: Hashable, Sendable {
    /// Subscriptions that ended, in order of their numbers.
    var ended: [LocalCharacteristicID] = []
    /// Whoever waited for room, waited for nobody else.
    var isReady = false
  }

  mutating func unsubscribe(_ central: PeerID, from characteristic: LocalCharacteristicID) -> Leaving {
    guard links[central]?.characteristics.remove(characteristic) != nil else { return Leaving() }
    links[central]?.indications[characteristic] = nil
    return Leaving(ended: [characteristic], isReady: unblock(central))
  }

  mutating func endLink(_ central: PeerID) -> Leaving {
    guard let link = links[central] else { return Leaving() }
    let isReady = unblock(central)
    links[central] = nil
    return Leaving(ended: link.characteristics.sorted { $0.rawValue < $1.rawValue }, isReady: isReady)
  }

  mutating func endAll() { links = [:] }

  /// Characteristics are published no longer; true: who waited for room waits for nobody.
  mutating func forget(_ characteristics: Set<LocalCharacteristicID>) -> Bool {
    var isReady = false
    for central in links.keys where links[central]?.characteristics.isDisjoint(with: characteristics) == false
    {
      links[central]?.characteristics.subtract(characteristics)
      for characteristic in characteristics { links[central]?.indications[characteristic] = nil }
      if unblock(central) { isReady = true }
    }
    return isReady
  }

  // MARK: Values

  /// Takes a value of `count` octets for subscribers, all or the given.
  mutating func take(
    _ count: Int, of characteristic: LocalCharacteristicID, isIndicated: Bool, to centrals: [PeerID]?
  ) -> Sending {
    let all = subscribers(of: characteristic)
    let wanted = centrals.map { all.intersection($0) } ?? all
    guard !wanted.isEmpty else { return .nowhere }
    guard wanted == all else { return .onlySomeWanted }
    let blocked = all.filter { !hasRoom($0, count, characteristic, isIndicated) }
    guard blocked.isEmpty else {
      for central in blocked { links[central]?.isBlocked = true }
      return .full
    }
    for central in all {
      if isIndicated {
        links[central]?.indications[characteristic, default: 0] += 1
      } else {
        links[central]?.window.take(count)
      }
    }
    return .toAll(all)
  }

  private func hasRoom(
    _ central: PeerID, _ count: Int, _ characteristic: LocalCharacteristicID, _ isIndicated: Bool
  ) -> Bool {
    guard let link = links[central] else { return true }
    return isIndicated
      ? link.indications[characteristic, default: 0] < Self.mostIndications
      : link.window.hasRoom(for: count)
  }

  /// A value was handed to bluetoothd.
  mutating func send(_ count: Int, to centrals: Set<PeerID>) {
    for central in centrals { links[central]?.window.send(count) }
  }

  /// A search for evidence.
  struct Probe: Hashable, Sendable {
    fileprivate let link: UInt64
    fileprivate let mark: SendWindow.Mark
  }

  /// Begins to look for evidence; nil where that is not needed yet, or is under way.
  mutating func beginProbe(of central: PeerID) -> Probe? {
    guard let link = links[central], !link.isProbed, link.window.isHalfFull else { return nil }
    links[central]?.isProbed = true
    return Probe(link: link.number, mark: link.window.sent)
  }

  /// Evidence has come; true: who waited for room has it.
  mutating func endProbe(_ probe: Probe, of central: PeerID) -> Bool {
    guard let link = links[central], link.number == probe.link, link.isProbed else { return false }
    links[central]?.isProbed = false
    links[central]?.window.confirm(probe.mark)
    return unblock(central)
  }

  /// One subscriber has confirmed a value, nobody says which: it was the one that has most to confirm.
  mutating func confirm(_ characteristic: LocalCharacteristicID) -> Bool {
    let waiting = links.filter { $0.value.indications[characteristic, default: 0] > 0 }
    guard
      let central = waiting.max(by: { left, right in
        left.value.indications[characteristic, default: 0]
          < right.value.indications[characteristic, default: 0]
      })?.key
    else { return false }
    links[central]?.indications[characteristic, default: 1] -= 1
    return unblock(central)
  }

  /// True where nobody is left that a refused value waits for.
  private mutating func unblock(_ central: PeerID) -> Bool {
    guard links[central]?.isBlocked == true else { return false }
    links[central]?.isBlocked = false
    return !links.values.contains { $0.isBlocked }
  }
}
