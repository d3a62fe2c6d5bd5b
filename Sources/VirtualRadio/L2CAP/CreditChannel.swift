internal import Foundation
internal import Radio

/// One end of an LE credit-based channel as a stream (Core Vol 3 Part A 3.4.3, 10.1). Sans-I/O: K-frames and credits in and out.
///
/// Bounds: at most ``bufferCapacity`` bytes wait to be sent, and credits are given so that what has arrived and what may
/// still arrive never exceeds ``bufferCapacity``.
struct CreditChannel {
  /// Size of each of the two buffers in octets.
  static let bufferCapacity = 64 * 1024
  /// Room for writers is announced when this much is free again.
  static let writableMark = bufferCapacity / 4
  /// More credits than this close the channel (Core Vol 3 Part A 10.1).
  static let creditLimit = 65535
  /// The smallest MTU and MPS there can be.
  static let minimumLimit = 23

  enum Phase: Hashable {
    /// A request was sent, or is to be answered. Can transition to: open.
    case connecting
    /// Can transition to: draining, disconnecting.
    case open
    /// Closed by this side while bytes wait to be sent. Can transition to: disconnecting.
    case draining
    /// The Disconnection Request was sent; the channel is forgotten when it is answered.
    case disconnecting
  }

  /// What the peer did against the rules.
  enum Violation: String, Error {
    case noCredit = "the peer sent a frame without a credit"
    case frameTooLong = "the peer sent a frame longer than the MPS"
    case noLength = "the peer sent an SDU without its length"
    case serviceDataUnitTooLong = "the peer sent an SDU longer than the MTU"
    case lengthExceeded = "the peer sent more bytes than it had announced for the SDU"
    case creditOverflow = "the peer gave more than 65535 credits"
  }

  let psm: PSM
  let localCID: UInt16
  /// Whether the peer has opened it, on a PSM of this side; else it was opened here, on a PSM of the peer.
  let isAccepted: Bool
  let local: SignallingPDU.ChannelLimits
  var phase = Phase.connecting
  private(set) var remoteCID: UInt16 = 0
  private(set) var sendCredits = 0
  private(set) var receiveCredits: Int
  private var peerMTU = 0
  /// The smaller of both sides' MPS bounds what is sent: a frame then has the size that suits the link.
  private var sendMPS = 0
  private var outgoing = ByteQueue(capacity: bufferCapacity)
  private var incoming = ByteQueue(capacity: bufferCapacity)
  /// Octets of the current SDU that are still to be sent, or still to come.
  private var outgoingRest = 0
  private var incomingRest = 0
  private var announcesReadable = true
  private var announcesWritable = false
  /// The end was told although the peer has not agreed to it yet.
  var hasAnnouncedEnd = false

  /// Makes a channel that is not connected yet; `mps` is the length of a K-frame's payload that suits the link, `creditLimit` bounds the credits
  /// that the peer is given at first.
  init(psm: PSM, localCID: UInt16, mps: Int, isAccepted: Bool = false, creditLimit: Int? = nil) {
    self.psm = psm
    self.localCID = localCID
    self.isAccepted = isAccepted
    let mps = min(max(mps, Self.minimumLimit), 65533)
    let credits = min(Self.bufferCapacity / mps, creditLimit ?? .max)
    local = SignallingPDU.ChannelLimits(
      mtu: .max, mps: UInt16(truncatingIfNeeded: mps), credits: UInt16(truncatingIfNeeded: credits))
    receiveCredits = credits
  }

  /// Whether the limits of a peer are within the specification.
  static func isAcceptable(_ limits: SignallingPDU.ChannelLimits) -> Bool {
    Int(limits.mtu) >= minimumLimit && (minimumLimit...65533).contains(Int(limits.mps))
  }

  /// Opens the channel with what the peer has said about its side.
  mutating func open(remoteCID: UInt16, peer: SignallingPDU.ChannelLimits) {
    self.remoteCID = remoteCID
    peerMTU = Int(peer.mtu)
    sendMPS = Int(min(peer.mps, local.mps))
    sendCredits = Int(peer.credits)
    phase = .open
  }

  // MARK: Sending

  /// Whether a frame could go now.
  var canSend: Bool {
    (phase == .open || phase == .draining) && sendCredits > 0 && !outgoing.isEmpty
  }

