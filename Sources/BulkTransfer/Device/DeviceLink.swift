public import Foundation

/// The way from "a name" to "a carrier that is ready", as a value: which step is under way, how long it may take, what comes next.
///
/// Rules of this file:
/// - It decides and does nothing: ``handle(_:now:)`` returns the actions, the shell carries them out and reports what became of them.
/// - Each step has the same time limit, from its own start; there is no limit on the whole.
/// - A lost link is not an end: the machine connects again, and gives up only after ``Configuration/fruitlessAttempts`` attempts in a row during
///   which nothing became durable at the device.
public struct DeviceLink: Sendable {
  /// Which device is meant.
  public enum Target: Hashable, Sendable, CustomStringConvertible {
    /// The device that advertises, or is known by, this name.
    case name(String)
    /// The device with this identifier.
    case identifier(UUID)

    /// Whether a device is meant. The name that it advertises counts before the one by which it was known, which may be out of date; an
    /// advertised name may be shortened.
    public func matches(_ identifier: UUID, advertised: String?, known: String?) -> Bool {
      switch self {
      case .name(let name):
        guard let advertised else { return known == name }
        return advertised == name || (known == name && name.hasPrefix(advertised))
      case .identifier(let own): return identifier == own
      }
    }

    public var description: String {
      switch self {
      case .name(let name): "\u{201C}\(name)\u{201D}"
      case .identifier(let identifier): identifier.uuidString
      }
    }
  }

  /// What the shell does next.
  public enum Action: Hashable, Sendable {
    /// Look for the target: among known devices if it is an identifier, else by scanning.
    case find(Target)
    /// End the search.
    case stopFinding
    /// Connect to the device found.
    case connect
    /// Give up the connection attempt or end the link.
    case disconnect
    /// Discover the haul service and its characteristics.
    case discover
    /// Read the PSM characteristic.
    case readPSM
    /// Open an L2CAP channel.
    case openChannel(psm: UInt16)
    /// Subscribe to the control characteristic.
    case subscribe
    /// The carrier is ready: start a session on it.
    case start(CarrierKind)
    /// It is over.
    case fail(TransferError)
  }

  /// What has happened.
  public enum Input: Sendable {
    /// The adapter can be used.
    case radioReady
    /// The adapter cannot be used; `isFinal` where waiting does not help.
    case radioUnavailable(String, isFinal: Bool)
    /// The target is there.
    case found
    /// The link is up.
    case connected
    /// The device offers the haul service, perhaps with a PSM.
    case discovered(hasPSM: Bool)
    /// The device lacks the haul service or one of its characteristics.
    case unsupported(String)
    /// The PSM was read; nil where it could not be.
    case psm(UInt16?)
    /// The channel is open.
    case channelOpened
    /// The channel was refused.
    case channelRefused(String)
    /// Notifications are on.
    case subscribed
    /// The step under way has failed, or the link is gone.
    case lost(String)
    /// The device does not take the session now, in these words; it may later.
    case refused(TransferError)
    /// The device made something durable since the link came up.
    case progressed
    /// The deadline in ``deadline`` has passed.
    case deadline
  }

  /// Limits and choices.
  public struct Configuration: Hashable, Sendable {
    /// Which carrier to use.
    public var choice: CarrierChoice = .automatic
    /// How long one step may take.
    public var stepLimit: Duration = .seconds(10)
    /// How often in a row a link may end without progress before the machine gives up.
    public var fruitlessAttempts = 5
    /// Whether a lost link is made again at all.
    public var reconnects = true

    /// Makes the defaults.
    public init() {}
  }

  /// Where the machine stands.
  enum Step: Hashable, Sendable {
    /// Can go to: finding.
    case waitingForRadio
    /// Can go to: connecting, failed.
    case finding
    /// Can go to: discovering, pausing, failed.
    case connecting
    /// Can go to: readingPSM, subscribing, pausing, failed.
    case discovering
    /// Can go to: openingChannel, subscribing, pausing, failed.
    case readingPSM
    /// Can go to: running, subscribing, pausing, failed.
    case openingChannel
    /// Can go to: running, pausing, failed.
    case subscribing
    /// Can go to: pausing, failed.
    case running(CarrierKind)
    /// Waiting before the next attempt. Can go to: connecting, waitingForRadio.
    case pausing
    /// The end.
    case failed
  }

  private(set) var step = Step.waitingForRadio
  private(set) var attemptsWithoutProgress = 0
  /// Whether a carrier was ready before.
  private var hasRun = false
  private let target: Target
  private let configuration: Configuration

  /// When ``Input/deadline`` is due; nil while nothing is timed.
  public private(set) var deadline: Duration?

  /// Starts a machine that waits for the radio.
  public init(target: Target, configuration: Configuration, now: Duration) {
    self.target = target
    self.configuration = configuration
    deadline = now + configuration.stepLimit
  }

