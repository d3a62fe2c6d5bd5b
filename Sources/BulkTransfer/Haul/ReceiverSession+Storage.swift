internal import Foundation

extension ReceiverSession {
  /// Takes an answer of the storage; answers for an object that was left mean nothing any more.
  mutating func receive(_ report: StorageReport, now: Duration) {
    switch report.result {
    case .opened, .complete, .failed: opening.remove(report.object)
    case .base, .busy, .wrote, .synced, .readBack, .hashed, .committed: break
    }
    guard let object = incoming, object.number == report.object else { return }
    if case .failed = object.phase { return }
    incoming?.storageHeardAt = now
    if case .busy(let time) = report.result { return announceBusy(time, now: now) }
    incoming?.outstanding = max(0, object.outstanding - 1)
    switch report.result {
    case .busy: break
    case .base(let proof): incoming?.proof = proof
    case .opened(let durable): open(object, durable: durable, now: now)
    case .complete(let location): finish(object, location: location, isKnown: true, now: now)
    case .wrote(let offset):
      incoming?.wrote(through: offset, now: now)
      advance(now: now)
    case .synced(let offset):
      incoming?.synced(through: offset, now: now)
      advance(now: now)
    case .readBack(let offset):
      guard object.phase == .verifying, offset > object.readBack else { return }
      incoming?.readBack = offset
      readOn(now: now)
      if now - object.reportedAt >= .seconds(1) { sendReceipt(answering: 0, now: now) }
    case .hashed(let digest): compare(object, digest, now: now)
    case .committed(let location): finish(object, location: location, isKnown: false, now: now)
    case .failed(let error): fail(object, error, now: now)
    }
  }

  private mutating func open(_ object: Incoming, durable: UInt64, now: Duration) {
    guard object.phase == .opening else { return }
    guard durable <= object.offer.size else {
      return fail(
        object, TransferError(.storage, "the storage holds \(durable) of \(object.offer.size) bytes"),
        now: now)
    }
    epoch = epoch.next
    incoming?.opened(durable: durable, epoch: epoch)
    accept(now: now)
    // Where the base is missing the sender offers the object anew, with less.
    if incoming?.lacksBase != true || durable == object.offer.size {
      announceStart(of: object, from: durable)
    }
    advance(now: now)
  }

  mutating func announceStart(of object: Incoming, from offset: UInt64) {
    incoming?.isAnnounced = true
    emit(
      .event(
        .objectStarted(
          object.identity, index: Int(object.offer.index), count: Int(object.offer.count), from: offset)))
  }

  /// Makes durable what is due, and goes on to the comparison when everything is.
  mutating func advance(now: Duration) {
    if let offset = incoming?.takeSync(configuration, now: now) { request(.sync(through: offset), now: now) }
    guard let object = incoming else { return }
    if object.phase == .finishing, object.durable == object.offer.size {
      incoming?.phase = .verifying
      incoming?.readBack = 0
      sendReceipt(answering: 0, now: now)
      emit(.event(.progress(received: object.offer.size, durable: object.durable)))
      emit(.event(.verifying(object.identity)))
      readOn(now: now)
    } else {
      sendReceiptIfDue(now: now)
    }
  }

  private mutating func readOn(now: Duration) {
    guard let object = incoming else { return }
    let count = min(UInt64(configuration.readBackStep), object.offer.size - object.readBack)
    request(.readBack(at: object.readBack, count: Int(count)), now: now)
  }

  private mutating func compare(_ object: Incoming, _ digest: SHA256Digest, now: Duration) {
    guard object.phase == .verifying else { return }
    if digest == object.offer.sha256 {
      incoming?.readBack = object.offer.size
      incoming?.phase = .committing
      return request(.commit(digest), now: now)
    }
    request(.discard, now: now)
    end(
      object, .hashDiffers,
      TransferError(
        .verificationFailed,
        "the stored bytes have the SHA-256 \(digest), \(object.offer.sha256) was offered",
        isRetriable: true), now: now)
  }

