internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// Does what ``DeviceLink`` and ``SenderSession`` decide, on the link that a ``ConnectionDriver`` keeps: owns the carrier, the timer and
/// the files.
// Sendable: everything is touched on `queue` only, by the connection's calls, the timer, and the operation's hops.
final class PushDriver: @unchecked Sendable {
  typealias Outcome = Result<PushReport, TransferError>
  typealias Recorder = @Sendable (_ durable: [UInt64], _ facts: [String: String]) -> Void
  typealias Observer = @Sendable (_ activity: TransferActivity, _ now: Duration) -> Void

  let objects: [PushObject]
  let target: DeviceTarget
  let options: PushOptions
  let clock: any TransferClock
  let queue: DispatchQueue
  private let transfer: [UInt8]
  private let record: Recorder?
  private let observe: Observer?
  private var observed = TransferActivity(hold: .link, received: 0)
  private let events: EventFeed<PushEvent>

  let connection: ConnectionDriver
  let encoder: SegmentEncoder
  var pace = CodingPace()
  private var link: DeviceLink
  private var session: SenderSession?
  private(set) var carrier: (any SenderCarrier)?
  /// A carrier that is there and not in use yet.
  private var arriving: (any SenderCarrier)?

  private var timer: QueueTimer?
  private var continuation: CheckedContinuation<Outcome, Never>?
  private var isOver = false
  private var isPaused = false
  private var isDraining = false
  /// The carrier was lost and whoever noticed goes on with the link.
  private var isLosing = false
  /// The link is being ended because the device has declined in words.
  private var isDeclining = false
  /// The carrier did not take all there was: look again at this time, in case its ready signal never comes.
  private var lookAgain: Duration?
  private var meter: ProgressMeter?
  private var coding: CodingStanding?
  private var standing: PushStanding

  init(
    _ objects: [PushObject], transferID: SHA256Digest, target: DeviceTarget, options: PushOptions,
    record: Recorder?, observe: Observer?, memory: KnownDevices?,
    managerOptions: [String: any Sendable], clock: any TransferClock, queue: DispatchQueue,
    events: EventFeed<PushEvent>
  ) throws(TransferError) {
    self.objects = objects
    self.target = target
    self.options = options
    self.record = record
    self.observe = observe
    self.clock = clock
    self.queue = queue
    self.events = events
    transfer = Array(transferID.bytes.prefix(16))
    encoder = objects.lazy.compactMap(\.encoder).first ?? SegmentEncoder()
    standing = PushStanding(objects: objects.count)
    coding = options.coding
    link = DeviceLink(
      target: target, choice: options.link.choice, stepLimit: options.link.stepLimit,
      channelLimit: min(options.link.stepLimit, options.haul.idleLimit) * 3 / 4)
    connection = ConnectionDriver(
      ConnectionDriver.Setup(
        target: target, services: [HaulService.requirement], configuration: options.link.connection,
        memory: memory, managerOptions: managerOptions), clock: clock, queue: queue)
    // Made once here so that a bad option is refused before anything happens.
    _ = try SenderSession(
      objects: objects.map(\.object), transfer: transfer, sessionNumber: 0, configuration: options.haul,
      now: clock.now)
  }

  // MARK: From the operation

  func start(_ continuation: CheckedContinuation<Outcome, Never>) {
    guard timer == nil else {
      continuation.resume(
        returning: .failure(
          TransferError(.invalidArgument, "a push runs once", advice: "make another operation")))
      return
    }
    guard !isOver else {
      continuation.resume(returning: .failure(.pushCancelled))
      return
    }
    self.continuation = continuation
    timer = QueueTimer(clock: clock, queue: queue) { [weak self] in self?.timePassed() }
    connection.client = self
    connection.connect()
    armTimer()
  }

