internal import Foundation
internal import Radio

/// One end of a link at one adapter: its host and who uses it. Lives under the lock of its ``HostCore``.
final class HostLink {
  let id: UInt64
  let side: LinkSide
  let adapter: Adapter
  let peer: PeerID
  let medium: any LinkMedium
  var host: LinkHost
  /// Central clients that are connected, with what they are subscribed to.
  var users: Set<UInt64> = []
  var subscriptions: [AttributeHandle: Subscription] = [:]
  /// Central clients that were refused a write, or have read that one would be.
  var blockedWriters: Set<UInt64> = []
  /// Channel objects by local channel identifier.
  var channelIDs: [UInt16: UInt64] = [:]
  /// Types of services that were discovered on this link.
  var knownServices: Set<BluetoothUUID> = []
  /// Why this side has ended the link by itself.
  var ownReason: RadioError?
  /// Set when the link is no more for this adapter: whatever comes is dropped.
  var isClosed = false
  /// When the host is to be called, and the timer that does it.
  var hostTimer: (deadline: Duration, work: ScheduledWork)?
  /// Set while a ready signal is late: until then nothing is taken.
  var writeHold: ScheduledWork?

  /// Requests for a subscription, or for its end, that wait for the peer's answer.
  var notifyRequests: [ClientRequest: (handle: AttributeHandle, mode: NotifyMode)] = [:]

  /// Who wants the values of a characteristic, and how.
  struct Subscription {
    let characteristic: RemoteCharacteristic
    /// As each client has last asked, since notifications may come before the answer; once that is there, as the peer has it.
    private(set) var modes: [UInt64: NotifyMode] = [:]
    private var confirmed: [UInt64: NotifyMode] = [:]

    init(_ characteristic: RemoteCharacteristic) { self.characteristic = characteristic }

    /// A client has asked.
    mutating func ask(for mode: NotifyMode, _ client: UInt64) { modes[client] = mode == .none ? nil : mode }

    /// The peer has answered; `isLast`: the client has asked for nothing else since.
    mutating func settle(_ mode: NotifyMode, _ client: UInt64, isDone: Bool, isLast: Bool) {
      if isDone { confirmed[client] = mode == .none ? nil : mode }
      if isLast { modes[client] = confirmed[client] }
    }

    /// A client is gone; returns whether it was subscribed.
    mutating func remove(_ client: UInt64) -> Bool {
      confirmed[client] = nil
      return modes.removeValue(forKey: client) != nil
    }
  }

  init(id: UInt64, side: LinkSide, adapter: Adapter, peer: PeerID, medium: any LinkMedium, host: LinkHost) {
    self.id = id
    self.side = side
    self.adapter = adapter
    self.peer = peer
    self.medium = medium
    self.host = host
  }
}
