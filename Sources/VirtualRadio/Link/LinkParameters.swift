/// What a link is like: how fast, how long its packets, how often its events, how noisy.
///
/// In words, for command lines: comma-separated `key=value`, such as `phy=2M,mtu=247,dle=251,interval=30,per=0.01`. See ``init(parsing:)``.
public struct LinkParameters: Hashable, Sendable {
  /// Physical layer, the same in both directions.
  public var phy: PHY
  /// Largest payload of a data PDU in octets, 27...251 (Core Vol 6 Part B 4.5.10).
  public var dataLength: Int
  /// ATT MTU that the link ends up with, 23...517.
  public var attMTU: Int
  /// Time between two connection events: 7.5 ms...4 s in steps of 1.25 ms.
  public var connectionInterval: Duration
  /// Packet pairs in one connection event at most; nil: as many as fit.
  public var packetsPerEvent: Int?
  /// Whether the link is encrypted, which adds a MIC of 4 octets to each data PDU that is not empty.
  public var isEncrypted: Bool
  /// Probability that a packet is received with a wrong CRC, 0...0.99, in either direction.
  public var packetErrorRate: Double
  /// The link is lost when a side has heard nothing valid for this long: 100 ms...32 s, more than two intervals.
  public var supervisionTimeout: Duration
  /// Signal strength in dBm, -127...20.
  public var rssi: Int
  /// L2CAP frames that host and controller together hold in one direction; nil: two connection events' worth, and at least 8.
  public var queueDepth: Int?
  /// The link starts with ATT MTU 23 and switches to ``attMTU`` this long after it was made; nil: the exchange is the hosts' own.
  public var mtuExchangeDelay: Duration?

  /// Describes a link. `supervisionTimeout` nil: ``defaultSupervisionTimeout(interval:)``. Call ``validate()`` on values of unknown origin.
  public init(
    phy: PHY = .le2M, dataLength: Int = 251, attMTU: Int = 247,
    connectionInterval: Duration = .milliseconds(30),
    packetsPerEvent: Int? = nil, isEncrypted: Bool = false, packetErrorRate: Double = 0,
    supervisionTimeout: Duration? = nil, rssi: Int = -50, queueDepth: Int? = nil,
    mtuExchangeDelay: Duration? = nil
  ) {
    self.phy = phy
    self.dataLength = dataLength
    self.attMTU = attMTU
    self.connectionInterval = connectionInterval
    self.packetsPerEvent = packetsPerEvent
    self.isEncrypted = isEncrypted
    self.packetErrorRate = packetErrorRate
    self.supervisionTimeout =
      supervisionTimeout ?? Self.defaultSupervisionTimeout(interval: connectionInterval)
    self.rssi = rssi
    self.queueDepth = queueDepth
    self.mtuExchangeDelay = mtuExchangeDelay
  }

  /// 720 ms, or six connection intervals where those are longer, in whole steps of 10 ms.
  public static func defaultSupervisionTimeout(interval: Duration) -> Duration {
    let steps = (min(max(interval, .zero), .seconds(4)).inNanoseconds * 6 + 9_999_999) / 10_000_000
    return .milliseconds(10 * max(steps, 72))
  }

  /// What both ends of a link can do: the smaller lengths and the worse air of the two.
  ///
  /// Where only one choice can hold (PHY, interval, timeout), the receiver's is taken, as if it had asked for it.
  public func merged(with other: LinkParameters) -> LinkParameters {
    var merged = self
    merged.dataLength = min(dataLength, other.dataLength)
    merged.attMTU = min(attMTU, other.attMTU)
    merged.packetsPerEvent = [packetsPerEvent, other.packetsPerEvent].compactMap(\.self).min()
    merged.isEncrypted = isEncrypted || other.isEncrypted
    merged.packetErrorRate = max(packetErrorRate, other.packetErrorRate)
    merged.rssi = min(rssi, other.rssi)
    merged.queueDepth = [queueDepth, other.queueDepth].compactMap(\.self).min()
    merged.mtuExchangeDelay = [mtuExchangeDelay, other.mtuExchangeDelay].compactMap(\.self).max()
    return merged
  }
}