  private mutating func finish(_ object: Incoming, location: String, isKnown: Bool, now: Duration) {
    switch (object.phase, isKnown) {
    case (.opening, true):
      epoch = epoch.next
      incoming?.opened(durable: object.offer.size, epoch: epoch)
      incoming?.isKnown = true
      incoming?.phase = .complete
      accept(now: now)
      announceStart(of: object, from: object.offer.size)
    case (.committing, false):
      incoming?.phase = .complete
    default:
      return
    }
    sendVerified(answering: 0)
    emit(.event(.objectVerified(object.identity, location: location)))
  }

  private mutating func fail(_ object: Incoming, _ error: TransferError, now: Duration) {
    switch object.phase {
    case .complete, .failed:
      return
    case .opening:
      if let code = HaulRefusalCode(opening: error) {
        incoming = nil
        send(.refused(HaulReply.Refusal(request: object.offer.request, code: code, text: error.message)))
        emit(.event(.objectFailed(object.identity, error)))
        return
      }
    case .waitingForSync, .streaming, .finishing, .verifying, .committing:
      break
    }
    request(.close, now: now)
    let code: HaulFailureCode =
      switch error.code {
      case .diskFull: .noSpace
      case .storage: .storage
      case .verificationFailed: .hashDiffers
      case .undecodable: .undecodable
      case .nameTaken: .nameTaken
      default: .internal
      }
    end(object, code, error, now: now)
  }

  private mutating func end(
    _ object: Incoming, _ code: HaulFailureCode, _ error: TransferError, now: Duration
  ) {
    incoming?.fail(code, error.message)
    let answered: UInt8 = object.phase == .opening ? object.offer.request : 0
    send(.failed(HaulReply.Failure(request: answered, code: code, text: error.message)))
    emit(.event(.objectFailed(object.identity, error)))
  }

  // MARK: Time

  /// When the session wants ``Input/deadline``, if nothing happens before; nil if it waits for nothing.
  public var nextDeadline: Duration? {
    Duration.earliest(
      Duration.earliest(syncDeadline, busyDeadline), Duration.earliest(reportDeadline, silenceDeadline))
  }

  private var syncDeadline: Duration? { incoming?.unsyncedSince.map { $0 + configuration.syncInterval } }

  private var busyDeadline: Duration? {
    guard let since = incoming?.waitsForStorageSince else { return nil }
    return since + configuration.busyInterval
  }

  private var reportDeadline: Duration? {
    guard let since = incoming?.unreportedSince, incoming?.takesData == true else { return nil }
    return since + configuration.receiptAge
  }

  private var silenceDeadline: Duration? {
    // The sender has nothing to say while it waits for the storage.
    guard peer != nil, incoming?.isWorking != true else { return nil }
    return max(heardAt, incoming?.storageHeardAt ?? heardAt) + configuration.silenceLimit
  }

  mutating func checkDeadlines(now: Duration) {
    if let sync = syncDeadline, sync <= now { advance(now: now) }
    if let report = reportDeadline, report <= now { sendReceipt(answering: 0, now: now) }
    if let busy = busyDeadline, busy <= now { announceBusy(configuration.busyInterval * 4, now: now) }
    if let silence = silenceDeadline, silence <= now {
      endSession(now: now)
      emit(.closeCarrier)
    }
  }

  /// Seconds that one BUSY may state.
  private static let busyLimit = 120

  private mutating func announceBusy(_ time: Duration, now: Duration) {
    guard let object = incoming, time > .zero else { return }
    // The next announcement comes well before this one has run out: it may be lost.
    incoming?.busyUntil = now + min(time, .seconds(Self.busyLimit)) / 2
    let number: UInt8 = object.phase == .opening ? object.offer.request : 0
    let seconds = UInt16(clamping: time.components.seconds + 1)
    send(.busy(request: number, seconds: min(seconds, UInt16(Self.busyLimit))))
  }
}

extension HaulRefusalCode {
  /// How an offer is declined whose object could not be opened; nil where the storage itself has failed.
  fileprivate init?(opening error: TransferError) {
    switch error.code {
    case .refused: self = .policy
    case .objectTooLarge: self = .tooLarge
    case .nameNotAcceptable: self = .badName
    case .nameTaken: self = .nameExists
    case .diskFull: self = .noSpace
    case .locked: self = .inUse
    default: return nil
    }
  }
}
