/// What a sender may choose. Every value shows in the traffic.
public struct HaulConfiguration: Hashable, Sendable {
  /// Size of the verified unit as a power of two, 12...20; lowered to what the receiver can buffer.
  public var segmentPower: UInt8
  /// The same for objects that are sent coded; nil: 16, and with a base the largest up to 18.
  public var codedSegmentPower: UInt8?
  /// Octets after which the receiver sends a receipt, at least 256.
  public var receiptInterval: Int
  /// Octets in flight at the start of a stream.
  public var initialWindow: Int
  /// Fewest octets in flight after losses; raised to twice the receipt interval, or receipts would stay away.
  public var minimumWindow: Int
  /// Most octets in flight.
  public var maximumWindow: Int
  /// The longest data packet in octets, at least 20; nil leaves it to the carrier's limit.
  public var packetLimit: Int?
  /// Time without any confirmation after which a session ends; it can be resumed then.
  public var idleLimit: Duration
  /// Time after which a request is repeated for the first time; doubles each time.
  public var requestRepeat: Duration
  /// LOST messages in a row that do not get beyond the offset of an earlier one, before the session ends.
  public var lostLimit: Int
  /// While a transfer is paused, a QUERY is sent this often.
  public var keepAlive: Duration
  /// Time that the receiver has to answer CANCEL or CLOSE.
  public var farewellLimit: Duration

  public init(
    segmentPower: UInt8 = 12, codedSegmentPower: UInt8? = nil, receiptInterval: Int = 4096,
    initialWindow: Int = 16384,
    minimumWindow: Int = 8192, maximumWindow: Int = 262144, packetLimit: Int? = nil,
    idleLimit: Duration = .seconds(10), requestRepeat: Duration = .seconds(1), lostLimit: Int = 20,
    keepAlive: Duration = .seconds(10), farewellLimit: Duration = .seconds(2)
  ) {
    self.segmentPower = segmentPower
    self.codedSegmentPower = codedSegmentPower
    self.receiptInterval = receiptInterval
    self.initialWindow = initialWindow
    self.minimumWindow = minimumWindow
    self.maximumWindow = maximumWindow
    self.packetLimit = packetLimit
    self.idleLimit = idleLimit
    self.requestRepeat = requestRepeat
    self.lostLimit = lostLimit
    self.keepAlive = keepAlive
    self.farewellLimit = farewellLimit
  }

  /// The same values, or an error that names the first one outside its range.
  public func checked() throws(TransferError) -> Self {
    func check(_ holds: Bool, _ name: String, _ value: String, _ range: String) throws(TransferError) {
      guard !holds else { return }
      throw TransferError(.invalidArgument, "\(name) is \(value)", advice: "choose \(range)")
    }
    for power in [segmentPower, codedSegmentPower ?? segmentPower] {
      try check(SegmentLayout.powers.contains(power), "the segment power", "\(power)", "12...20")
    }
    try check(
      (256...0xFFFF_FFFF).contains(receiptInterval), "the receipt interval", "\(receiptInterval)",
      "256 or more octets")
    try check(minimumWindow > 0, "the smallest window", "\(minimumWindow)", "1 or more octets")
    try check(
      maximumWindow >= minimumWindow, "the largest window", "\(maximumWindow)",
      "at least the smallest window, \(minimumWindow)")
    try check(
      maximumWindow >= 2 * receiptInterval, "the largest window", "\(maximumWindow)",
      "at least two receipt intervals, \(2 * receiptInterval)")
    try check(initialWindow > 0, "the initial window", "\(initialWindow)", "1 or more octets")
    try check(packetLimit ?? 20 >= 20, "the packet limit", "\(packetLimit ?? 0)", "20 or more octets")
    try check(idleLimit > .zero, "the idle limit", "\(idleLimit)", "a positive time")
    try check(requestRepeat > .zero, "the repeat time", "\(requestRepeat)", "a positive time")
    try check(lostLimit >= 0, "the limit of losses", "\(lostLimit)", "0 or more")
    try check(keepAlive > .zero, "the keep-alive time", "\(keepAlive)", "a positive time")
    return self
  }
}

extension HaulConfiguration {
  /// The segment size of coded objects as a power of two: larger ones save little more, and a lost octet costs one.
  static let plainCodedPower: UInt8 = 16
  /// With a base: one segment holds the images of most devices, and what each further one costs would show beside what it carries.
  static let baseCodedPower: UInt8 = 18
}

/// What moves the bytes of a session.
public enum CarrierKind: String, Hashable, Sendable, CaseIterable {
  /// GATT: writes without response for data.
  case gatt
  /// A credit-based L2CAP channel.
  case l2cap
}
