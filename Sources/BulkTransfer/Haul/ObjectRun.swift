internal import Foundation

/// The object under way at the sender: where its stream stands, and what the receiver has said about it.
struct ObjectRun: Sendable {
  let object: OutgoingObject
  let index: Int
  /// Nil until the object was accepted.
  private(set) var epoch: Epoch?
  private(set) var received: UInt64 = 0
  private(set) var durable: UInt64 = 0
  private(set) var rightEdge: UInt64 = 0
  private(set) var needsSync = false
  private(set) var chunker: Chunker
  /// How the stream is coded since the last ACCEPT; nil: it is not.
  private(set) var coding: CodingRequest?
  private var coded: CodedStream?
  private var check: SegmentCheck
  /// How far the check has got: it is told of whole segments or blocks, and not of each packet.
  private var checked: UInt64 = 0
  private var checkOctets: [UInt8] = []
  private var block = StagedBlock()
  /// Whether the window has held back data since it was last asked.
  private var windowWasUsed = false
  /// Whether ``packet(limit:session:window:now:read:encode:)`` had nothing where the object has more.
  private(set) var isBlocked = false
  /// What has blocked it; nil where nothing was tried yet.
  private(set) var bound: SendWindow.Bound?
  /// The farthest octet that was sent in any epoch.
  private(set) var farthest: UInt64 = 0
  /// Where the stream began after ACCEPT, and how far the receiver has got in any epoch since.
  private var streamStart: UInt64?
  private var reached: UInt64 = 0
  /// Since when nothing was heard while something is awaited.
  var waitsSince: Duration = .zero
  /// Losses in a row that did not get beyond an earlier one.
  private(set) var losses = 0
  private(set) var lastLoss: HaulReply.Lost.Reason?
  private var farthestLoss: UInt64?
  private var probe: (offset: UInt64, at: Duration)?

  init(_ object: OutgoingObject, index: Int) {
    self.object = object
    self.index = index
    chunker = Chunker(layout: SegmentLayout(objectSize: object.size, power: 12), offset: 0)
    check = SegmentCheck(epoch: Epoch(rawValue: 0), start: 0)
  }

  /// Octets of the object sent in this epoch, counted from its start.
  var sent: UInt64 { coded?.position ?? chunker.position }

  /// Octets of the stream's bodies, which are the object's where it is not coded, that are sent and not confirmed as received.
  var inFlight: UInt64 {
    if let coded { return coded.carried - coded.confirmed }
    return sent > received ? sent - received : 0
  }

  private var isAtEnd: Bool { coded?.isAtEnd ?? chunker.isAtEnd }

  var streamCoding: StreamCoding {
    guard let coding else { return .uncoded }
    return coding.base == nil ? .compressed : .changes
  }

  /// Whether the link has carried as much as a small segment takes, and the receiver has none whole.
  var endedWithinSegment: Bool {
    guard let start = streamStart, durable <= start else { return false }
    let small = UInt64(1) << UInt64(SegmentLayout.powers.lowerBound)
    return reached >= start + small && reached < chunker.layout.segmentEnd(after: start)
  }

  /// Notes what ACCEPT has said about the coding.
  mutating func accepted(_ coding: CodingRequest?) { self.coding = coding }

  /// Whether the stream of this epoch has ended, its last check value included.
  var isWhollySent: Bool { epoch != nil && isAtEnd }

  /// Whether the receiver has everything.
  var hasArrived: Bool { epoch != nil && received == object.size }

  /// Starts the stream of an epoch.
  mutating func restart(epoch: Epoch, offset: UInt64, room: UInt16, power: UInt8, now: Duration) {
    let layout = SegmentLayout(objectSize: object.size, power: power)
    self.epoch = epoch
    received = offset
    streamStart = streamStart ?? offset
    reached = max(reached, offset)
    rightEdge = RightEdge.offset(received: offset, room: room)
    chunker = Chunker(layout: layout, offset: offset)
    coded = coding.map { _ in CodedStream(layout: layout, epoch: epoch, offset: offset) }
    check = SegmentCheck(epoch: epoch, start: offset)
    checked = offset
    checkOctets = []
    needsSync = offset < object.size
    windowWasUsed = false
    isBlocked = true
    bound = nil
    waitsSince = now
    probe = nil
  }

