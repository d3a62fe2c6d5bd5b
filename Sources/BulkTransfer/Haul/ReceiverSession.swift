public import Foundation

/// The receiver's half of a session, without any I/O: takes requests and data, verifies segments, and says what is to be stored.
///
/// The shell that drives it follows three rules:
/// 1. It passes what happens to ``handle(_:now:)``, each with the time of its clock, and takes ``nextAction()`` until nil, in order.
/// 2. It carries out ``Action/storage(_:)`` requests one after another, for example with a ``StorageWorker``, and passes each answer back
///    as ``Input/storage(_:)``. Requests may wait: data that comes meanwhile is buffered within what was announced.
/// 3. It sets one timer to ``nextDeadline`` and passes ``Input/deadline`` when that has come; passing it early does no harm.
///
/// Whatever a peer sends, a session holds at most its buffer and one control message; unverified octets never leave it; and the object gets
/// its final name only after the whole of it was read back from storage and has the SHA-256 that was offered. One value serves one
/// carrier and any number of sessions on it, one after another.
public struct ReceiverSession: Sendable {
  /// What happens to a session.
  public enum Input: Sendable {
    /// A whole control message has come.
    case control(Data)
    /// A packet has come on the GATT data characteristic.
    case packet(Data)
    /// Records have come on an L2CAP channel, together: one receipt serves for all.
    case records([Record])
    /// The storage has answered.
    case storage(StorageReport)
    /// ``nextDeadline`` may have come.
    case deadline
    /// The carrier is gone. What was verified is made durable; the value can serve the next carrier.
    case carrierLost
  }

  /// What the shell has to do.
  public enum Action: Hashable, Sendable {
    /// Send a whole control message.
    case sendControl(Data)
    /// Carry out a request on the storage.
    case storage(StorageRequest)
    /// Something has happened that people may want to see.
    case event(Event)
    /// Close the carrier: the peer has been silent for too long.
    case closeCarrier
  }

  /// What people may want to see.
  public enum Event: Hashable, Sendable {
    /// A sender has opened a session.
    case sessionStarted
    /// An object is being received from an offset on; above 0 it is resumed, and at its size it is there already.
    case objectStarted(ReceivedObject, index: Int, count: Int, from: UInt64)
    /// Octets that have arrived, and that are durable.
    case progress(received: UInt64, durable: UInt64)
    /// The stream has to start again at an offset.
    case lost(HaulReply.Lost.Reason, at: UInt64)
    /// All octets are durable; they are being read back.
    case verifying(ReceivedObject)
    /// The object has its final name.
    case objectVerified(ReceivedObject, location: String)
    /// The object has failed or was refused.
    case objectFailed(ReceivedObject, TransferError)
    /// The object was left before it was complete; what is durable can be resumed.
    case objectLeft(ReceivedObject, durable: UInt64)
    /// The sender has nothing more to send, or has gone.
    case sessionEnded
  }

  /// The version of the protocol.
  static let version: UInt8 = 1

  public let configuration: ReceiverConfiguration
  /// What WELCOME states and offers are held against; the shell refreshes it before it passes control messages.
  public var limits: StorageLimits

  /// The session number of the peer's HELLO; nil without a session.
  var peer: UInt64?
  /// The newest epoch that was given out.
  var epoch = Epoch(rawValue: 0)
  var incoming: Incoming?
  /// Counts opened objects, to tell late answers of the storage from current ones.
  var objectNumber: UInt32 = 0
  /// Objects that the storage has not finished opening, left ones included.
  var opening: Set<UInt32> = []
  /// As many may wait: a sender that connects again does not find its former offer in the way, and one that offers without end is stopped.
  static let openingLimit = 4
  var heardAt: Duration
  private var actions: [Action] = []
  private var actionsTaken = 0

  /// Makes a session that waits for HELLO.
  public init(configuration: ReceiverConfiguration, limits: StorageLimits, now: Duration) {
    self.configuration = configuration.effective
    self.limits = limits
    heardAt = now
  }

  /// Whether a sender has a session.
  public var isActive: Bool { peer != nil }

  /// Octets of the stream that are held in memory.
  public var bufferedBytes: Int { incoming?.buffered ?? 0 }

  /// Takes the oldest action; nil if there is none.
  public mutating func nextAction() -> Action? {
    guard actionsTaken < actions.count else { return nil }
    defer {
      actionsTaken += 1
      if actionsTaken == actions.count {
        actions.removeAll(keepingCapacity: true)
        actionsTaken = 0
      }
    }
    return actions[actionsTaken]
  }

