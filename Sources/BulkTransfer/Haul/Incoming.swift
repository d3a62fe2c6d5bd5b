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
  private var check: [UInt8] = []
  /// The length before the body of a coded stream's segment.
  private var length: [UInt8] = []
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
    segment = Data()
    check = []
    length = []
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

  /// Takes octets of the stream, up to the end of a segment.
  mutating func take(_ bytes: inout Data) -> Taken {
    if isCoded { return takeCoded(&bytes) }
    while !bytes.isEmpty {
      let position = good + UInt64(segment.count)
      let end = layout.segmentEnd(after: good)
      if position < end {
        let count = Int(min(UInt64(bytes.count), end - position))
        guard position + UInt64(count) <= toldEdge else { return .lost(.overflow) }
        if segment.isEmpty { segment.reserveCapacity(Int(end - position)) }
        segment.append(bytes.prefix(count))
        bytes = bytes.dropFirst(count)
        continue
      }
      let piece = bytes.prefix(SegmentLayout.checkCount - check.count)
      check.append(contentsOf: piece)
      bytes = bytes.dropFirst(piece.count)
      guard check.count == SegmentLayout.checkCount else { continue }
      var expected = SegmentCheck(epoch: epoch, start: good)
      expected.update(segment)
      guard expected.octets == check else { return .lost(.checksum) }
      return finishSegment(end: end)
    }
    return .needsMore
  }

  private mutating func takeCoded(_ bytes: inout Data) -> Taken {
    while !bytes.isEmpty {
      let end = layout.segmentEnd(after: good)
      let count = Int(end - good)
      if length.count < CodedStream.lengthCount {
        let piece = bytes.prefix(CodedStream.lengthCount - length.count)
        length.append(contentsOf: piece)
        bytes = bytes.dropFirst(piece.count)
        // No memory is set aside before the segment is known to fit.
        if length.count == CodedStream.lengthCount {
          guard end <= toldEdge else { return .lost(.overflow) }
          guard frameCount < count else { return .lost(.checksum) }
        }
        continue
      }
      let body = frameCount == 0 ? count : frameCount
      if segment.count < body {
        let piece = bytes.prefix(body - segment.count)
        if segment.isEmpty { segment.reserveCapacity(body) }
        segment.append(piece)
        bytes = bytes.dropFirst(piece.count)
        continue
      }
      let piece = bytes.prefix(SegmentLayout.checkCount - check.count)
      check.append(contentsOf: piece)
      bytes = bytes.dropFirst(piece.count)
      guard check.count == SegmentLayout.checkCount else { continue }
      var expected = SegmentCheck(epoch: epoch, start: good)
      expected.update(Data(length))
      expected.update(segment)
      guard expected.octets == check else { return .lost(.checksum) }
      guard frameCount > 0 else { return finishSegment(end: end) }
      let coded = CodedSegment(frame: segment, offset: good, count: count, basePower: coding?.base?.power)
      _ = finishSegment(end: end)
      return .coded(coded)
    }
    return .needsMore
  }

  /// Octets of the frame that is being gathered; 0 for a segment that travels as it is.
  private var frameCount: Int { length.reversed().reduce(0) { $0 << 8 | Int($1) } }

  private mutating func finishSegment(end: UInt64) -> Taken {
    let start = good
    let bytes = segment
    segment = Data()
    check = []
    length = []
    good = end
    if good == layout.objectSize { phase = .finishing }
    return .segment(bytes, at: start)
  }

  /// The object has failed; what is in memory is let go.
  mutating func fail(_ code: HaulFailureCode, _ text: String) {
    segment = Data()
    check = []
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