  mutating func raiseDurable(_ offset: UInt64) { durable = max(durable, offset) }

  /// Notes a LOST; returns whether it got beyond all earlier ones.
  mutating func lost(at offset: UInt64, reason: HaulReply.Lost.Reason) {
    lastLoss = reason
    if let farthestLoss, offset <= farthestLoss {
      losses += 1
    } else {
      farthestLoss = offset
      losses = 1
    }
  }

  /// Takes a receipt of this epoch; returns the octets that it confirms anew, those of the object and those of the stream's bodies, and the
  /// round trip of one of them.
  mutating func confirm(
    received: UInt64, edge: UInt64, now: Duration
  ) -> (octets: Int, carried: Int, roundTrip: Duration?) {
    // The edge never moves back within an epoch; a smaller one is an older message.
    rightEdge = max(rightEdge, edge)
    guard received > self.received else { return (0, 0, nil) }
    let octets = Int(clamping: received - self.received)
    let carried = coded?.confirm(received) ?? octets
    self.received = received
    reached = max(reached, received)
    waitsSince = now
    guard let begun = probe, received >= begun.offset else { return (octets, carried, nil) }
    probe = nil
    return (octets, carried, now - begun.at)
  }

  /// Whether the window has held back data since the last call.
  mutating func takeWindowWasUsed() -> Bool {
    defer { windowWasUsed = false }
    return windowWasUsed
  }

  /// Forgets the staged octets.
  mutating func release() { block = StagedBlock() }

  /// Takes the next packet; nil if flow control or the end of the stream forbids one.
  mutating func packet(
    limit: Int, session: UInt32, window: SendWindow, now: Duration, read: ObjectReader,
    encode: SegmentEncoding?
  ) throws(TransferError) -> Record? {
    guard let epoch, limit >= SyncPacket.byteCount, !isAtEnd else { return nil }
    if needsSync {
      needsSync = false
      waitsSince = now
      return Record(
        kind: .sync, body: SyncPacket(session: session, epoch: epoch, offset: sent).encoded)
    }
    let (allowance, bound) = allowance(window)
    if bound == .window, inFlight > 0, allowance < worthwhile(limit, window) {
      // Receipts of what is in flight will open the window: no need for a short packet.
      windowWasUsed = true
      isBlocked = true
      self.bound = bound
      return nil
    }
    let start = sent
    let wasIdle = inFlight == 0
    let bytes =
      coded == nil
      ? try fill(limit: limit, allowance: allowance, read: read)
      : try fillCoded(limit: limit, allowance: allowance, read: read, encode: encode)
    guard !bytes.isEmpty else {
      isBlocked = true
      self.bound = waitsForRoom ? .rightEdge : bound
      return nil
    }
    isBlocked = false
    self.bound = nil
    if wasIdle { waitsSince = now }
    farthest = max(farthest, sent)
    if probe == nil, sent > start { probe = (sent, now) }
    return Record(kind: .stream, body: bytes)
  }

  /// Body octets that may be sent now. The right edge of a coded stream is looked at where a segment begins.
  private func allowance(_ window: SendWindow) -> (octets: Int, bound: SendWindow.Bound) {
    if let coded {
      return window.allowance(sent: coded.carried, received: coded.confirmed, rightEdge: .max)
    }
    return window.allowance(sent: sent, received: received, rightEdge: rightEdge)
  }

  /// Whether a coded stream stands before a segment for which the receiver has no room yet.
  private var waitsForRoom: Bool {
    guard let coded, coded.needsSegment, coded.next < object.size else { return false }
    return chunker.layout.segmentEnd(after: coded.next) > rightEdge
  }

