/// The number of a (re)start of the data stream; given by the receiver, compared in serial arithmetic.
public struct Epoch: RawRepresentable, Hashable, Sendable {
  /// The number on the air.
  public var rawValue: UInt16

  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The epoch after this one.
  public var next: Epoch { Epoch(rawValue: rawValue &+ 1) }

  /// Whether this epoch came after `other`, as long as fewer than 32 768 lie between them.
  public func isNewer(than other: Epoch) -> Bool {
    Int16(bitPattern: rawValue &- other.rawValue) > 0
  }
}

/// Room as it is stated on the air: units of 256 octets, counted from `received` rounded down to such a unit.
///
/// Counted like this the right edge is always a multiple of 256. A receiver whose buffer ends at such a multiple states its edge exactly,
/// and the edge never moves back from rounding.
enum RightEdge {
  static let unit: UInt64 = 256

  /// The offset up to which the sender may send.
  static func offset(received: UInt64, room: UInt16) -> UInt64 {
    received / unit * unit + UInt64(room) * unit
  }

  /// The room that states an edge of `edge`, rounded down.
  static func room(received: UInt64, edge: UInt64) -> UInt16 {
    let base = received / unit
    let end = edge / unit
    return end > base ? UInt16(clamping: end - base) : 0
  }
}
