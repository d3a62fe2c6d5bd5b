/// What a receiver states and how it works.
public struct ReceiverConfiguration: Hashable, Sendable {
  /// Sixteen octets that name the device.
  public var device: [UInt8]
  /// Octets of the stream that are held in memory, from 4096 on; rounded down to a multiple of 256.
  public var buffer: Int
  /// The largest segment as a power of two; lowered to what the buffer holds.
  public var largestSegmentPower: UInt8
  /// Octets after which what was written is made durable.
  public var syncBytes: UInt64
  /// Time after which what was written is made durable.
  public var syncInterval: Duration
  /// Age of the last receipt from which on any progress is reported.
  public var receiptAge: Duration
  /// Octets that are read back at a time for the final comparison.
  public var readBackStep: Int
  /// A silent medium is announced as busy this often.
  public var busyInterval: Duration
  /// A session ends after this time without a word from the sender.
  public var silenceLimit: Duration

  public init(
    device: [UInt8], buffer: Int = 262144, largestSegmentPower: UInt8 = 18, syncBytes: UInt64 = 1 << 20,
    syncInterval: Duration = .milliseconds(250), receiptAge: Duration = .milliseconds(750),
    readBackStep: Int = 1 << 18, busyInterval: Duration = .seconds(1), silenceLimit: Duration = .seconds(30)
  ) {
    self.device = device
    self.buffer = buffer
    self.largestSegmentPower = largestSegmentPower
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
    values.readBackStep = max(readBackStep, 1)
    values.busyInterval = max(busyInterval, .milliseconds(100))
    return values
  }
}
