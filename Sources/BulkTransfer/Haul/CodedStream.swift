internal import Foundation

/// A coded stream of one epoch at the sender: the segment that is being sent, and which octets of the stream stand for which of the object.
///
/// A position in the object advances with each body octet of a segment, and to the segment's end with the last of them.
struct CodedStream: Sendable {
  /// Octets before the body of a segment.
  static let lengthCount = 3

  private struct Segment {
    var start: UInt64
    var end: UInt64
    /// Octets of the body.
    var body: Int
    /// Body octets of the stream before it.
    var before: UInt64
  }

  let layout: SegmentLayout
  private let epoch: Epoch
  /// The start of the segment to be begun next.
  private(set) var next: UInt64
  private var current: Segment
  /// Length, body and check of the current segment.
  private var octets = Data()
  private var taken = 0
  /// Segments that are not confirmed as a whole, oldest first.
  private var unconfirmed: [Segment] = []
  /// Body octets that were taken.
  private(set) var carried: UInt64 = 0
  /// Body octets of those that the receiver has confirmed.
  private(set) var confirmed: UInt64 = 0

  init(layout: SegmentLayout, epoch: Epoch, offset: UInt64) {
    self.layout = layout
    self.epoch = epoch
    next = min(offset, layout.objectSize)
    current = Segment(start: next, end: next, body: 0, before: 0)
  }

  /// Whether a segment has to be begun before anything can be taken.
  var needsSegment: Bool { taken == octets.count }

  var isAtEnd: Bool { needsSegment && next == layout.objectSize }

  /// Where the stream stands in the object.
  var position: UInt64 {
    let body = min(max(taken - Self.lengthCount, 0), current.body)
    return body == current.body && !octets.isEmpty ? current.end : current.start + UInt64(body)
  }

  /// Begins the segment at ``next`` with its octets and, where it is coded, its frame.
  mutating func begin(_ segment: Data, frame: Data?) {
    var length = MessageWriter()
    let body = frame ?? segment
    let coded = frame == nil ? 0 : body.count
    for shift in [0, 8, 16] { length.u8(UInt8(truncatingIfNeeded: coded >> shift)) }
    octets = length.data
    octets.reserveCapacity(Self.lengthCount + body.count + SegmentLayout.checkCount)
    octets.append(body)
    var check = SegmentCheck(epoch: epoch, start: next)
    check.update(octets)
    octets.append(contentsOf: check.octets)
    taken = 0
    current = Segment(
      start: next, end: next + UInt64(segment.count), body: body.count, before: carried)
    unconfirmed.append(current)
    next = current.end
  }

  /// Takes octets of the current segment.
  ///
  /// - Parameters:
  ///   - limit: octets that the packet can still take.
  ///   - allowance: body octets that the window permits; length and check do not count.
  mutating func take(limit: Int, allowance: Int) -> (octets: Data, body: Int) {
    let bodyEnd = Self.lengthCount + current.body
    var end = min(octets.count, taken + min(max(limit, 0), octets.count))
    let bodyTaken = max(taken, Self.lengthCount)
    if bodyTaken < bodyEnd { end = min(end, bodyTaken + min(max(allowance, 0), octets.count)) }
    let body = max(0, min(end, bodyEnd) - min(bodyTaken, bodyEnd))
    let first = octets.startIndex + taken
    let slice = octets[first..<(octets.startIndex + max(end, taken))]
    taken = max(end, taken)
    carried += UInt64(body)
    return (slice, body)
  }

  /// Notes how far the receiver has got in the object; returns the body octets that this confirms anew.
  mutating func confirm(_ received: UInt64) -> Int {
    if let first = unconfirmed.firstIndex(where: { $0.end > received }) {
      unconfirmed.removeFirst(first)
    } else {
      unconfirmed.removeAll()
    }
    var reached = carried
    if let oldest = unconfirmed.first {
      let inside = received > oldest.start ? min(received - oldest.start, UInt64(oldest.body)) : 0
      reached = oldest.before + inside
    }
    guard reached > confirmed else { return 0 }
    defer { confirmed = reached }
    return Int(clamping: reached - confirmed)
  }
}
