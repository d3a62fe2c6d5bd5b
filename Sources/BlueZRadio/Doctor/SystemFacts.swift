/// What can be seen of this host's Bluetooth without changing anything.
struct SystemFacts: Hashable, Sendable {
  /// How far the way to the daemon was open.
  enum Daemon: Hashable, Sendable {
    case noBus(String)
    case notRunning(String)
    case notPermitted(String)
    /// It answers otherwise than its manual says.
    case unusable(String)
    case answers
  }

  /// An adapter as the daemon tells it.
  struct Adapter: Hashable, Sendable {
    /// Such as `hci0`.
    var name: String
    var address: String
    var isPowered: Bool
    /// `central`, `peripheral`; nil where the daemon does not tell.
    var roles: [String]?
    /// Sets of advertising that are left; nil where the daemon does not tell.
    var advertisementsLeft: Int?
  }

  /// A switch of the kernel that silences radios (rfkill(8)).
  struct Block: Hashable, Sendable {
    var isSoft: Bool
    var isHard: Bool
  }

  /// As uname(2) tells it.
  var kernel = ""
  /// Whether the kernel has its Bluetooth subsystem loaded.
  var hasSubsystem = true
  /// Adapters that the kernel knows, such as `hci0`.
  var kernelAdapters: [String] = []
  var blocks: [Block] = []
  /// Whether enhanced credit based channels are on in the kernel; nil: not known.
  var hasEnhancedCredits: Bool?
  var daemon = Daemon.answers
  /// Of the daemon's program, such as 5.66; nil: not known.
  var daemonVersion: DaemonVersion?
  var adapters: [Adapter] = []
  /// The interval in units of 1.25 ms that the kernel asks for when it connects, by adapter, where it can be read.
  var intervals: [String: ClosedRange<Int>] = [:]
}

/// A version of BlueZ, two numbers.
struct DaemonVersion: Hashable, Sendable, Comparable, CustomStringConvertible {
  let major: Int
  let minor: Int

  init(_ major: Int, _ minor: Int) {
    self.major = major
    self.minor = minor
  }

  /// Reads `5.66`, or what begins so; nil for anything else.
  init?(_ text: some StringProtocol) {
    let parts = text.split(separator: ".", maxSplits: 1)
    guard parts.count == 2, let major = Int(parts[0]), let minor = Int(parts[1].prefix(while: \.isNumber))
    else { return nil }
    self.init(major, minor)
  }

  var description: String { "\(major).\(minor < 10 ? "0" : "")\(minor)" }

  static func < (left: DaemonVersion, right: DaemonVersion) -> Bool {
    (left.major, left.minor) < (right.major, right.minor)
  }
}
