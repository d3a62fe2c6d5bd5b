public import Foundation

/// The sender's half of a session: from HELLO until the end of the carrier, without any I/O.
///
/// The shell that drives it follows four rules:
/// 1. It passes what happens to ``handle(_:now:)``, each with the time of its clock.
/// 2. Whenever the carrier takes data it pulls packets with ``nextPacket(limit:now:read:encode:)`` until nil comes back, each with the
///    limit of that very moment, and hands each over at once. The session queues no data. After nil it pulls again when the carrier becomes ready
///    or when ``Action/dataReady`` comes.
/// 3. After each call of either it takes ``nextAction()`` until nil, in order.
/// 4. Then it sets one timer to ``nextDeadline`` and passes ``Input/deadline`` when that has come; passing it early does no harm.
///
/// Success is the receiver's word: ``Action/finished`` comes only after VERIFIED with the size and SHA-256 of each object. A session
/// ends once, with ``Action/finished`` or ``Action/failed(_:)``; after that it takes no input and returns nothing.
public struct SenderSession: Sendable {
  /// What happens to a session.
  public enum Input: Sendable {
    /// The carrier can take control messages from now on; comes first. The sender begins with HELLO.
    case carrierReady(CarrierKind)
    /// A whole control message has come.
    case control(Data)
    /// ``nextDeadline`` may have come.
    case deadline
    /// No more data is to be sent until `resume`.
    case pause
    case resume
    /// The transfer is to end with this error; what is durable stays at the receiver. It is told first, for at most
    /// ``HaulConfiguration/farewellLimit``.
    case cancel(TransferError)
    /// The carrier is gone, for this reason.
    case carrierLost(TransferError)
  }

  /// What the shell has to do.
  public enum Action: Hashable, Sendable {
    /// Send a whole control message.
    case sendControl(Data)
    /// There is data again where ``nextPacket(limit:now:read:encode:)`` had none.
    case dataReady
    /// The state has changed.
    case progress(ProgressState)
    /// The receiver takes the object, from this offset on. An offset above 0 is a resumption.
    case accepted(index: Int, durable: UInt64)
    /// The receiver has verified the object and made it final.
    case verified(index: Int, sha256: SHA256Digest)
    /// All objects are verified; the session has ended.
    case finished
    /// The session has ended without success. A retriable error says that a new session can go on.
    case failed(TransferError)
  }

  /// The version of the protocol.
  static let version: UInt8 = 1

  enum State: Hashable, Sendable {
    /// Waits for the carrier. Can transition to: greeting, ended.
    case connecting
    /// HELLO is out. Can transition to: offering, leaving, ended.
    case greeting
    /// OFFER is out. Can transition to: streaming, verifying, leaving, ended.
    case offering
    /// Data flows. Can transition to: verifying, offering (next object), closing, leaving, ended.
    case streaming
    /// All has arrived. Can transition to: streaming (after a LOST), offering (next object), closing, leaving, ended.
    case verifying
    /// All objects are verified and CLOSE is out. Can transition to: ended.
    case closing
    /// CANCEL is out. Can transition to: ended.
    case leaving(TransferError)
    case ended
  }

  public let objects: [OutgoingObject]
  public let configuration: HaulConfiguration
  /// Sixteen octets that name the transfer.
  public let transfer: [UInt8]
  /// The number of this session.
  public let sessionNumber: UInt64
  /// Counts and times; a session after a reconnect can go on with it.
  public internal(set) var meter: ProgressMeter

