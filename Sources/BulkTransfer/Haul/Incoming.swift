internal import Foundation

/// The object under way at the receiver: the segment being gathered, and how far storage has got.
struct Incoming: Sendable {
  enum Phase: Hashable, Sendable {
    /// The storage looks for the object. Can transition to: waitingForSync, finishing, complete, failed.
    case opening
    /// Nothing is taken until the SYNC of the epoch. Can transition to: streaming, failed.
    case waitingForSync
    /// Can transition to: waitingForSync (LOST), finishing, failed.
    case streaming
    /// All segments are good; the last ones are being stored. Can transition to: verifying, failed.
    case finishing
    /// The object is being read back. Can transition to: committing, failed.
    case verifying
    /// The object is being given its final name. Can transition to: complete, failed.
    case committing
    case complete
    case failed(HaulFailureCode, String)
  }

  enum Taken {
    case needsMore
    /// A segment whose check was right.
    case segment(Data, at: UInt64)
    /// A coded one.
    case coded(CodedSegment)
    case lost(HaulReply.Lost.Reason)
  }

  let number: UInt32
  let offer: HaulRequest.Offer
  let layout: SegmentLayout
  /// What the sender asks for and the receiver is made for; nil: nothing.
  let coding: CodingRequest?
  private let hasCoding: Bool
  /// The proof of the base, once storage has found it.
  var proof: [UInt8]?
  /// Whether anybody was told of the object.
  var isAnnounced = false
  /// Whether the stream is coded.
  private(set) var isCoded = false
  private let buffer: UInt64
  var phase = Phase.opening

  /// The end of the last segment whose check was right.
  private(set) var good: UInt64 = 0
  /// Octets that storage has taken.
  private(set) var written: UInt64 = 0
  private(set) var durable: UInt64 = 0
  private var epoch = Epoch(rawValue: 0)
  /// Where the stream of the epoch began.
  private(set) var epochStart: UInt64 = 0
  private var segment = Data()
  /// The check after the segment, as far as it has come, and how many octets of it have.
  private var check: UInt32 = 0
  private var checkCount = 0
  /// The length before the body of a coded stream's segment.
  private var length: [UInt8] = []
  /// Octets of the frame that is being gathered; 0 for a segment that travels as it is.
  private var frameCount = 0
  /// The right edge that the sender was told in this epoch.
  private var toldEdge: UInt64 = 0
  var receipts: ReceiptPolicy
  /// Whether the object was there already, whole.
  var isKnown = false
  /// The REWIND that led to this epoch; 0 for none.
  var rewindRequest: UInt8 = 0
  var lossReason = HaulReply.Lost.Reason.asked

  /// Requests that storage has not answered, and when it last answered one.
  var outstanding = 0
  var storageHeardAt: Duration = .zero
  var busyUntil: Duration = .zero
  /// Since when something written is not durable; nil while a sync is under way or nothing waits.
  private(set) var unsyncedSince: Duration?
  private(set) var isSyncing = false
  /// Since when the sender does not know what is durable.
  var unreportedSince: Duration?
  var readBack: UInt64 = 0
  var reportedAt: Duration = .zero

  init(
    number: UInt32, offer: HaulRequest.Offer, coding: CodingRequest?, configuration: ReceiverConfiguration
  ) {
    self.number = number
    self.offer = offer
    hasCoding = CodingExtension.value(in: offer.extensions) != nil
    let isTooMuch = (coding?.base?.power ?? 0) > (configuration.basePower ?? 0)
    self.coding = configuration.decodes && !isTooMuch ? coding : nil
    layout = SegmentLayout(objectSize: offer.size, power: offer.segmentPower)
    buffer = UInt64(configuration.buffer)
    receipts = ReceiptPolicy(
      interval: Int(clamping: offer.receiptInterval), buffer: configuration.buffer,
      age: configuration.receiptAge)
  }

  var identity: ReceivedObject {
    ReceivedObject(sha256: offer.sha256, size: offer.size, name: offer.name)
  }

  /// Octets in order, whether verified or not. The last one of a segment counts when the check after it was right: so the sender can
  /// tell a lost check value from a receiver that is at work.
  var received: UInt64 {
    let position = good + UInt64(segment.count)
    return !segment.isEmpty && position == layout.segmentEnd(after: good) ? position - 1 : position
  }

  /// Octets in memory: the segment being gathered, and what storage has not taken.
  var buffered: Int { Int(clamping: good - written) + segment.count }

  /// The right edge that the buffer allows.
  var edge: UInt64 { (written + buffer) / RightEdge.unit * RightEdge.unit }

  var isDraining: Bool { written < good }

  /// Storage has opened the object.
  mutating func opened(durable: UInt64, epoch: Epoch) {
    good = durable
    written = durable
    self.durable = durable
    isCoded = coding != nil && (coding?.base == nil || proof != nil)
    restart(epoch: epoch)
    if durable == layout.objectSize { phase = .finishing }
  }

  /// Starts an epoch after the last good segment.
  mutating func restart(epoch: Epoch) {
    self.epoch = epoch
    epochStart = good
    letGo()
    toldEdge = 0
    phase = .waitingForSync
  }

  /// Notes that the sender is told how far things are; returns the room to state.
  mutating func report(now: Duration) -> UInt16 {
    let room = RightEdge.room(received: received, edge: edge)
    toldEdge = max(toldEdge, RightEdge.offset(received: received, room: room))
    receipts.sent(received: received, edge: toldEdge, now: now)
    unreportedSince = nil
    reportedAt = now
    return room
  }

