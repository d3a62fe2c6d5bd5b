/// One direction of a link: frames that wait, and the packet that is on its way (Core Vol 6 Part B 4.5.9).
///
/// A packet is sent until it is acknowledged; the receiver takes the first valid copy and drops the others by their sequence number.
struct Transmitter {
  private(set) var budget: FrameBudget
  /// Frames that the peer acknowledged since this was last set to zero.
  var completedFrames = 0
  /// When this side last received a valid packet of the other, in nanoseconds.
  var lastHeard: Int64
  /// Whether the link must fall silent inside the next frame.
  var isCutArmed = false
  /// Where the time of this direction goes.
  var meter: UsageMeter

  private var frames = RingBuffer<[UInt8]>()
  private var headCount = 0
  /// Octets of the first frame that the peer has acknowledged.
  private var offset = 0
  /// Payload of the packet on its way.
  private var outstanding = 0
  private var awaitsAcknowledgement = false
  /// Whether the peer has the packet on its way, which this side does not know yet.
  private var isReceived = false

  init(parameters: LinkParameters, now: Int64) {
    budget = FrameBudget(parameters)
    lastHeard = now
    meter = UsageMeter(now: now)
  }

  /// Whether a frame waits or is not yet acknowledged.
  var hasFrames: Bool { !frames.isEmpty }

  /// Whether there is data behind the packet on its way.
  var hasMore: Bool {
    awaitsAcknowledgement && outstanding > 0 && offset + outstanding == headCount
      ? frames.count > 1 : !frames.isEmpty
  }

  /// Whether the next packet is a copy of the one before.
  var mustRepeat: Bool { awaitsAcknowledgement }

  /// Whether an acknowledgement that reaches this side now has something to acknowledge.
  var canBeAcknowledged: Bool { awaitsAcknowledgement && isReceived }

  mutating func append(_ frame: [UInt8], now: Int64) {
    meter.queued(now: now)
    if frames.isEmpty { headCount = frame.count }
    frames.append(frame)
    budget.add(octets: frame.count)
  }

  mutating func removeAll() {
    frames.removeAll()
    (headCount, offset) = (0, 0)
    awaitsAcknowledgement = false
  }

  mutating func update(_ parameters: LinkParameters) {
    var budget = FrameBudget(parameters)
    frames.forEach { budget.add(octets: $0.count) }
    self.budget = budget
  }

  /// Forgets an empty packet on its way: events that were left out have acknowledged it.
  mutating func settleEmptyPacket() {
    if outstanding == 0 { awaitsAcknowledgement = false }
  }

  /// Payload of the packet that would be sent now.
  func nextOctets(dataLength: Int) -> Int {
    awaitsAcknowledgement ? outstanding : min(dataLength, headCount - offset)
  }

  /// Payload of the packet that would be sent once the one on its way were acknowledged.
  func octetsAfterAcknowledgement(dataLength: Int) -> Int {
    guard canBeAcknowledged else { return nextOctets(dataLength: dataLength) }
    if offset + outstanding < headCount { return min(dataLength, headCount - offset - outstanding) }
    return min(dataLength, frames[1]?.count ?? 0)
  }

  /// Puts a packet on its way, a new one if the one before is acknowledged.
  mutating func send(octets: Int) {
    guard !awaitsAcknowledgement else {
      if outstanding > 0 { meter.sent(octets: outstanding, isRepetition: true) }
      return
    }
    outstanding = octets
    awaitsAcknowledgement = true
    isReceived = false
    if octets > 0 { meter.sent(octets: octets, isRepetition: false) }
  }

  /// What the receiver makes of a valid copy of the packet on its way.
  enum Reception {
    case nothingNew
    case frame([UInt8])
    case cut
  }

  /// The packet on its way arrives valid.
  mutating func receive() -> Reception {
    guard !isReceived else { return .nothingNew }
    let completesFrame = outstanding > 0 && offset + outstanding == headCount
    if isCutArmed, outstanding > 0 {
      // A frame of one packet has no inside: it is lost as a whole.
      isReceived = !completesFrame
      return .cut
    }
    isReceived = true
    guard completesFrame, let frame = frames.first else { return .nothingNew }
    return .frame(frame)
  }

  /// The receiver's acknowledgement arrives.
  mutating func acknowledge() {
    awaitsAcknowledgement = false
    guard outstanding > 0 else { return }
    offset += outstanding
    outstanding = 0
    guard offset >= headCount, frames.popFirst() != nil else { return }
    budget.remove(octets: headCount)
    headCount = frames.first?.count ?? 0
    offset = 0
    completedFrames += 1
  }
}
