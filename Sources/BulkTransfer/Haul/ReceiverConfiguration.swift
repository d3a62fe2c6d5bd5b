/// What a receiver states and how it works.
public struct ReceiverConfiguration: Hashable, Sendable {
  /// Sixteen octets that name the device.
  public var device: [UInt8]
  /// Octets of the stream that are held in memory, from 4096 on; rounded down to a multiple of 256.
  public var buffer: Int
  /// The largest segment as a power of two; lowered to what the buffer holds.
  public var largestSegmentPower: UInt8
  /// Whether compressed segments are taken (docs/protocol.md, section 11).
  public var decodes: Bool
  /// Octets of a base that are held while an object is received as what has changed against it, as a power of two, 10...27; nil: bases are
  /// not used.
  public var basePower: UInt8?
  /// Octets after which what was written is made durable.
  public var syncBytes: UInt64
  /// Time after which what was written is made durable.
  public var syncInterval: Duration
  /// Age of the last receipt from which on any progress is reported, also that of what is durable. Well below a third of the time that senders wait without a
  /// word (10 s), and so long that receipts stay below one percent of what a slow link carries.
  public var receiptAge: Duration
  /// Octets that are read back at a time for the final comparison.
  public var readBackStep: Int
  /// A silent medium is announced as busy this often.
  public var busyInterval: Duration
  /// A session ends after this time without a word from the sender.
  public var silenceLimit: Duration

  public init(
    device: [UInt8], buffer: Int = 262144, largestSegmentPower: UInt8 = 18, decodes: Bool = true,
    basePower: UInt8? = 20, syncBytes: UInt64 = 1 << 20, syncInterval: Duration = .milliseconds(250),
    receiptAge: Duration = .milliseconds(2500),
    readBackStep: Int = 1 << 18, busyInterval: Duration = .seconds(1), silenceLimit: Duration = .seconds(30)
  ) {
    self.device = device
    self.buffer = buffer
    self.largestSegmentPower = largestSegmentPower
    self.decodes = decodes
    self.basePower = basePower
    self.syncBytes = syncBytes
    self.syncInterval = syncInterval
    self.receiptAge = receiptAge
    self.readBackStep = readBackStep
    self.busyInterval = busyInterval
    self.silenceLimit = silenceLimit
  }

  /// The values with everything brought into its range.
  var effective: Self {
    var values = self
    let unit = Int(RightEdge.unit)
    // The right edge is stated in 16 bits of units; a larger buffer could not be used.
    values.buffer = min(max(buffer, 4096), unit * 0xFFFF) / unit * unit
    let bufferPower = UInt8(Int.bitWidth - 1 - values.buffer.leadingZeroBitCount)
    values.largestSegmentPower = min(
      max(largestSegmentPower, SegmentLayout.powers.lowerBound), SegmentLayout.powers.upperBound, bufferPower)
    if let power = basePower {
      values.basePower = min(max(power, BaseWindow.powers.lowerBound), BaseWindow.powers.upperBound)
    }
    values.readBackStep = max(readBackStep, 1)
    values.busyInterval = max(busyInterval, .milliseconds(100))
    return values
  }
}

extension ReceiverConfiguration {
  /// What WELCOME says of coded objects.
  var coding: CodingSupport? { decodes ? CodingSupport(basePower: basePower) : nil }
}
