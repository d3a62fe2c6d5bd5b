/// Decides how many L2CAP frames host and controller hold in one direction: the back-pressure of a link.
///
/// With a stated depth, that many frames. Without: as many as two connection events can carry, and at least 8, so that the
/// air never starves between two events although a queue is only refilled between them.
struct FrameBudget: Sendable {
  /// Frames now held.
  private(set) var frames = 0

  private var microseconds = 0
  private var pairs = 0
  private let timing: LinkTiming
  private let depth: Int?
  private let pairLimit: Int

  private static let leastFrames = 8
  private static let mostFrames = 20_000

  init(_ parameters: LinkParameters) {
    timing = LinkTiming(parameters)
    depth = parameters.queueDepth.map { max($0, 1) }
    pairLimit =
      parameters.packetsPerEvent.map { max($0, 1).multipliedReportingOverflow(by: 2) }
      .map { $0.overflow ? .max : $0.partialValue } ?? .max
  }

  /// Whether traffic that waits for room may send one more frame.
  var hasRoom: Bool {
    if let depth { return frames < depth }
    if frames < Self.leastFrames { return true }
    return frames < Self.mostFrames && microseconds < 2 * timing.interval && pairs < pairLimit
  }

  /// Whether frames that do not wait for room (answers, signalling) have become too many to hold.
  var isOverrun: Bool { frames >= 2 * (depth ?? Self.mostFrames) + 64 }

  /// Frames that are held at most, those that do not wait for room included.
  static func mostFrames(_ parameters: LinkParameters) -> Int {
    2 * (parameters.queueDepth ?? mostFrames) + 64
  }

  mutating func add(octets: Int) {
    let cost = timing.frame(octets)
    frames += 1
    microseconds += cost.microseconds
    pairs += cost.pairs
  }

  mutating func remove(octets: Int) {
    let cost = timing.frame(octets)
    frames -= 1
    microseconds -= cost.microseconds
    pairs -= cost.pairs
  }
}