  /// Whether everything written has been handed on.
  var hasSentAll: Bool { outgoing.isEmpty }

  /// Whether ``write(_:)`` would take a byte.
  var hasSpace: Bool { phase == .open && outgoing.space > 0 }

  /// Takes a prefix and returns its length.
  mutating func write(_ bytes: Data) -> Int {
    guard phase == .open else { return 0 }
    let taken = outgoing.append(bytes)
    if taken < bytes.count || outgoing.space == 0 { announcesWritable = true }
    return taken
  }

  /// The next K-frame, or nil where nothing can go. Uses a credit.
  mutating func nextFrame() -> [UInt8]? {
    guard canSend else { return nil }
    sendCredits -= 1
    let header = outgoingRest == 0 ? 2 : 0
    if outgoingRest == 0 { outgoingRest = nextLength }
    let count = min(outgoingRest, sendMPS - header)
    let length = outgoingRest
    outgoingRest -= count
    return L2CAPFrame.make(cid: remoteCID, capacity: header + count) { bytes in
      if header > 0 { bytes.appendUInt16(UInt16(truncatingIfNeeded: length)) }
      outgoing.move(upTo: count, to: &bytes)
    }
  }

  /// Length of the next SDU: what waits, but cut so that its last frame is full where there is more than one frame.
  private var nextLength: Int {
    let length = min(outgoing.count, peerMTU)
    return length + 2 <= sendMPS ? length : (length + 2) / sendMPS * sendMPS - 2
  }

  /// Takes credits of the peer.
  mutating func addCredits(_ count: Int) throws(Violation) {
    guard sendCredits + count <= Self.creditLimit else { throw .creditOverflow }
    sendCredits += count
  }

  /// True once after a short write, or one that left no space, when there is room again.
  mutating func takeWritable() -> Bool {
    guard announcesWritable, phase == .open, outgoing.space >= Self.writableMark else { return false }
    announcesWritable = false
    return true
  }

  // MARK: Receiving

  /// Whether bytes can be read.
  var hasBytes: Bool { !incoming.isEmpty }

  /// Takes bytes that have arrived.
  mutating func read(upTo count: Int) -> Data {
    let bytes = incoming.take(upTo: count)
    if bytes.count < count { announcesReadable = true }
    return bytes
  }

  /// Takes a K-frame's payload. Once this side has closed, bytes are dropped: nobody will read them.
  mutating func receive(_ frame: [UInt8]) throws(Violation) {
    guard receiveCredits > 0 else { throw .noCredit }
    receiveCredits -= 1
    var reader = ByteReader(frame, from: L2CAPFrame.headerLength)
    guard reader.remaining <= Int(local.mps) else { throw .frameTooLong }
    if incomingRest == 0 {
      guard let length = reader.readUInt16() else { throw .noLength }
      guard length <= local.mtu else { throw .serviceDataUnitTooLong }
      incomingRest = Int(length)
    }
    guard reader.remaining <= incomingRest else { throw .lengthExceeded }
    incomingRest -= reader.remaining
    if phase == .open { _ = incoming.append(reader.readRest()) }
  }

  /// True where bytes have come of which the reader does not know.
  mutating func takeReadable() -> Bool {
    guard announcesReadable, hasBytes else { return false }
    announcesReadable = false
    return true
  }

  /// Credits to give to the peer now, at most `limit`, or 0. Small amounts are held back as long as the peer has others.
  mutating func takeGrant(upTo limit: Int = .max) -> Int {
    guard phase == .open || phase == .draining else { return 0 }
    let frames = Self.bufferCapacity / Int(local.mps)
    let free = (Self.bufferCapacity - incoming.count) / Int(local.mps) - receiveCredits
    guard free > 0, free >= frames / 4 || receiveCredits == 0 else { return 0 }
    let granted = min(free, limit)
    receiveCredits += granted
    return granted
  }

  /// Forgets what nobody will read.
  mutating func dropIncoming() { incoming.removeAll() }

  /// What has arrived and was not read, for whoever outlives the link.
  mutating func takeIncoming() -> ByteQueue {
    defer { incoming.removeAll() }
    return incoming
  }
}
