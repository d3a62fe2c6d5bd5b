/// What a transfer does at a moment, for who measures where its time goes.
public struct TransferActivity: Hashable, Sendable {
  /// What the next octet waits for.
  public enum Hold: String, Hashable, Sendable, CaseIterable {
    /// There is no session: a link is being made, or the push is over.
    case link
    /// HELLO and OFFER have to be answered.
    case agreement
    /// The carrier has taken all that it can: the host's queue, credits of a channel, the air.
    case carrier
    /// So much is in flight as may be, or all was sent: receipts will tell more.
    case receipts
    /// The receiver has no room, or has everything and is storing it.
    case storage
    /// The receiver reads back and compares.
    case verification
    /// All is verified; the session is being closed, or was given up.
    case farewell
  }

  /// What the transfer waits for.
  public var hold: Hold
  /// Octets of the object under way that have arrived at the receiver.
  public var received: UInt64

  /// Makes an activity.
  public init(hold: Hold, received: UInt64) {
    self.hold = hold
    self.received = received
  }
}

extension SenderSession {
  /// What the session does at this moment, as far as it knows: that the carrier takes nothing more is known to who pumps it.
  var activity: TransferActivity {
    TransferActivity(hold: hold, received: run.received)
  }

  private var hold: TransferActivity.Hold {
    switch state {
    case .connecting, .ended: .link
    case .greeting, .offering: .agreement
    case .streaming: run.hold
    case .verifying: run.durable < run.object.size ? .storage : .verification
    case .closing, .leaving: .farewell
    }
  }
}

extension ObjectRun {
  fileprivate var hold: TransferActivity.Hold {
    guard !isWhollySent else { return .receipts }
    guard isBlocked else { return .carrier }
    switch bound {
    case .window: return .receipts
    case .rightEdge: return .storage
    case nil: return .carrier
    }
  }
}