  var state = State.connecting
  var carrier: CarrierKind?
  var run: ObjectRun
  var window: SendWindow
  var roundTrip = RoundTripEstimator()
  var segmentPower: UInt8
  /// What WELCOME has said.
  var peer: PeerLimits?
  /// How the object under way may be coded, lowered where that does not go; a session after a reconnect goes on with it.
  public internal(set) var coding: CodingStanding
  /// What is known of the coding of an object from earlier sessions.
  private let formerCoding: CodingStanding?
  let discardsStored: Bool
  /// Objects from the first that the receiver has accepted, in this session or before: what it has of them is not discarded again.
  var accepted: Int
  var isPaused = false
  /// Whether data has arrived at the receiver, or it is at work: more than that it answers.
  var hasMoved = false
  var pending: PendingRequest?
  var lastRequest: UInt8 = 0
  /// The OFFER that HELLO has brought along, until WELCOME has come.
  var earlyOffer: Data?
  /// When something was last confirmed.
  var confirmedAt: Duration
  /// Since when the receiver has said nothing but BUSY; nil if it has confirmed something since.
  var busySince: Duration?
  /// Until when the receiver's BUSY counts.
  var busyUntil: Duration = .zero
  /// When the farewell ends that has begun.
  var farewellDeadline: Duration?
  private var actions: [Action] = []
  private var actionsTaken = 0

  /// Makes a session.
  ///
  /// - Parameters:
  ///   - objects: what is to be sent, in this order.
  ///   - first: index of the first object that is not known to be verified.
  ///   - transfer: sixteen octets that name the transfer, the same in each of its sessions.
  ///   - sessionNumber: random.
  ///   - discardsStored: whether the receiver is to forget what it has of each object.
  ///   - accepted: how many objects, from the first, were accepted in earlier sessions of this run: they are not discarded again.
  ///   - coding: ``coding`` of the session before, after a reconnect.
  ///   - meter: that of the session before, after a reconnect.
  /// - Throws: `invalidArgument` for a value outside its range, and for two objects of one name.
  public init(
    objects: [OutgoingObject], first: Int = 0, transfer: [UInt8], sessionNumber: UInt64,
    configuration: HaulConfiguration = HaulConfiguration(), discardsStored: Bool = false,
    accepted: Int = 0, coding: CodingStanding? = nil, meter: ProgressMeter? = nil, now: Duration
  ) throws(TransferError) {
    guard objects.indices.contains(first), objects.count <= 0xFFFF else {
      throw TransferError(
        .invalidArgument, "there are \(objects.count) objects and the first to be sent is number \(first)",
        advice: "give 1 to 65535 objects")
    }
    for object in objects { try object.check() }
    try checkNames(objects.map { ($0.name, $0.name) })
    self.objects = objects
    self.configuration = try configuration.checked()
    self.transfer = transfer
    self.sessionNumber = sessionNumber
    self.discardsStored = discardsStored
    self.accepted = accepted
    segmentPower = configuration.segmentPower
    window = Self.freshWindow(configuration)
    run = ObjectRun(objects[first], index: first)
    formerCoding = coding
    self.coding = CodingStanding(object: first, former: coding)
    confirmedAt = now
    self.meter = meter ?? ProgressMeter(now: now)
    self.meter.object(objects, index: first)
    self.meter.enter(.connect, now: now)
  }

  static func freshWindow(_ configuration: HaulConfiguration) -> SendWindow {
    SendWindow(
      initial: configuration.initialWindow,
      minimum: max(configuration.minimumWindow, 2 * configuration.receiptInterval),
      maximum: configuration.maximumWindow, step: configuration.receiptInterval)
  }

  /// Whether the session is over.
  public var isEnded: Bool { state == .ended }

  /// Index of the object under way.
  public var objectIndex: Int { run.index }

  /// Octets of the object that were handed to the carrier in this epoch and are not confirmed as received.
  public var inFlight: UInt64 { run.inFlight }

  /// The newest state.
  public func progress(now: Duration) -> ProgressState { meter.snapshot(now: now) }

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

  /// Begins with the next object.
  mutating func goOn(to index: Int) {
    run = ObjectRun(objects[index], index: index)
    coding = CodingStanding(object: index, former: formerCoding)
    meter.object(objects, index: index)
  }