  func cancel() {
    guard !isOver else { return }
    guard session != nil else { return finish(.failure(.pushCancelled)) }
    handle(.cancel(.pushCancelled))
  }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    handle(isPaused ? .pause : .resume)
  }

  // MARK: Link

  /// Tells the link machine what has happened and does what it decides.
  func handleLink(_ input: DeviceLink.Input) {
    guard !isOver else { return }
    for action in link.handle(input, now: clock.now) where !isOver { perform(action) }
    armTimer()
  }

  private func perform(_ action: DeviceLink.Action) {
    switch action {
    case .readPSM:
      if let psm = connection.characteristic(HaulService.psm) { connection.peripheral?.readValue(for: psm) }
    case .openChannel(let psm):
      connection.peripheral?.openL2CAPChannel(psm)
    case .subscribe:
      if let control = connection.characteristic(HaulService.control) {
        connection.peripheral?.setNotifyValue(true, for: control)
      }
    case .start(let kind):
      begin(kind)
    case .abandonChannel(let why):
      endSession(
        TransferError(.disconnected, "the channel to \(target) was given up: \(why)", isRetriable: true))
      if !isOver { emit(.channelAbandoned(why)) }
    case .drop(let why):
      drop(why)
    case .fail(let error):
      finish(.failure(error))
    }
  }

  /// The link is of no use any more: it is ended, and another one is made; `refusal` where the device has declined in words.
  func drop(_ why: String, refusal: TransferError? = nil) {
    guard !isOver else { return }
    isDeclining = refusal != nil
    defer { isDeclining = false }
    connection.handle(refusal.map(ConnectionMachine.Input.refused) ?? .drop(why))
    armTimer()
  }

  // MARK: Session

  /// A carrier is there: it is used if the link machine has waited for it, and closed where it comes too late.
  func arrived(_ carrier: any SenderCarrier, _ input: DeviceLink.Input) {
    arriving = carrier
    handleLink(input)
    arriving?.close()
    arriving = nil
  }

  private func begin(_ kind: CarrierKind) {
    guard let carrier = arriving else { return }
    arriving = nil
    self.carrier = carrier
    do throws(TransferError) {
      session = try SenderSession(
        objects: outgoing(from: standing.verified, session: standing.sessions), first: standing.verified,
        transfer: transfer,
        sessionNumber: .random(in: 1 ... .max), configuration: options.haul,
        discardsStored: options.restarts, accepted: standing.accepted, coding: coding, meter: meter,
        now: clock.now)
    } catch {
      return finish(.failure(error))
    }
    standing.sessionBegan(on: carrier.kind)
    pace.interrupted()
    emit(.carrier(kind))
    if isPaused { handle(.pause) }
    handle(.carrierReady(kind))
  }

  /// Passes an input to the session and does what it wants; may be called from within itself.
  func handle(_ input: SenderSession.Input) {
    guard session != nil, !isOver else { return }
    session?.handle(input, now: clock.now)
    drain()
  }

  /// The device has sent a control message on the carrier.
  func answered(_ message: Data) {
    handle(.control(message))
    guard link.deadline != nil, let session else { return }
    handleLink(session.hasMoved ? .proven : .answered)
  }

  /// The carrier may take data again.
  func pump() {
    guard session != nil, !isOver else { return }
    pumpData()
    drain()
  }

  private func drain() {
    // A carrier may answer while it is told something: what comes of that is done by the loop that is running already.
    guard !isDraining else { return }
    isDraining = true
    defer { isDraining = false }
    while !isOver, let action = session?.nextAction() { perform(action) }
    tellActivity()
    armTimer()
  }

  /// Tells who measures what the transfer waits for from now on.
  private func tellActivity() {
    guard let observe else { return }
    var activity = session?.activity ?? TransferActivity(hold: .link, received: observed.received)
    // What the session waited for last does not hold it any more where the carrier did not take all.
    if lookAgain != nil, activity.hold == .receipts || activity.hold == .storage { activity.hold = .carrier }
    guard activity != observed else { return }
    observed = activity
    observe(activity, clock.now)
  }

  private func perform(_ action: SenderSession.Action) {
    switch action {
    case .sendControl(let message): carrier?.send(control: message)
    case .dataReady: pumpData()
    case .progress(let state): report(state)
    case .accepted(let index, let offset):
      standing.accepted(index, durable: offset)
      let object = objects[index].object
      emit(.accepted(index: index, name: object.name, durable: offset, size: object.size))
      pumpData()
    case .verified(let index, let digest):
      standing.verified(index, size: objects[index].object.size)
      connection.handle(.progressed)
      encoder.release()
      emit(.verified(index: index, name: objects[index].object.name, digest))
      recordIfDue()
    case .finished:
      finish(.success(makeReport()))
    case .failed(let error):
      ended(with: error)
    }
  }

  private func pumpData() {
    guard let carrier, session != nil else { return }
    let isFull = carrier.pump { limit in
      session?.nextPacket(
        limit: limit, now: clock.now,
        read: { index, offset, count throws(TransferError) in
          try objects[index].source.read(at: offset, count: count)
        },
        encode: { index, segment, base throws(TransferError) in
          try self.code(segment, of: index, base: base)
        })
    }
    lookAgain = isFull ? clock.now + .milliseconds(250) : nil
  }

  private func endSession(_ error: TransferError) {
    isLosing = true
    handle(.carrierLost(error))
    isLosing = false
    meter = session?.meter ?? meter
    coding = session?.coding ?? coding
    session = nil
    carrier?.close()
    carrier = nil
    lookAgain = nil
    tellActivity()
  }

  /// The session has ended without success.
  private func ended(with error: TransferError) {
    meter = session?.meter ?? meter
    coding = session?.coding ?? coding
    session = nil
    switch error.code {
    case .disconnected where isLosing:
      break
    case .disconnected where error.isRetriable:
      // The device has forgotten the session.
      drop(error.message)
    case .refused where error.isRetriable:
      // The device is busy, perhaps with a session whose end it has yet to notice.
      drop(error.message, refusal: error)
    default:
      finish(.failure(error))
    }
  }

  // MARK: Reports

  private func report(_ state: ProgressState) {
    if standing.confirmed(state) { connection.handle(.progressed) }
    recordIfDue()
    if standing.isToBeTold(state, options.progressInterval, now: clock.now) { emit(.progress(state)) }
  }

  /// A record is written and fsynced on this very queue: not for each of many small objects.
  private func recordIfDue() {
    if standing.isRecordDue(options.journalInterval, now: clock.now) { recordNow() }
  }

  private func recordNow() {
    standing.wasRecorded(now: clock.now)
    guard let record else { return }
    var facts = (session?.coding ?? coding)?.facts ?? [:]
    facts["carrier"] = standing.carrier.rawValue
    facts["sessions"] = String(standing.sessions)
    if let peripheral = connection.peripheral {
      facts["maximumWriteLength"] = String(peripheral.maximumWriteValueLength(for: .withoutResponse))
    }
    record(standing.recorded, facts)
  }

  private func makeReport() -> PushReport {
    PushReport(
      progress: session?.progress(now: clock.now) ?? ProgressState(), carrier: standing.carrier,
      sessions: standing.sessions, resumedFrom: standing.resumedFrom ?? 0)
  }

  func emit(_ event: PushEvent) { events.yield(event) }

  // MARK: Time and end

  private func armTimer() {
    guard !isOver else { return }
    timer?.set(
      to: [link.deadline, session?.nextDeadline, lookAgain].compactMap(\.self).min())
  }

  private func timePassed() {
    guard !isOver else { return }
    let now = clock.now
    if let due = link.deadline, due <= now {
      // While the user lets nothing move, that nothing moves says nothing.
      handleLink(isPaused && session?.state == .streaming ? .answered : .deadline)
    }
    if let due = lookAgain, due <= now { pump() }
    if let due = session?.nextDeadline, due <= now { handle(.deadline) }
    armTimer()
  }

  private func finish(_ outcome: Outcome) {
    guard !isOver else { return }
    if connection.manager != nil { recordNow() }
    isOver = true
    timer?.cancel()
    carrier?.close()
    carrier = nil
    session = nil
    connection.stop()
    events.finish()
    continuation?.resume(returning: outcome)
    continuation = nil
  }
}

extension PushDriver: ConnectionClient {
  func connectionEnded(_ why: String) {
    guard !isOver else { return }
    endSession(TransferError(.disconnected, "the link to \(target) was lost: \(why)", isRetriable: true))
    guard !isOver else { return }
    handleLink(.ended)
    emit(isDeclining ? .declined(why) : .linkLost(why, confirmed: standing.durableNow))
  }

  func connectionEntered(_ state: ConnectionMachine.State) {
    guard !isOver else { return }
    switch state {
    case .finding: emit(.searching(target))
    case .connecting:
      standing.connecting()
      emit(.connecting(attempt: standing.attempts))
    case .ready: handleLink(.ready(hasPSM: connection.characteristic(HaulService.psm) != nil))
    case .failed(let error): finish(.failure(error))
    case .idle, .waitingForRadio, .discoveringServices, .discoveringCharacteristics, .restarting, .pausing:
      break
    }
    armTimer()
  }

  func connectionMemoryFailed(_ error: TransferError) { emit(.deviceNotRemembered(error)) }
}
