internal import Radio

/// The life of the link to one device, as all clients of a host share it: a connection request without a time limit over a daemon that has one.
///
/// bluetoothd knows only devices that it has heard, gives up connecting after half a minute, and refuses a second call while one runs.
/// So the machine looks for a device that the daemon does not know, calls again after each failure, and goes by the device's properties
/// and not by what a call has returned.
struct LinkMachine: Sendable {
  /// What the daemon says of the device.
  enum Device: Sendable, Hashable {
    /// It does not know it.
    case absent
    case apart
    case linked
  }

  /// What to do, in this order.
  enum Action: Sendable, Hashable {
    /// Keep the daemon scanning until the device is known.
    case startSearch
    case stopSearch
    /// Call `Connect`; its end belongs to this round.
    case connect(round: UInt64)
    /// Call `Disconnect`; its end belongs to this round.
    case disconnect(round: UInt64)
    /// The link is up.
    case up
    /// The link is gone, and nobody has asked for it.
    case down
    /// There will never be a link.
    case fail(RadioError)
    /// Call ``tick(now:)`` then.
    case wake(at: Duration)
  }

  /// Why a call of `Connect` has failed.
  enum Failure: Sendable, Hashable {
    /// The next may succeed.
    case passing
    /// No answer came: the daemon may still be at it.
    case stuck
    case permanent(RadioError)
  }

  enum Phase: Sendable, Hashable {
    /// Nobody wants a link.
    case idle
    /// Until the daemon knows the device.
    case searching
    case connecting
    /// Between two calls.
    case pausing(until: Duration)
    /// There was a link before it was wanted: another program may have ended it already.
    case joining(until: Duration)
    case up
    /// Until the daemon has undone what was wanted.
    case ending(until: Duration)
  }

  /// How long the daemon may take to end a link: it waits 2 s for others by itself.
  static let endLimit = Duration.seconds(6)
  /// The daemon ends a link 2 to 3 s after it was told to, and says nothing of it until then: one that has stood for so long will stay.
  static let joinTime = Duration.milliseconds(3500)
  private static let shortestPause = Duration.milliseconds(100)
  private static let longestPause = Duration.seconds(5)

  private(set) var phase = Phase.idle
  private(set) var isWanted = false
  private var device = Device.absent
  private var round: UInt64 = 0
  private var isConnecting = false
  private var isDisconnecting = false
  private var failures = 0

  /// Somebody wants the link, or nobody does.
  mutating func setWanted(_ isWanted: Bool, now: Duration) -> [Action] {
    guard isWanted != self.isWanted else { return [] }
    self.isWanted = isWanted
    switch phase {
    case .idle: return isWanted ? next(now) : []
    case .ending: return []
    case .searching:
      phase = .idle
      return [.stopSearch]
    case .pausing:
      phase = .idle
      return []
    case .connecting, .joining, .up: return end(now)
    }
  }

  mutating func deviceChanged(_ device: Device, now: Duration) -> [Action] {
    self.device = device
    switch (phase, device) {
    case (.searching, .apart), (.searching, .linked): return [.stopSearch] + next(now)
    case (.connecting, .linked), (.pausing, .linked), (.pausing, .absent), (.joining, .apart),
      (.joining, .absent):
      return next(now)
    case (.up, .apart), (.up, .absent):
      phase = .idle
      isWanted = false
      return [.down]
    case (.ending, _): return finish(now)
    default: return []
    }
  }

  mutating func connectEnded(round: UInt64, _ failure: Failure?, now: Duration) -> [Action] {
    guard round == self.round, isConnecting else { return [] }
    isConnecting = false
    if case .ending = phase { return finish(now) }
    guard phase == .connecting else { return [] }
    switch failure {
    case .permanent(let error):
      phase = .idle
      isWanted = false
      return [.fail(error)]
    case .stuck: return end(now)
    case nil, .passing:
      failures += 1
      let pause = min(Self.shortestPause * (1 << min(failures - 1, 8)), Self.longestPause)
      phase = .pausing(until: now + pause)
      return [.wake(at: now + pause)]
    }
  }

  mutating func disconnectEnded(round: UInt64, now: Duration) -> [Action] {
    guard round == self.round, isDisconnecting else { return [] }
    isDisconnecting = false
    guard case .ending = phase else { return [] }
    return finish(now)
  }

  mutating func tick(now: Duration) -> [Action] {
    switch phase {
    case .pausing(let until) where now >= until: return next(now)
    case .joining(let until) where now >= until: return up()
    case .ending(let until) where now >= until:
      // The daemon does not come to an end: what it still says of that attempt counts no more.
      forgetCalls()
      return settle(now)
    default: return []
    }
  }

  /// The adapter is not usable any more: links are gone, and wishes with them. Returns whether a search has to end.
  mutating func reset() -> Bool {
    let wasSearching = phase == .searching
    phase = .idle
    isWanted = false
    device = .absent
    failures = 0
    forgetCalls()
    return wasSearching
  }

  private mutating func forgetCalls() {
    round += 1
    isConnecting = false
    isDisconnecting = false
  }

  private mutating func next(_ now: Duration) -> [Action] {
    switch device {
    case .absent:
      phase = .searching
      return [.startSearch]
    case .apart:
      phase = .connecting
      round += 1
      isConnecting = true
      return [.connect(round: round)]
    case .linked where phase == .idle:
      phase = .joining(until: now + Self.joinTime)
      return [.wake(at: now + Self.joinTime)]
    case .linked: return up()
    }
  }

  private mutating func up() -> [Action] {
    phase = .up
    failures = 0
    return [.up]
  }

  private mutating func end(_ now: Duration) -> [Action] {
    phase = .ending(until: now + Self.endLimit)
    isDisconnecting = true
    return [.disconnect(round: round), .wake(at: now + Self.endLimit)]
  }

  private mutating func finish(_ now: Duration) -> [Action] {
    guard !isConnecting, !isDisconnecting, device != .linked else { return [] }
    return settle(now)
  }

  private mutating func settle(_ now: Duration) -> [Action] {
    phase = .idle
    return isWanted ? next(now) : []
  }
}
