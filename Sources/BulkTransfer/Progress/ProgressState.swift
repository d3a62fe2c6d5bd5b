/// How an object travels.
public enum StreamCoding: String, Hashable, Sendable, CaseIterable {
  /// As it is.
  case uncoded
  /// Compressed, segment by segment.
  case compressed
  /// As what has changed against a base that the receiver holds.
  case changes
}

/// Where a transfer stands, by what the receiver has confirmed.
public struct ProgressState: Hashable, Sendable {
  /// What is being done.
  public enum Phase: String, Hashable, Sendable, CaseIterable {
    /// The link is being made.
    case connect
    /// Limits are exchanged; the receiver looks for what it has and erases.
    case prepare
    /// Octets move.
    case transfer
    /// The receiver reads back and compares.
    case verify
    /// All is verified.
    case done
  }

  /// Time spent in each phase, pauses included. What passes between the last confirmation on a link and the notice of its loss belongs to
  /// `connect`.
  public struct Elapsed: Hashable, Sendable {
    public var connect: Duration = .zero
    public var prepare: Duration = .zero
    public var transfer: Duration = .zero
    public var verify: Duration = .zero

    public init() {}

    /// Time spent in all phases.
    public var total: Duration { connect + prepare + transfer + verify }

    mutating func add(_ time: Duration, to phase: Phase) {
      switch phase {
      case .connect: connect += time
      case .prepare: prepare += time
      case .transfer: transfer += time
      case .verify: verify += time
      case .done: break
      }
    }
  }

  public var phase: Phase = .connect
  public var isPaused = false
  /// Name of the object under way.
  public var objectName = ""
  /// Place of the object in the transfer, from 0.
  public var objectIndex = 0
  public var objectCount = 1
  /// Size of the object in octets.
  public var totalBytes: UInt64 = 0
  /// Octets of the object that would survive a power cut at the receiver. Never falls from the receiver's ACCEPT to the end of the session.
  public var confirmedBytes: UInt64 = 0
  /// Octets that have arrived at the receiver, whether durable or not.
  public var receivedBytes: UInt64 = 0
  /// How the object under way travels; told by ACCEPT.
  public var coding = StreamCoding.uncoded
  /// Why it travels with less coding than it was meant to; nil where it does not.
  public var codingShortfall: CodingShortfall?
  /// Octets of the data stream that this run has handed to carriers, over all objects and links: coded where the stream is, with lengths,
  /// check values, and what was sent again. The only figure here that counts no octets of objects.
  public var streamBytes: UInt64 = 0
  /// Octets that the receiver has read back for the final comparison.
  public var verifiedBytes: UInt64 = 0
  /// Offset at which the receiver went on; 0 for a fresh object.
  public var resumedFrom: UInt64 = 0
  /// Octets per second over the last seconds of transfer time, as they arrived at the receiver.
  public var bytesPerSecond: Double?
  /// Octets per second over all transfer time: pauses, erasing, setup, what was there before, and the silence before a lost link is noticed
  /// are excluded.
  public var averageBytesPerSecond: Double?
  /// Time until all octets have arrived, at the present rate.
  public var timeRemaining: Duration?
  public var elapsed = Elapsed()
  /// How long the receiver has said that it is busy, where it has.
  public var busySeconds: Int?
  /// Times that the stream was started again because data was missing or wrong.
  public var losses = 0

  public init() {}

  /// Confirmed part of the object, 0...1; 1 only once everything is verified.
  public var fraction: Double {
    if phase == .done { return 1 }
    guard totalBytes > 0 else { return 0 }
    return min(Double(confirmedBytes) / Double(totalBytes), 0.999)
  }
}
