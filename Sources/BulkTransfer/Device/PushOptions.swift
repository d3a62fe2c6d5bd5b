/// How a push is done. Every value shows in what the radio carries.
public struct PushOptions: Hashable, Sendable {
  /// How the device is found and which carrier is used.
  public var link = DeviceLink.Configuration()
  /// Segment size, receipts, window, packet size and time limits of the session.
  public var haul = HaulConfiguration()
  /// Forget what the device has stored of the first object and begin at 0.
  public var restarts = false
  /// How far an earlier run had to lower the coding of an object: what it has recorded.
  public var coding: CodingStanding?
  /// The shortest time between two progress events of one phase.
  public var progressInterval: Duration = .milliseconds(100)
  /// The shortest time between two records of the journal.
  public var journalInterval: Duration = .seconds(2)

  /// Makes the defaults.
  public init() {}
}

/// One object of a push: what it is, and where its bytes are.
public struct PushObject: Sendable {
  /// Name, size, hash and segments.
  public var object: OutgoingObject
  /// The bytes.
  public var source: any ByteSource
  /// The bytes of the base that ``OutgoingObject/coding`` names, if it names one.
  public var base: (any ByteSource)?
  /// What codes its segments; pushes of the same objects share it. Nil: each push makes one.
  public var encoder: SegmentEncoder?

  /// Makes a pair of the two.
  public init(
    _ object: OutgoingObject, from source: any ByteSource, base: (any ByteSource)? = nil,
    encoder: SegmentEncoder? = nil
  ) {
    self.object = object
    self.source = source
    self.base = base
    self.encoder = encoder
  }
}

/// What a push tells while it runs.
public enum PushEvent: Hashable, Sendable {
  /// The device is being looked for.
  case searching(DeviceTarget)
  /// A link is being made; `attempt` counts from 1.
  case connecting(attempt: Int)
  /// A session begins on this carrier.
  case carrier(CarrierKind)
  /// The L2CAP channel was open and carried nothing, for this reason: the push goes on over GATT, on the same link.
  case channelAbandoned(String)
  /// The link is gone; it will be made again.
  case linkLost(String, confirmed: UInt64)
  /// The device has declined for now, mostly because it is busy, in these words; it is asked again after a while.
  case declined(String)
  /// The device takes an object, from an offset on; above 0 it goes on with what it has.
  case accepted(index: Int, name: String, durable: UInt64, size: UInt64)
  /// Where it stands.
  case progress(ProgressState)
  /// The device could not be recalled from memory or remembered; the push goes on without.
  case deviceNotRemembered(TransferError)
  /// The device has read an object back from its storage, and its SHA-256 is right.
  case verified(index: Int, name: String, SHA256Digest)
}

/// What a push has done.
public struct PushReport: Hashable, Sendable {
  /// The state at the end.
  public var progress: ProgressState
  /// The carrier of the last session.
  public var carrier: CarrierKind
  /// Sessions that were needed.
  public var sessions: Int
  /// Octets that were already at the device when the first session began.
  public var resumedFrom: UInt64
}
