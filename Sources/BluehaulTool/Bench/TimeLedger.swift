internal import BulkTransfer
internal import Locking
internal import VirtualRadio

/// Accounts for the time of one transfer, from HELLO to VERIFIED: each moment belongs to one cause.
///
/// The link's own times come first, because what is on the air or waits for the next event needs no other reason. What is left, in which
/// the link had nothing to carry, belongs to what the session waited for. docs/bench.md says who measures what.
struct TimeLedger: Sendable {
  /// Where the time went; the sum is the whole time.
  struct Breakdown: Hashable, Sendable {
    /// Data on the air; nil where the link does not tell.
    var air: Duration?
    /// Data waited for the next connection event; nil where the link does not tell.
    var interval: Duration?
    /// The carrier was to take more and did not: queues, credits and the sender's own work; with the air where the link does not tell.
    var host: Duration = .zero
    /// All that may be in flight was.
    var receipts: Duration = .zero
    /// The receiver had no room, or was storing the last of it.
    var storage: Duration = .zero
    /// HELLO and OFFER and their answers.
    var agreement: Duration = .zero
    /// The receiver read back and compared.
    var verification: Duration = .zero
    /// The link was lost and made again.
    var connection: Duration = .zero

    /// All causes with the words for them, in the order in which they are told.
    var parts: [(name: String, title: String, time: Duration?)] {
      [
        ("air", "on the air", air), ("interval", "waiting for the next connection event", interval),
        ("host", air == nil ? "link and host queue" : "host queue", host),
        ("receipts", "waiting for receipts", receipts), ("storage", "receiver's storage", storage),
        ("agreement", "agreeing on the transfer", agreement),
        ("verification", "receiver's verification", verification),
        ("connection", "connecting again", connection),
      ]
    }
  }

  /// How much had arrived when.
  struct Point: Hashable, Sendable {
    var time: Duration
    var received: UInt64
  }

  private(set) var breakdown = Breakdown()
  /// Arrivals, oldest first, thinned out where there are many.
  private(set) var points: [Point] = []
  /// From the first octet of the session to the receiver's last word; nil before.
  private(set) var duration: Duration?
  /// The part of it in which the object's data was under way: without handshake, verification and lost links.
  private(set) var transfer: Duration = .zero
  /// What the link has carried for it; nil where the link does not tell.
  private(set) var carried: LinkUsage?

  private var began: (at: Duration, usage: LinkUsage?)?
  private var last: (hold: TransferActivity.Hold, at: Duration, usage: LinkUsage?)?
  private var spacing: Duration = .zero
  private static let mostPoints = 4096

  /// Notes what the transfer does from now on.
  ///
  /// - Parameter usage: what the link has done until now in the direction of the data; always given or never.
  mutating func note(_ activity: TransferActivity, usage: LinkUsage?, now: Duration) {
    guard duration == nil else { return }
    guard let began else {
      guard activity.hold != .link else { return }
      self.began = (now, usage)
      last = (activity.hold, now, usage)
      points = [Point(time: .zero, received: 0)]
      if usage != nil { (breakdown.air, breakdown.interval) = (.zero, .zero) }
      return
    }
    account(usage: usage, now: now)
    last = (activity.hold, now, usage)
    add(Point(time: now - began.at, received: activity.received))
    guard activity.hold == .farewell else { return }
    duration = now - began.at
    if let usage, let before = began.usage { carried = usage - before }
  }

  private mutating func account(usage: LinkUsage?, now: Duration) {
    guard let last else { return }
    var left = now - last.at
    switch last.hold {
    case .carrier, .receipts, .storage: transfer += left
    case .link, .agreement, .verification, .farewell: break
    }
    if let usage, let before = last.usage {
      let spent = usage - before
      breakdown.air = (breakdown.air ?? .zero) + spent.air
      breakdown.interval = (breakdown.interval ?? .zero) + spent.interval
      left -= spent.air + spent.interval
    }
    switch last.hold {
    case .link: breakdown.connection += left
    case .agreement: breakdown.agreement += left
    case .carrier: breakdown.host += left
    case .receipts: breakdown.receipts += left
    case .storage: breakdown.storage += left
    case .verification, .farewell: breakdown.verification += left
    }
  }

  private mutating func add(_ point: Point) {
    // A stream that starts again goes back; the curve does not.
    guard let previous = points.last, point.received >= previous.received else { return }
    // What arrives at one moment is one step of the curve.
    let isSameStep =
      point.time == previous.time || point.time - points[max(points.count - 2, 0)].time < spacing
    if points.count > 1, isSameStep {
      points[points.count - 1] = point
    } else {
      points.append(point)
    }
    guard points.count >= Self.mostPoints else { return }
    spacing = point.time / (Self.mostPoints / 4)
    var thinned: [Point] = []
    for (index, point) in points.enumerated() where index % 2 == 0 || index == points.count - 1 {
      thinned.append(point)
    }
    points = thinned
  }
}

/// A ledger that the queue of a transfer writes and who waits for its end reads.
final class SharedLedger: Sendable {
  private let ledger = PosixMutex(TimeLedger())

  var value: TimeLedger { ledger.withLock { $0 } }

  func note(_ activity: TransferActivity, usage: LinkUsage?, now: Duration) {
    ledger.withLock { $0.note(activity, usage: usage, now: now) }
  }
}