  /// Takes what has happened and returns what to do, in order.
  public mutating func handle(_ input: Input, now: Duration) -> [Action] {
    switch input {
    case .radioReady: return radioReady(now)
    case .radioUnavailable(let why, let isFinal): return radioUnavailable(why, isFinal: isFinal, now: now)
    case .found:
      guard step == .finding else { return [] }
      return [.stopFinding] + enter(.connecting, [.connect], now)
    case .connected:
      guard step == .connecting else { return [] }
      return enter(.discovering, [.discover], now)
    case .discovered(let hasPSM):
      guard step == .discovering else { return [] }
      return discovered(hasPSM: hasPSM, now)
    case .unsupported(let what):
      guard isLinked else { return [] }
      let error = TransferError(
        .unsupportedDevice, "\(target) \(what)", advice: "check that the right device is meant")
      // What was read may be of an earlier firmware, or be changing as the device comes up: it is read once more over a new link, and
      // from a device that has offered the service before as often as from any that is lost.
      guard hasRun || attemptsWithoutProgress == 0 else { return fail(error) }
      return [.disconnect] + lost(error.message, refusal: error, now)
    case .psm(let psm):
      guard step == .readingPSM else { return [] }
      if let psm, psm != 0 { return enter(.openingChannel, [.openChannel(psm: psm)], now) }
      return withoutChannel("it offers no PSM", now)
    case .channelOpened:
      guard step == .openingChannel else { return [] }
      return enter(.running(.l2cap), [.start(.l2cap)], now)
    case .channelRefused(let why):
      guard step == .openingChannel else { return [] }
      return withoutChannel(why, now)
    case .subscribed:
      guard step == .subscribing else { return [] }
      return enter(.running(.gatt), [.start(.gatt)], now)
    case .lost(let why):
      return lost(why, now)
    case .refused(let error):
      return lost(error.message, refusal: error, now)
    case .progressed:
      attemptsWithoutProgress = 0
      return []
    case .deadline:
      return deadlinePassed(now)
    }
  }

  /// Whether there is a link.
  var isLinked: Bool {
    switch step {
    case .discovering, .readingPSM, .openingChannel, .subscribing, .running: true
    case .waitingForRadio, .finding, .connecting, .pausing, .failed: false
    }
  }

  private mutating func enter(_ next: Step, _ actions: [Action], _ now: Duration) -> [Action] {
    step = next
    switch next {
    case .running:
      deadline = nil
      hasRun = true
    case .failed: deadline = nil
    default: deadline = now + configuration.stepLimit
    }
    return actions
  }

  private mutating func fail(_ error: TransferError) -> [Action] {
    let wasFinding = step == .finding
    let hadLink = isLinked || step == .connecting
    step = .failed
    deadline = nil
    return (wasFinding ? [.stopFinding] : []) + (hadLink ? [.disconnect] : []) + [.fail(error)]
  }

  private mutating func radioReady(_ now: Duration) -> [Action] {
    guard step == .waitingForRadio else { return [] }
    // Also where the device was found before: an adapter that was away may know nothing of it any more.
    return enter(.finding, [.find(target)], now)
  }

  private mutating func radioUnavailable(_ why: String, isFinal: Bool, now: Duration) -> [Action] {
    guard step != .failed else { return [] }
    if isFinal {
      return fail(.init(.radioUnavailable, why, advice: "choose a radio with --radio"))
    }
    return enter(.waitingForRadio, [], now)
  }

  private mutating func discovered(hasPSM: Bool, _ now: Duration) -> [Action] {
    switch configuration.choice {
    case .gatt: return enter(.subscribing, [.subscribe], now)
    case .automatic, .l2cap:
      if hasPSM { return enter(.readingPSM, [.readPSM], now) }
      return withoutChannel("it offers no PSM", now)
    }
  }

  private mutating func withoutChannel(_ why: String, _ now: Duration) -> [Action] {
    guard configuration.choice == .automatic else {
      return fail(
        .init(
          .unsupportedDevice, "\(target) does not take an L2CAP channel: \(why)",
          advice: "use --via gatt or --via auto"))
    }
    return enter(.subscribing, [.subscribe], now)
  }

  private mutating func lost(
    _ why: String, refusal: TransferError? = nil, _ now: Duration
  ) -> [Action] {
    guard isLinked || step == .connecting else { return [] }
    attemptsWithoutProgress += 1
    guard configuration.reconnects, attemptsWithoutProgress < configuration.fruitlessAttempts else {
      step = .failed
      deadline = nil
      let tries = attemptsWithoutProgress > 1 ? " (\(attemptsWithoutProgress) attempts without progress)" : ""
      return [
        .fail(
          refusal
            ?? .init(.disconnected, "the link to \(target) was lost: \(why)\(tries)", isRetriable: true))
      ]
    }
    step = .pausing
    deadline = now + Self.pause(after: attemptsWithoutProgress, isRefused: refusal != nil)
    return []
  }

  private mutating func deadlinePassed(_ now: Duration) -> [Action] {
    guard let due = deadline, now >= due else { return [] }
    let limit = configuration.stepLimit.description
    switch step {
    case .waitingForRadio:
      return fail(.init(.radioUnavailable, "the adapter was not ready within \(limit)", isRetriable: true))
    case .finding:
      return fail(
        .init(
          .deviceNotFound, "\(target) was not found within \(limit)",
          advice: "check that it advertises and is near; bluehaul scan lists what is there", isRetriable: true
        ))
    case .connecting:
      return [.disconnect] + lost("no connection within \(limit)", now)
    case .openingChannel:
      return withoutChannel("no answer within \(limit)", now)
    case .discovering, .readingPSM, .subscribing:
      return [.disconnect] + lost("no answer within \(limit)", now)
    case .pausing:
      return enter(.connecting, [.connect], now)
    case .running, .failed:
      return []
    }
  }

  /// 100 ms, then doubling, at most 5 s: a device that reboots needs a moment, a person is waiting. One that is busy with another sender
  /// needs longer, at least until it notices that a sender has vanished: 1 s, then doubling.
  private static func pause(after attempts: Int, isRefused: Bool) -> Duration {
    let first = Duration.milliseconds(isRefused ? 1000 : 100)
    return min(first * (1 << min(max(attempts - 1, 0), 6)), .seconds(5))
  }
}

/// Which carrier a user wants.
public enum CarrierChoice: String, Hashable, Sendable, CaseIterable {
  /// L2CAP where the device offers it and it opens, else GATT.
  case automatic = "auto"
  /// GATT only.
  case gatt
  /// L2CAP or an error.
  case l2cap
}
