internal import Foundation
internal import Radio

/// The credit-based channels of one link and the signalling requests that wait for an answer.
struct ChannelTable {
  /// More channels are refused for want of resources.
  static let limit = 32
  /// A signalling request that is not answered within this time is given up (RTX, Core Vol 3 Part A 6.2.1).
  static let responseTimeout = Duration.seconds(30)

  /// What a signalling request is about.
  enum Pending {
    case connect(cid: UInt16, ClientRequest)
    case disconnect(cid: UInt16)
  }

  struct Signal {
    var pending: Pending
    var deadline: Duration
  }

  private(set) var byCID: [UInt16: CreditChannel] = [:]
  /// Turns are taken in this order.
  private var order: [UInt16] = []
  private var turn = 0
  var signals: [UInt8: Signal] = [:]
  private var lastIdentifier: UInt8 = 0

  var cids: [UInt16] { order }

  var nextDeadline: Duration? { signals.isEmpty ? nil : signals.values.map(\.deadline).min() }

  /// Whether some channel could send a frame now.
  var canSend: Bool { order.contains { byCID[$0]?.canSend == true } }

  subscript(cid: UInt16) -> CreditChannel? {
    get { byCID[cid] }
    _modify { yield &byCID[cid] }
  }

  /// A channel identifier that is not in use, or nil where the table is full.
  var freeCID: UInt16? {
    order.count < Self.limit ? ChannelIdentifier.dynamic.first { byCID[$0] == nil } : nil
  }

  mutating func insert(_ channel: CreditChannel) {
    byCID[channel.localCID] = channel
    order.append(channel.localCID)
  }

  mutating func remove(_ cid: UInt16) {
    byCID[cid] = nil
    order.removeAll { $0 == cid }
  }

  /// The local identifier of the channel that the peer calls `remote`.
  func cid(ofRemote remote: UInt16) -> UInt16? {
    order.first { byCID[$0]?.remoteCID == remote && byCID[$0]?.phase != .connecting }
  }

  /// The next frame of some channel, one after the other.
  mutating func nextFrame() -> [UInt8]? {
    for _ in order.indices {
      turn = (turn + 1) % order.count
      if let frame = byCID[order[turn]]?.nextFrame() { return frame }
    }
    return nil
  }

  /// An identifier for a request that no pending request has; there are never as many as 255.
  mutating func makeIdentifier() -> UInt8 {
    repeat {
      lastIdentifier = lastIdentifier == .max ? 1 : lastIdentifier + 1
    } while signals[lastIdentifier] != nil && signals.count < Int(UInt8.max)
    return lastIdentifier
  }
}