  mutating func emit(_ action: Action) { actions.append(action) }

  mutating func send(_ reply: HaulReply) { emit(.sendControl(reply.encoded)) }

  /// Takes an input.
  public mutating func handle(_ input: Input, now: Duration) {
    switch input {
    case .control(let message):
      heardAt = now
      receiveControl(message, now: now)
    case .packet(let packet):
      heardAt = now
      // Only where a SYNC is awaited is a packet looked at as one: elsewhere every octet belongs to the stream.
      if incoming?.phase == .waitingForSync {
        synchronize(packet, now: now)
      } else {
        receiveStream(packet, now: now)
        sendReceiptIfDue(now: now)
      }
    case .records(let records):
      heardAt = now
      for record in records { receive(record, now: now) }
      sendReceiptIfDue(now: now)
    case .storage(let report):
      receive(report, now: now)
    case .deadline:
      checkDeadlines(now: now)
    case .carrierLost:
      endSession(now: now)
    }
  }

  // MARK: Data

  private mutating func receive(_ record: Record, now: Duration) {
    switch record.kind {
    case .control: receiveControl(record.body, now: now)
    case .sync: synchronize(record.body, now: now)
    case .stream: receiveStream(record.body, now: now)
    }
  }

  private mutating func synchronize(_ packet: Data, now: Duration) {
    guard let peer, incoming?.phase == .waitingForSync, let start = incoming?.good,
      let sync = SyncPacket(decoding: packet), sync.session == UInt32(truncatingIfNeeded: peer),
      sync.epoch == epoch, sync.offset == start
    else { return }
    incoming?.phase = .streaming
    if let object = incoming, !object.isAnnounced { announceStart(of: object, from: start) }
    // What was stored since LOST may be what the first segment waits for.
    if incoming?.isCoded == true { sendReceiptIfDue(now: now) }
  }

  /// Takes octets of the stream; whether a receipt is due is asked after it.
  private mutating func receiveStream(_ bytes: Data, now: Duration) {
    guard incoming?.phase == .streaming else { return }
    var place = 0
    while let result = incoming?.take(bytes, from: &place) {
      switch result {
      case .needsMore:
        return
      case .segment(let segment, let offset):
        request(.write(segment, at: offset), now: now)
        if incoming?.phase == .finishing { return }
      case .coded(let segment):
        request(.decode(segment), now: now)
        if incoming?.phase == .finishing { return }
      case .lost(let reason):
        return lose(reason, answering: 0, now: now)
      }
    }
  }

  /// Starts a new epoch at the end of the last good segment.
  mutating func lose(_ reason: HaulReply.Lost.Reason, answering request: UInt8, now: Duration) {
    guard incoming != nil else { return }
    epoch = epoch.next
    incoming?.restart(epoch: epoch)
    incoming?.rewindRequest = reason == .asked ? request : 0
    incoming?.lossReason = reason
    sendLost(answering: request, now: now)
    emit(.event(.lost(reason, at: incoming?.good ?? 0)))
  }

  mutating func sendLost(answering request: UInt8, now: Duration) {
    guard let object = incoming else { return }
    let room = noteReport(now: now)
    send(
      .lost(
        HaulReply.Lost(
          request: request, epoch: epoch, offset: object.good, room: room, reason: object.lossReason)))
  }

  // MARK: Storage

  /// Asks the storage for something.
  mutating func request(_ operation: StorageRequest.Operation, now: Duration) {
    guard let object = incoming else { return }
    switch operation {
    case .discard, .close: break
    case .findBase, .open, .write, .decode, .sync, .readBack, .commit:
      if object.outstanding == 0 { incoming?.storageHeardAt = now }
      incoming?.outstanding += 1
    }
    emit(.storage(StorageRequest(object: object.number, operation: operation)))
  }

  /// Ends the use of the object under way; what was verified is made durable.
  mutating func leaveObject(now: Duration) {
    guard let object = incoming else { return }
    switch object.phase {
    case .opening, .verifying, .committing:
      request(.close, now: now)
    case .waitingForSync, .streaming, .finishing:
      // Requests are carried out in order: all that is verified will have been written.
      if object.good > object.durable { request(.sync(through: object.good), now: now) }
      request(.close, now: now)
    case .complete, .failed:
      incoming = nil
      return
    }
    incoming = nil
    if object.isAnnounced { emit(.event(.objectLeft(object.identity, durable: object.durable))) }
  }

  mutating func endSession(now: Duration) {
    leaveObject(now: now)
    guard peer != nil else { return }
    peer = nil
    emit(.event(.sessionEnded))
  }
}
