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
  private var check: SegmentCheck
  private var checkOctets: [UInt8] = []
  private var block = StagedBlock()
  /// Whether the window has held back data since it was last asked.
  private var windowWasUsed = false
  /// Whether ``packet(limit:session:window:now:read:)`` had nothing where the object has more.
  private(set) var isBlocked = false
  /// What has blocked it; nil where nothing was tried yet.
  private(set) var bound: SendWindow.Bound?
  /// The farthest octet that was sent in any epoch.
  private(set) var farthest: UInt64 = 0
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
  var sent: UInt64 { chunker.position }

  var inFlight: UInt64 { sent > received ? sent - received : 0 }

  /// Whether the stream of this epoch has ended, its last check value included.
  var isWhollySent: Bool { epoch != nil && chunker.isAtEnd }

  /// Whether the receiver has everything.
  var hasArrived: Bool { epoch != nil && received == object.size }

  /// Starts the stream of an epoch.
  mutating func restart(epoch: Epoch, offset: UInt64, room: UInt16, power: UInt8, now: Duration) {
    let layout = SegmentLayout(objectSize: object.size, power: power)
    self.epoch = epoch
    received = offset
    rightEdge = RightEdge.offset(received: offset, room: room)
    chunker = Chunker(layout: layout, offset: offset)
    check = SegmentCheck(epoch: epoch, start: offset)
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

  /// Takes a receipt of this epoch; returns the octets that it confirms anew, and the round trip of one of them.
  mutating func confirm(received: UInt64, edge: UInt64, now: Duration) -> (octets: Int, roundTrip: Duration?)
  {
    // The edge never moves back within an epoch; a smaller one is an older message.
    rightEdge = max(rightEdge, edge)
    guard received > self.received else { return (0, nil) }
    let octets = Int(clamping: received - self.received)
    self.received = received
    waitsSince = now
    guard let begun = probe, received >= begun.offset else { return (octets, nil) }
    probe = nil
    return (octets, now - begun.at)
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
    limit: Int, session: UInt32, window: SendWindow, now: Duration, read: ObjectReader
  ) throws(TransferError) -> Record? {
    guard let epoch, limit >= SyncPacket.byteCount, !chunker.isAtEnd else { return nil }
    if needsSync {
      needsSync = false
      waitsSince = now
      return Record(
        kind: .sync, body: SyncPacket(session: session, epoch: epoch, offset: chunker.position).encoded)
    }
    let (allowance, bound) = window.allowance(sent: sent, received: received, rightEdge: rightEdge)
    if bound == .window, inFlight > 0, allowance < worthwhile(limit) {
      // Receipts of what is in flight will open the window: no need for a short packet.
      windowWasUsed = true
      isBlocked = true
      self.bound = bound
      return nil
    }
    let start = sent
    let wasIdle = inFlight == 0
    let bytes = try fill(limit: limit, allowance: allowance, read: read)
    guard !bytes.isEmpty else {
      isBlocked = true
      self.bound = bound
      return nil
    }
    isBlocked = false
    self.bound = nil
    if wasIdle { waitsSince = now }
    farthest = max(farthest, sent)
    if probe == nil, sent > start { probe = (sent, now) }
    return Record(kind: .stream, body: bytes)
  }

  /// The smallest packet that is worth sending where waiting would make it longer.
  private func worthwhile(_ limit: Int) -> Int {
    Int(min(UInt64(min(limit, 512)), object.size - sent))
  }

  private mutating func fill(
    limit: Int, allowance: Int, read: ObjectReader
  ) throws(TransferError) -> Data {
    var packet = Data()
    var left = allowance
    while packet.count < limit {
      var pieceLimit = limit - packet.count
      if chunker.checkLeft == 0, sent < object.size, left > 0 {
        try block.load(sent, of: object, index: index, read: read)
        pieceLimit = Int(min(UInt64(pieceLimit), block.end - sent))
      }
      guard let piece = chunker.next(limit: pieceLimit, allowance: left) else { break }
      switch piece {
      case .object(let range):
        let slice = block.slice(range)
        check.update(slice)
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

  private mutating func finishSegment() {
    guard let epoch else { return }
    checkOctets = check.octets
    check = SegmentCheck(epoch: epoch, start: chunker.position)
  }
}
