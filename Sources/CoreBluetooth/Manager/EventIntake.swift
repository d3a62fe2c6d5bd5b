internal import Locking
internal import Radio

/// Bounds what waits for a program that does not come round to its callbacks.
///
/// The events that a peer or the air can make without end, and that nothing else holds back, are counted between the radio and the callback. What
/// is lost beyond the limit is lost with a word to the program.
final class EventIntake<Rules: EventIntakeRules>: Sendable {
  private let rules = PosixMutex(Rules())

  /// An event that the radio has posted: whether it is to wait.
  func take(_ event: Rules.Event) -> Rules.Admission { rules.withLock { $0.take(event) } }

  /// The event's callback has begun.
  func handled(_ event: Rules.Event) { rules.withLock { $0.handled(event) } }
}

protocol EventIntakeRules: Sendable {
  associatedtype Event: Sendable
  associatedtype Admission: Sendable

  init()
  mutating func take(_ event: Event) -> Admission
  mutating func handled(_ event: Event)
}

/// What may wait in the central role.
struct CentralIntakeRules: EventIntakeRules {
  /// Notifications of one device: at 512 octets, 16 MiB.
  static let mostNotifications = 32_768
  /// Sightings: those beyond are dropped, and the scan begins anew when there is room, so that they come again.
  static let mostSightings = 4_096

  enum Admission: Equatable, Sendable {
    case taken
    case dropped
    /// Dropped, and the first sighting since there was room.
    case missed
    /// The first notification of that device that cannot be kept: its link must end, or a gap would stay unseen.
    case overrun(PeerID)
  }

  private var notifications: [PeerID: Int] = [:]
  private var sightings = 0
  private var hasMissed = false
  /// Devices of which nothing is taken any more until their link has ended.
  private var overrun: Set<PeerID> = []

  mutating func take(_ event: CentralEvent) -> Admission {
    switch event {
    case .notified(let peer, _, _):
      guard !overrun.contains(peer) else { return .dropped }
      let count = notifications[peer, default: 0]
      guard count < Self.mostNotifications else {
        overrun.insert(peer)
        return .overrun(peer)
      }
      notifications[peer] = count + 1
    case .discovered:
      guard sightings < Self.mostSightings else {
        defer { hasMissed = true }
        return hasMissed ? .dropped : .missed
      }
      hasMissed = false
      sightings += 1
    case .disconnected(let peer, _, _): overrun.remove(peer)
    case .adapterStateChanged(let state): if state != .poweredOn { overrun = [] }
    default: break
    }
    return .taken
  }

  mutating func handled(_ event: CentralEvent) {
    switch event {
    case .notified(let peer, _, _):
      let rest = notifications[peer, default: 0] - 1
      notifications[peer] = rest > 0 ? rest : nil
    case .discovered: sightings -= 1
    default: break
    }
  }
}

/// What may wait in the peripheral role.
struct PeripheralIntakeRules: EventIntakeRules {
  /// Writes without response: at 512 octets, 16 MiB. Those beyond are dropped, as the Attribute Protocol allows (Core Vol 3 Part F 3.4.5.3).
  static let mostCommands = 32_768
  /// Channels that centrals have opened. Those beyond are dropped, which ends them.
  static let mostChannels = 64

  enum Admission: Equatable, Sendable {
    case taken
    case dropped
    /// Dropped, and the first since there was room.
    case overrun
  }

  private var commands = 0
  private var isOverrun = false
  private var channels = 0

  mutating func take(_ event: PeripheralEvent) -> Admission {
    switch event {
    case .write(_, _, _, needsResponse: false):
      guard commands < Self.mostCommands else {
        defer { isOverrun = true }
        return isOverrun ? .dropped : .overrun
      }
      isOverrun = false
      commands += 1
    case .channelOpened:
      guard channels < Self.mostChannels else { return .dropped }
      channels += 1
    default: break
    }
    return .taken
  }

  mutating func handled(_ event: PeripheralEvent) {
    switch event {
    case .write(_, _, _, needsResponse: false): commands -= 1
    case .channelOpened: channels -= 1
    default: break
    }
  }
}
