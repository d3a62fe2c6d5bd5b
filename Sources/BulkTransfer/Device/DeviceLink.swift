/// The way from a link with the haul service to a carrier that is ready, as a value: which step is under way, how long it may take, what
/// comes next.
///
/// Rules of this file:
/// - It decides and does nothing: ``handle(_:now:)`` returns the actions, the shell carries them out and reports what became of them.
/// - Finding, connecting, discovering and connecting again are ``ConnectionMachine``'s; this begins where that is ready.
/// - Each step has the same time limit, from its own start.
public struct DeviceLink: Sendable {
  /// What the shell does next.
  public enum Action: Hashable, Sendable {
    /// Read the PSM characteristic.
    case readPSM
    /// Open an L2CAP channel.
    case openChannel(psm: UInt16)
    /// Subscribe to the control characteristic.
    case subscribe
    /// The carrier is ready: start a session on it.
    case start(CarrierKind)
    /// The channel carries nothing, for this reason: end its session and close it, without a word of a lost link.
    case abandonChannel(String)
    /// The link is of no use: let the connection make another.
    case drop(String)
    /// It is over.
    case fail(TransferError)
  }

  /// What has happened.
  public enum Input: Sendable {
    /// There is a link with the haul service, perhaps with a PSM.
    case ready(hasPSM: Bool)
    /// That link is gone.
    case ended
    /// The PSM was read; nil where it could not be.
    case psm(UInt16?)
    /// The channel is open.
    case channelOpened
    /// The channel was refused.
    case channelRefused(String)
    /// Notifications are on.
    case subscribed
    /// The device has answered on the carrier.
    case answered
    /// The carrier has carried data, or the device is at work with what it was told.
    case proven
    /// The deadline in ``deadline`` has passed.
    case deadline
  }

  /// Limits and choices.
  public struct Configuration: Hashable, Sendable {
    /// Which carrier to use.
    public var choice: CarrierChoice = .automatic
    /// How the device is found and connected to.
    public var connection: ConnectionConfiguration
    /// How long each step may take, those of the connection included.
    public var stepLimit: Duration {
      didSet { connection.limitSteps(to: stepLimit) }
    }

    /// Makes the defaults: 10 s a step, and another link whenever one is lost, until five in a row have moved nothing.
    public init() {
      stepLimit = .seconds(10)
      connection = ConnectionConfiguration()
      connection.limitSteps(to: stepLimit)
      // What counts is what the device calls durable. Its session does not outlive a change of its services.
      connection.stableTime = nil
      connection.modification = .connectsAgain
    }
  }

  /// Where the machine stands.
  enum Step: Hashable, Sendable {
    /// No link. Can go to: readingPSM, subscribing.
    case unlinked
    /// Can go to: openingChannel, subscribing, unlinked.
    case readingPSM
    /// Can go to: running, subscribing, unlinked.
    case openingChannel
    /// Can go to: running, unlinked.
    case subscribing
    /// Can go to: unlinked; from a channel that carries nothing, where that was not demanded, to subscribing.
    case running(CarrierKind)
  }

  private(set) var step = Step.unlinked
  private let target: DeviceTarget
  private let choice: CarrierChoice
  private let stepLimit: Duration
  private let channelLimit: Duration

  /// When ``Input/deadline`` is due; nil while nothing is timed.
  public private(set) var deadline: Duration?

  /// Makes a machine that waits for a link.
  ///
  /// - Parameter channelLimit: how long a channel may be open, and how long pass from one answer to the next, before something has moved on
  ///   it. Then it is done without, where L2CAP was not demanded. Shorter than what a session waits for.
  public init(
    target: DeviceTarget, choice: CarrierChoice, stepLimit: Duration, channelLimit: Duration
  ) {
    self.target = target
    self.choice = choice
    self.stepLimit = stepLimit
    self.channelLimit = channelLimit
  }

  /// Takes what has happened and returns what to do, in order.
  public mutating func handle(_ input: Input, now: Duration) -> [Action] {
    switch input {
    case .ready(let hasPSM):
      guard step == .unlinked else { return [] }
      guard choice != .gatt else { return enter(.subscribing, [.subscribe], now) }
      return hasPSM ? enter(.readingPSM, [.readPSM], now) : withoutChannel("it offers no PSM", now)
    case .ended:
      return enter(.unlinked, [], now)
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
    case .answered:
      if case .running = step, deadline != nil { deadline = now + channelLimit }
      return []
    case .proven:
      if case .running = step { deadline = nil }
      return []
    case .deadline:
      return deadlinePassed(now)
    }
  }

  private mutating func enter(_ next: Step, _ actions: [Action], _ now: Duration) -> [Action] {
    step = next
    switch next {
    case .running(.l2cap) where choice == .automatic: deadline = now + channelLimit
    case .unlinked, .running: deadline = nil
    case .readingPSM, .openingChannel, .subscribing: deadline = now + stepLimit
    }
    return actions
  }

  private mutating func withoutChannel(_ why: String, _ now: Duration) -> [Action] {
    guard choice == .automatic else {
      let error = TransferError(
        .unsupportedDevice, "\(target) does not take an L2CAP channel: \(why)",
        advice: "leave the choice open, or choose GATT", remedy: .chooseCarrier)
      return enter(.unlinked, [.fail(error)], now)
    }
    return enter(.subscribing, [.subscribe], now)
  }

  private mutating func deadlinePassed(_ now: Duration) -> [Action] {
    guard let due = deadline, now >= due else { return [] }
    let why = "no answer within \(stepLimit)"
    switch step {
    case .running(.l2cap):
      let silence = "nothing has moved on it within \(channelLimit.inWords)"
      return enter(.subscribing, [.abandonChannel(silence), .subscribe], now)
    case .openingChannel: return withoutChannel(why, now)
    case .readingPSM, .subscribing: return enter(.unlinked, [.drop(why)], now)
    case .unlinked, .running: return []
    }
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