  /// Takes an input.
  public mutating func handle(_ input: Input, now: Duration) {
    if state == .ended { return }
    switch input {
    case .carrierReady(let kind): begin(kind, now: now)
    case .control(let message): receive(message, now: now)
    case .deadline: checkDeadlines(now: now)
    case .pause: pause(now: now)
    case .resume: resume(now: now)
    case .cancel(let error): leave(error, now: now)
    case .carrierLost(let error): loseCarrier(error, now: now)
    }
  }

  /// Takes the next packet of the data stream.
  ///
  /// - Parameters:
  ///   - limit: octets that the carrier takes in one packet (GATT) or record (L2CAP) at this moment, at least 20.
  ///   - read: reads the object's octets; called for whole blocks of 64 KiB, or for whole segments where checksums are known, and not for
  ///     each packet.
  ///   - encode: codes a segment of a coded stream, such as ``SegmentEncoder``; without it segments of such a stream travel as they are.
  /// - Returns: what is to be handed to the carrier at once; nil if there is nothing to send now. An error of `read` makes the session
  ///   tell the receiver and end with it: take the actions.
  public mutating func nextPacket(
    limit: Int, now: Duration, read: ObjectReader, encode: SegmentEncoding? = nil
  ) -> Record? {
    guard state == .streaming, !isPaused, pending?.purpose != .rewind else { return nil }
    let limit = min(limit, configuration.packetLimit ?? limit, Record.bodyLimit)
    do throws(TransferError) {
      let packet = try run.packet(
        limit: limit, session: UInt32(truncatingIfNeeded: sessionNumber), window: window, now: now,
        read: read,
        encode: encode)
      if let packet {
        meter.flowing(now: now)
        if packet.kind == .stream { meter.handedOver(packet.body.count) }
      }
      return packet
    } catch {
      leave(error, now: now)
      return nil
    }
  }

  // MARK: Beginning and end

  private mutating func begin(_ kind: CarrierKind, now: Duration) {
    guard state == .connecting else { return }
    carrier = kind
    state = .greeting
    confirmedAt = now
    meter.enter(.prepare, now: now)
    ask(.hello, now: now)
    report(now: now)
  }

  private mutating func pause(now: Duration) {
    guard !isPaused else { return }
    isPaused = true
    meter.paused(inFlight: run.inFlight, confirmedAt: confirmedAt, now: now)
    report(now: now)
  }

  private mutating func resume(now: Duration) {
    guard isPaused else { return }
    isPaused = false
    meter.resumed()
    confirmedAt = now
    run.waitsSince = now
    report(now: now)
    if state == .streaming { emit(.dataReady) }
  }

  /// Tells the receiver that the transfer ends, if there is one that knows of it.
  mutating func leave(_ error: TransferError, now: Duration) {
    switch state {
    case .connecting, .greeting:
      end(.failed(error), now: now)
    case .offering, .streaming, .verifying:
      state = .leaving(error)
      farewellDeadline = now + configuration.farewellLimit
      ask(.cancel, now: now)
    case .closing, .leaving, .ended:
      // What has been verified cannot be cancelled, and the first reason is the one to report.
      break
    }
  }

  private mutating func loseCarrier(_ error: TransferError, now: Duration) {
    switch state {
    case .closing: end(.finished, now: now)
    case .leaving(let reason): end(.failed(reason), now: now)
    case .connecting, .greeting, .offering, .streaming, .verifying, .ended: end(.failed(error), now: now)
    }
  }

  mutating func end(_ outcome: Action, now: Duration) {
    if outcome != .finished { weighCodingAtEnd() }
    state = .ended
    pending = nil
    farewellDeadline = nil
    run.release()
    if outcome == .finished {
      meter.enter(.done, now: now)
      report(now: now)
    } else {
      meter.broken(confirmedAt: confirmedAt, isExpected: isPaused || busySince != nil, now: now)
    }
    emit(outcome)
  }

  mutating func report(now: Duration) { emit(.progress(meter.snapshot(now: now))) }
}
