internal import Foundation
internal import Radio

/// One end of an LE credit-based channel as a stream of bytes, without its socket (Core Vol 3 Part A 3.4.3). Sans-I/O.
///
/// The kernel keeps the credits and moves SDUs. Here bytes are cut into SDUs and joined again, and here it is decided what is told when. The
/// owner of the socket asks ``nextLength``, sends so much of ``nextSDU``, and says how that went; it receives only while
/// ``canReceive``, so that the kernel gives the peer no credits for what nobody reads.
struct SDUStream {
  /// Sizes in octets.
  struct Limits: Hashable, Sendable {
    /// The longest SDU that the peer takes (BT_SNDMTU).
    var sendMTU: Int
    /// The longest SDU that the peer may send (BT_RCVMTU).
    var receiveMTU: Int
    /// The size of the buffer in each direction.
    var capacity = 64 * 1024
  }

  enum Phase: Hashable {
    /// Can transition to: draining, ended.
    case open
    /// Closed by this side while written bytes are on their way. Can transition to: disconnecting, ended.
    case draining
    /// All has gone, and the peer was asked to disconnect. Can transition to: ended.
    case disconnecting
    case ended
  }

  /// How a channel ended: nil in order, else why.
  struct End: Hashable {
    var reason: RadioError?
  }

  /// SDUs are no longer than this, whatever the peer takes: beyond, nothing is gained, and the kernel needs a buffer for each
  /// fragment of an SDU at once.
  static let longestSDU = 16 * 1024
  /// How long SDUs are before the pace of the link is known.
  static let firstSDU = 2 * 1024
  /// SDUs are not made shorter than this only because the link is slow.
  static let shortestSDU = 256
  /// An SDU should take so long. Longer ones cost less, but the peer gets an SDU's bytes only once the last has come, and on a slow link that
  /// may be later than it has patience.
  ///
  /// Twice as long an SDU takes twice the time at most, so one that takes less than the half may become longer. A part of the time is none of the
  /// link's, but goes by until a busy host comes round to the next SDU: short ones are the slower for it.
  static let pace = Duration.milliseconds(125)...Duration.milliseconds(250)
  /// The MTU that everybody has at least (Core Vol 3 Part A 4.22).
  static let minimumMTU = 23
  /// So often may a socket that calls itself writable refuse an SDU before it is taken at its word.
  static let mostRefusals = 32

  private(set) var phase = Phase.open
  private(set) var end: End?
  let receiveMTU: Int
  /// Whether the socket has said that it takes no more.
  private(set) var isBlocked = false
  /// Octets that the socket has taken.
  private(set) var sentCount = 0
  /// How long the next SDU may be, and how long that may ever be.
  private var longest: Int
  private var limit: Int
  private var blockedSince = Duration.zero
  private var refusals = 0
  /// The socket has called itself writable, and has taken nothing since.
  private var hasPromised = false
  private var outgoing: OctetQueue
  private var incoming: OctetQueue
  private let writableMark: Int
  private var announcesReadable = true
  private var announcesWritable = false
  private var announcesEnd = false

  init(_ limits: Limits) {
    receiveMTU = max(limits.receiveMTU, 1)
    limit = min(max(limits.sendMTU, 1), Self.longestSDU)
    longest = min(limit, Self.firstSDU)
    outgoing = OctetQueue(capacity: limits.capacity)
    incoming = OctetQueue(capacity: max(limits.capacity, receiveMTU))
    writableMark = max(limits.capacity / 4, 1)
  }

  /// Takes what is to be told, in order. Whoever comes late is told with `again` what there is now.
  mutating func takeEvents(again: Bool = false) -> [ChannelEvent] {
    var events: [ChannelEvent] = []
    // Who knows of the end reads until nothing is left.
    if hasBytes, (announcesReadable && (end == nil || announcesEnd)) || again {
      announcesReadable = false
      events.append(.readable)
    }
    if announcesWritable, phase == .open, outgoing.space >= writableMark {
      announcesWritable = false
      events.append(.writable)
    }
    if let end, announcesEnd || again {
      announcesEnd = false
      events.append(.closed(end.reason))
    }
    return events
  }

  // MARK: Sending

  /// Whether ``write(_:)`` would take a byte.
  var hasSpace: Bool { phase == .open && outgoing.space > 0 }

  /// Whether the socket has taken all that was written.
  var hasSentAll: Bool { outgoing.isEmpty }

  /// Takes a prefix and returns its length.
  mutating func write(_ bytes: Data) -> Int {
    guard phase == .open else { return 0 }
    let taken = outgoing.append(bytes)
    if taken < bytes.count || outgoing.space == 0 { announcesWritable = true }
    return taken
  }

  /// How long the next SDU is, or nil where none can go now.
  ///
  /// While the socket takes SDUs, each is what there is. While it does not, bytes gather, so that a program that writes a few at a time does
  /// not pay for an SDU each time.
  var nextLength: Int? {
    guard !isBlocked, phase == .open || phase == .draining, !outgoing.isEmpty else { return nil }
    return min(outgoing.count, longest)
  }

  /// The next SDU of that length.
  func nextSDU(_ length: Int) -> ArraySlice<UInt8> { outgoing.prefix(length) }

  /// The socket has taken an SDU.
  mutating func sent(_ count: Int) {
    outgoing.removeFirst(count)
    sentCount += count
    hasPromised = false
    refusals = 0
  }

  /// The socket takes nothing at the moment. False: it says so again and again although it had called itself writable.
  ///
  /// It may do that where an SDU needs more buffers than it has left: half the length is tried then.
  mutating func refused(now: Duration) -> Bool {
    isBlocked = true
    blockedSince = now
    if hasPromised {
      refusals += 1
      longest = max(longest / 2, min(longest, Self.minimumMTU))
      limit = longest
    }
    return refusals <= Self.mostRefusals
  }

  /// The socket has room again: the last SDU has gone.
  mutating func unblock(now: Duration) {
    guard isBlocked else { return }
    isBlocked = false
    hasPromised = true
    let time = now - blockedSince
    if time < Self.pace.lowerBound {
      longest = min(longest * 2, limit)
    } else if time > Self.pace.upperBound {
      longest = max(longest / 2, min(longest, Self.shortestSDU))
    }
  }

  // MARK: Receiving

  /// Whether bytes can be read.
  var hasBytes: Bool { !incoming.isEmpty }

  /// Whether an SDU may be taken out of the socket: the longest would have room, or nobody will read it.
  var canReceive: Bool { dropsIncoming || incoming.space >= receiveMTU }

  /// Once this side has closed, nobody reads.
  private(set) var dropsIncoming = false

  /// Takes an SDU.
  mutating func received(_ sdu: ArraySlice<UInt8>) {
    if !dropsIncoming { _ = incoming.append(sdu) }
  }

  /// Takes bytes that have arrived.
  mutating func read(upTo count: Int) -> Data {
    let bytes = incoming.take(upTo: count)
    if bytes.count < count { announcesReadable = true }
    return bytes
  }

  // MARK: Ends

  /// This side closes: what was written still goes, what has come is forgotten.
  mutating func close() {
    guard phase == .open else { return }
    phase = .draining
    dropsIncoming = true
    incoming.removeAll()
  }

  /// All has gone, and the peer was asked to disconnect.
  mutating func disconnecting() {
    if phase == .draining { phase = .disconnecting }
  }

  /// The channel is no more.
  mutating func finish(_ reason: RadioError?) {
    guard phase != .ended else { return }
    phase = .ended
    end = End(reason: reason)
    announcesEnd = true
    outgoing.removeAll()
  }
}
