/// Limits and choices of a connection's life.
///
/// nil as a limit: wait for as long as it takes. A connection request without a limit waits at the radio, which makes the link when the
/// device comes into reach; nothing is polled.
public struct ConnectionConfiguration: Hashable, Sendable {
  /// What to do when services that are required have changed.
  public enum Modification: Hashable, Sendable {
    /// Discover them anew on the same link.
    case discoversAgain
    /// End the link and make another.
    case connectsAgain
  }

  /// How long the adapter may take to be ready.
  public var radioLimit: Duration? = .seconds(10)
  /// How long a search may take.
  public var findLimit: Duration? = .seconds(10)
  /// How long the first link may take to be made.
  public var connectLimit: Duration? = .seconds(10)
  /// How long a link may take to be made again; nil for a device that may be out of reach for hours.
  public var reconnectLimit: Duration?
  /// How long each step of discovery may take: services, then characteristics.
  public var discoveryLimit: Duration = .seconds(10)
  /// How long a search by name goes on after a device of that name was seen, to notice a second one. It is what each such search costs;
  /// a search by identifier, and connecting again, do not have it. 0: the first one is taken.
  ///
  /// Longer than what devices usually let pass between two advertisements, which is up to 1.28 s: a Linux host does, where nothing
  /// else is asked for.
  public var settleTime: Duration = .milliseconds(1500)
  /// How long a search by name waits for the name to be advertised before a device that is remembered by that name is connected to unseen.
  public var memoryPatience: Duration = .seconds(1)
  /// Whether a lost link is made again.
  public var reconnects = true
  /// How often in a row an attempt may fail, or a link end, without progress before it is given up; nil: never.
  public var fruitlessAttempts: Int? = 5
  /// A link that has been ready for so long counts as progress; nil: only ``ConnectionMachine/Input/progressed`` does.
  public var stableTime: Duration? = .seconds(10)
  /// The first pause before another attempt; it doubles with each attempt without progress.
  public var firstPause: Duration = .milliseconds(100)
  /// The first pause after a device has declined: one that is busy needs a moment to notice that its last peer has gone.
  public var pauseAfterRefusal: Duration = .seconds(1)
  /// The longest pause.
  public var longestPause: Duration = .seconds(5)
  /// What a change of the device's services leads to.
  public var modification = Modification.discoversAgain

  /// Makes the defaults.
  public init() {}

  /// Sets the limit of every step that waits for the adapter or the device.
  public mutating func limitSteps(to limit: Duration) {
    radioLimit = limit
    findLimit = limit
    connectLimit = limit
    reconnectLimit = limit
    discoveryLimit = limit
  }

  /// The pause before the next attempt.
  func pause(after attempts: Int, isRefused: Bool) -> Duration {
    let first = isRefused ? pauseAfterRefusal : firstPause
    return min(first * (1 << min(max(attempts - 1, 0), 16)), longestPause)
  }
}