  /// Whether a receipt is due.
  func isReceiptDue(now: Duration) -> Bool {
    guard phase == .streaming || phase == .finishing else { return false }
    if isCoded, good < layout.objectSize {
      // The sender begins a segment where its end is within the edge that it knows.
      let end = layout.segmentEnd(after: good)
      if toldEdge < end, end <= edge { return true }
    }
    return receipts.isDue(
      received: received,
      edge: RightEdge.offset(received: received, room: RightEdge.room(received: received, edge: edge)),
      isDraining: isDraining, now: now)
  }

  /// Whether the sender named a base that is not here.
  var lacksBase: Bool { coding?.base != nil && proof == nil }

  /// What ACCEPT says of the coding.
  var acceptedCoding: HaulReply.Accept.Coding? {
    guard hasCoding else { return nil }
    return isCoded ? .coded(proof: coding?.base == nil ? nil : proof) : .uncoded
  }

  /// Takes octets of the stream from a place on, up to the end of a segment, and moves the place behind them.
  mutating func take(_ bytes: Data, from place: inout Int) -> Taken {
    while place < bytes.count {
      let end = layout.segmentEnd(after: good)
      let whole = Int(end - good)
      if isCoded, length.count < CodedStream.lengthCount {
        length.append(bytes[bytes.startIndex + place])
        place += 1
        guard length.count == CodedStream.lengthCount else { continue }
        frameCount = length.reversed().reduce(0) { $0 << 8 | Int($1) }
        // No memory is set aside before the segment is known to fit.
        guard end <= toldEdge else { return .lost(.overflow) }
        guard frameCount < whole else { return .lost(.checksum) }
        continue
      }
      let body = frameCount > 0 ? frameCount : whole
      if segment.count < body {
        let count = min(bytes.count - place, body - segment.count)
        guard isCoded || good + UInt64(segment.count + count) <= toldEdge else { return .lost(.overflow) }
        if segment.isEmpty { segment.reserveCapacity(body) }
        gather(bytes, from: place, count: count)
        place += count
        continue
      }
      check |= UInt32(bytes[bytes.startIndex + place]) << UInt32(8 * checkCount)
      checkCount += 1
      place += 1
      if checkCount == SegmentLayout.checkCount { return finishSegment(end: end) }
    }
    return .needsMore
  }

  private mutating func gather(_ bytes: Data, from place: Int, count: Int) {
    unsafe bytes.withUnsafeBytes { all in
      guard let start = all.baseAddress else { return }
      unsafe segment.append((start + place).assumingMemoryBound(to: UInt8.self), count: count)
    }
  }

  /// The segment is here with its check.
  private mutating func finishSegment(end: UInt64) -> Taken {
    let start = good
    var expected = SegmentCheck(epoch: epoch, start: start)
    if isCoded { expected.update(Data(length)) }
    expected.update(segment)
    guard expected.value == check else { return .lost(.checksum) }
    let (bytes, isFrame) = (segment, frameCount > 0)
    letGo()
    good = end
    if good == layout.objectSize { phase = .finishing }
    guard isFrame else { return .segment(bytes, at: start) }
    return .coded(
      CodedSegment(frame: bytes, offset: start, count: Int(end - start), basePower: coding?.base?.power))
  }

  /// Forgets the segment that is being gathered.
  private mutating func letGo() {
    segment = Data()
    (check, checkCount) = (0, 0)
    length = []
    frameCount = 0
  }

  /// The object has failed; what is in memory is let go.
  mutating func fail(_ code: HaulFailureCode, _ text: String) {
    letGo()
    written = good
    outstanding = 0
    unsyncedSince = nil
    unreportedSince = nil
    phase = .failed(code, text)
  }

  /// Whether the next move is the storage's.
  var isWorking: Bool {
    switch phase {
    case .opening, .finishing, .verifying, .committing: true
    case .waitingForSync, .streaming: outstanding > 0
    case .complete, .failed: false
    }
  }

  /// Whether data is taken, or will be after a SYNC.
  var takesData: Bool { phase == .streaming || phase == .waitingForSync }

  /// Since when storage owes an answer and has said nothing of it; nil if it owes none.
  var waitsForStorageSince: Duration? { outstanding > 0 ? max(storageHeardAt, busyUntil) : nil }

  // MARK: Durability

  mutating func wrote(through offset: UInt64, now: Duration) {
    written = max(written, min(offset, good))
    if written > durable, !isSyncing, unsyncedSince == nil { unsyncedSince = now }
  }

  /// The offset to make durable now, if it is time.
  mutating func takeSync(_ configuration: ReceiverConfiguration, now: Duration) -> UInt64? {
    guard !isSyncing, written > durable, let since = unsyncedSince else { return nil }
    let isLast = phase == .finishing && written == layout.objectSize
    guard isLast || written - durable >= configuration.syncBytes || now - since >= configuration.syncInterval
    else { return nil }
    isSyncing = true
    unsyncedSince = nil
    return written
  }

  mutating func synced(through offset: UInt64, now: Duration) {
    isSyncing = false
    if offset > durable {
      durable = min(offset, written)
      unreportedSince = unreportedSince ?? now
    }
    unsyncedSince = written > durable ? now : nil
  }
}
