internal import Foundation
internal import Radio

/// What shares the bounded queue below: Write Commands, notifications and K-frames.
extension LinkHost {
  /// Longest value of a Write Command or notification now.
  var commandLimit: Int { min(mtu - 3, ATTLimits.valueLength) }

  // While both kinds want to send, each has half of the queue.

  private var attRoom: Bool {
    queue.hasRoom && (!channels.canSend || queue.attFrames < queue.share)
  }

  private var channelRoom: Bool {
    queue.hasRoom
      && (!wantsReadyToWrite && !wantsReadyToNotify && !keepsRoom || queue.channelFrames < queue.share)
  }

  private var indicationRoom: Bool { queue.hasRoom && !indications.isFull }

  // MARK: Central

  /// Queues a Write Command, or refuses it and announces when there is room.
  mutating func writeWithoutResponse(_ value: Data, to handle: AttributeHandle) -> WriteOutcome {
    guard !hasEnded else { return .notConnected }
    let limit = commandLimit
    guard value.count <= limit else { return .tooLong(limit: limit) }
    guard attRoom else {
      wantsReadyToWrite = true
      return .notReady
    }
    send(ATTPDU.frame(ATTOpcode.writeCommand, handle, value, valueLength: value.count), .att)
    return .accepted
  }

  /// Whether a Write Command would be taken; if not, it is announced when it would.
  mutating func canWriteWithoutResponse() -> Bool {
    guard !hasEnded else { return false }
    if !attRoom { wantsReadyToWrite = true }
    return attRoom
  }

  /// Queues a request of a client.
  mutating func request(_ request: GATTRequest, _ id: ClientRequest, now: Duration) {
    guard !hasEnded else { return }
    client.request(request, id, now: now)
    drainClient()
  }

  /// Writes a client configuration for which nobody waits.
  mutating func configure(_ characteristic: RemoteCharacteristic, _ mode: NotifyMode, now: Duration) {
    guard !hasEnded else { return }
    client.configure(characteristic, mode, now: now)
    drainClient()
  }

  // MARK: Peripheral

  /// Whether the peer is subscribed to a characteristic.
  func isSubscribed(to attribute: LocalAttribute) -> Bool {
    !hasEnded && server.subscription(to: attribute) != nil
  }

  /// Whether a value for the subscribed peer would be taken; if not, it is announced when it would.
  mutating func canNotify(_ attribute: LocalAttribute) -> Bool {
    guard !hasEnded else { return true }
    let indicates = server.subscription(to: attribute)?.indicates == true
    let hasRoom = indicates ? indicationRoom : attRoom
    if !hasRoom {
      wantsReadyToNotify = true
      wantsReadyToIndicate = indicates || wantsReadyToIndicate
    }
    return hasRoom
  }

  /// Queues a value, cut to what the link can carry. Call only after ``canNotify(_:)`` was true.
  mutating func notify(_ value: Data, of attribute: LocalAttribute, now: Duration) {
    guard !hasEnded, let subscription = server.subscription(to: attribute) else { return }
    let length = min(value.count, commandLimit)
    if subscription.indicates {
      indications.append(subscription.handle, value.prefix(length))
      pump(now)
    } else {
      send(ATTPDU.frame(ATTOpcode.notification, subscription.handle, value, valueLength: length), .att)
    }
  }

  /// Answers a read that the server has asked for.
  mutating func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {
    guard !hasEnded else { return }
    server.respond(toRead: id, with: result, mtu: mtu)
    drainServer()
  }

  /// Answers writes that the server has reported.
  mutating func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    guard !hasEnded else { return }
    server.respond(toWrites: id, with: result)
    drainServer()
  }

  /// Takes the adapter's new table and tells the peer which handles have changed.
  mutating func replaceTable(_ table: AttributeTable, changed: ClosedRange<AttributeHandle>, now: Duration) {
    guard !hasEnded else { return }
    server.replaceTable(table)
    drainServer()
    if server.wantsServiceChanged { indications.appendServiceChanged(table.serviceChangedHandle, changed) }
    pump(now)
  }

  /// Asks the central for another connection interval, in units of 1.25 ms.
  mutating func requestInterval(_ interval: ClosedRange<UInt16>, timeout: UInt16) {
    guard !hasEnded, side == .peripheral else { return }
    let command = SignallingPDU.Command.parameterUpdateRequest(
      intervalMin: interval.lowerBound, intervalMax: interval.upperBound, latency: 0, timeout: timeout)
    send(SignallingPDU(identifier: channels.makeIdentifier(), command: command).frame)
  }

  // MARK: The queue

  /// Fills the room that there is and announces what is left of it.
  mutating func pump(_ now: Duration) {
    guard !hasEnded else { return }
    if let pdu = indications.next(now: now) { send(pdu.frame) }
    while channelRoom, let frame = channels.nextFrame() { send(frame, .channel) }
    finishChannelWork(now)
    if wantsReadyToWrite, attRoom {
      wantsReadyToWrite = false
      keepsRoom = true
      outputs.append(.readyToWrite)
    }
    if wantsReadyToNotify, attRoom, !wantsReadyToIndicate || indicationRoom {
      wantsReadyToNotify = false
      wantsReadyToIndicate = false
      keepsRoom = true
      outputs.append(.readyToNotify)
    }
  }
}

/// Indications wait for each other: one is under way at a time (Core Vol 3 Part F 3.3.2).
struct IndicationQueue {
  /// How many may wait besides the one under way.
  static let limit = 4

  private var values: [(handle: AttributeHandle, value: Data)] = []
  private var serviceChanged: (handle: AttributeHandle, range: ClosedRange<AttributeHandle>)?
  /// When the one under way must be confirmed.
  private(set) var deadline: Duration?

  var isFull: Bool { values.count >= Self.limit }

  mutating func append(_ handle: AttributeHandle, _ value: Data) { values.append((handle, value)) }

  /// Goes before all others; changes that wait are joined into one range.
  mutating func appendServiceChanged(_ handle: AttributeHandle, _ range: ClosedRange<AttributeHandle>) {
    let old = serviceChanged?.range ?? range
    serviceChanged = (
      handle, min(old.lowerBound, range.lowerBound)...max(old.upperBound, range.upperBound)
    )
  }

  mutating func confirmed() { deadline = nil }

  /// The next indication, unless one is under way.
  mutating func next(now: Duration) -> ATTPDU? {
    guard deadline == nil else { return nil }
    if let (handle, range) = serviceChanged {
      serviceChanged = nil
      deadline = now + GATTClient.transactionTimeout
      var bytes: [UInt8] = []
      bytes.appendUInt16(range.lowerBound)
      bytes.appendUInt16(range.upperBound)
      return .indication(handle, Data(bytes))
    }
    guard !values.isEmpty else { return nil }
    deadline = now + GATTClient.transactionTimeout
    let (handle, value) = values.removeFirst()
    return .indication(handle, value)
  }
}