  /// The smallest packet that is worth sending where waiting would make it longer.
  ///
  /// At most half of the window: receipts may leave a receipt interval open, and the last octet of a segment counts only when its check
  /// value has arrived, which would wait here.
  private func worthwhile(_ limit: Int, _ window: SendWindow) -> Int {
    Int(min(UInt64(min(limit, 512, max(window.size / 2, 1))), object.size - sent))
  }

  private mutating func fill(
    limit: Int, allowance: Int, read: ObjectReader
  ) throws(TransferError) -> Data {
    var packet = Data()
    var left = allowance
    while packet.count < limit {
      var pieceLimit = limit - packet.count
      if chunker.checkLeft == 0, sent < object.size, left > 0 {
        if sent >= block.end { checkSent() }
        try block.load(sent, of: object, index: index, read: read)
        pieceLimit = Int(min(UInt64(pieceLimit), block.end - sent))
      }
      guard let piece = chunker.next(limit: pieceLimit, allowance: left) else { break }
      switch piece {
      case .object(let range):
        let slice = block.slice(range)
        left -= slice.count
        if range.upperBound == chunker.layout.segmentEnd(after: range.lowerBound) { finishSegment() }
        // The usual packet lies within a segment: one copy into the buffer that goes to the carrier.
        if slice.count == limit { return slice.subdata(in: slice.startIndex..<slice.endIndex) }
        if packet.isEmpty { packet.reserveCapacity(limit) }
        packet.append(slice)
      case .check(let range):
        packet.append(contentsOf: checkOctets[range])
      }
    }
    return packet
  }

  private mutating func fillCoded(
    limit: Int, allowance: Int, read: ObjectReader, encode: SegmentEncoding?
  ) throws(TransferError) -> Data {
    var packet = Data()
    var left = allowance
    // A packet may be the end of one segment and the beginning of the next. It does not wait for more than one to be coded.
    var mayBegin = true
    while packet.count < limit {
      if coded?.needsSegment == true {
        guard mayBegin, left > 0, try beginSegment(read, encode) else { break }
        mayBegin = false
      }
      guard let piece = coded?.take(limit: limit - packet.count, allowance: left), !piece.octets.isEmpty
      else { break }
      left -= piece.body
      if packet.isEmpty { packet.reserveCapacity(limit) }
      packet.append(piece.octets)
    }
    return packet
  }

  /// Codes the next segment; false where the object or the receiver's room ends before it does.
  private mutating func beginSegment(
    _ read: ObjectReader, _ encode: SegmentEncoding?
  ) throws(TransferError) -> Bool {
    guard let start = coded?.next, start < object.size else { return false }
    let end = chunker.layout.segmentEnd(after: start)
    guard end <= rightEdge else { return false }
    var segment = Data()
    segment.reserveCapacity(Int(end - start))
    while start + UInt64(segment.count) < end {
      let place = start + UInt64(segment.count)
      try block.load(place, of: object, index: index, read: read)
      segment.append(block.slice(place..<min(end, block.end)))
    }
    let base = coding?.base.map {
      BaseWindow.range(of: start..<end, baseSize: $0.identity.size, power: $0.power)
    }
    // What cannot be coded travels as it is: a base that cannot be read any more, or too little memory.
    let frame = try? encode?(index, segment, base)
    // Whatever codes: a frame that is not shorter would not be understood.
    coded?.begin(segment, frame: frame.flatMap { $0.isEmpty || $0.count >= segment.count ? nil : $0 })
    return true
  }

  /// Passes what was sent of the block to the check.
  private mutating func checkSent() {
    guard checked < sent else { return }
    check.update(block.slice(checked..<sent))
    checked = sent
  }

  private mutating func finishSegment() {
    guard let epoch else { return }
    checkSent()
    checkOctets = check.octets
    check = SegmentCheck(epoch: epoch, start: chunker.position)
  }
}
