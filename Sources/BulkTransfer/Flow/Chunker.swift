/// Walks the data stream of one epoch: object octets, and four check octets after each segment.
///
/// Knows positions and no bytes. The limit is an argument of each step and is never kept, because the limit of a link changes while
/// a transfer runs.
public struct Chunker: Hashable, Sendable {
  /// The next octets of the stream.
  public enum Piece: Hashable, Sendable {
    /// Octets of the object; a piece never goes beyond a segment's end.
    case object(Range<UInt64>)
    /// Octets of the check value of the segment that has just ended, counted from its first.
    case check(Range<Int>)
  }

  public let layout: SegmentLayout
  /// The next octet of the object.
  public private(set) var position: UInt64
  /// Check octets of the segment before `position` that have not been taken.
  public private(set) var checkLeft = 0

  /// Starts at `offset`, which may lie inside a segment.
  public init(layout: SegmentLayout, offset: UInt64) {
    self.layout = layout
    position = min(offset, layout.objectSize)
  }

  /// Whether the stream has ended, check value included.
  public var isAtEnd: Bool { position == layout.objectSize && checkLeft == 0 }

  /// Takes the next piece.
  ///
  /// - Parameters:
  ///   - limit: octets that the packet can still take.
  ///   - allowance: octets of the object that flow control permits; check octets do not count.
  /// - Returns: nil if nothing may be taken.
  public mutating func next(limit: Int, allowance: Int) -> Piece? {
    guard limit > 0 else { return nil }
    if checkLeft > 0 {
      let start = SegmentLayout.checkCount - checkLeft
      let count = min(checkLeft, limit)
      checkLeft -= count
      return .check(start..<(start + count))
    }
    guard position < layout.objectSize, allowance > 0 else { return nil }
    let segmentEnd = layout.segmentEnd(after: position)
    let end = min(segmentEnd, position + UInt64(min(limit, allowance)))
    defer {
      position = end
      if end == segmentEnd { checkLeft = SegmentLayout.checkCount }
    }
    return .object(position..<end)
  }
}
