/// One of the two ends of a link.
enum LinkSide: Hashable, Sendable {
  case central
  case peripheral

  var other: LinkSide { self == .central ? .peripheral : .central }
}

/// Why a link has ended.
enum LinkEnd: Hashable, Sendable {
  /// Nothing valid was heard within the supervision timeout.
  case supervisionTimeout
  /// One side's host asked for the end.
  case terminated(by: LinkSide)
}

/// What a link tells its two hosts; instants are in the time that was passed in.
enum LinkOutput: Hashable, Sendable {
  /// A whole L2CAP frame has arrived: once, and in the order in which its side sent them.
  case delivered(to: LinkSide, frame: [UInt8], at: Duration)
  /// The peer has acknowledged this many frames of a side, oldest first: there may be room again.
  case completed(from: LinkSide, frames: Int, at: Duration)
  /// The end, for both sides; the last output. Frames that were not completed may or may not have been delivered.
  case ended(LinkEnd, at: Duration)
}
