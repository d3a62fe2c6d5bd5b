internal import Foundation

extension SenderSession {
  /// Takes a control message; what cannot be read is dropped, since repetition repairs it.
  mutating func receive(_ message: Data, now: Duration) {
    guard let reply = try? HaulReply(decoding: message) else { return }
    switch reply {
    case .welcome(let welcome): receive(welcome, now: now)
    case .accept(let accept): receive(accept, now: now)
    case .receipt(let receipt): receive(receipt, now: now)
    case .lost(let lost): receive(lost, now: now)
    case .verified(let verified): receive(verified, now: now)
    case .refused(let refusal): receive(refusal, now: now)
    case .failed(let failure): receive(failure, now: now)
    case .busy(let request, let seconds): receiveBusy(request, seconds: Int(seconds), now: now)
    }
  }

  /// Notes that the receiver has got somewhere.
  mutating func noteConfirmation(now: Duration) {
    confirmedAt = now
    run.waitsSince = now
    if state == .streaming || state == .verifying { hasMoved = true }
    guard busySince != nil else { return }
    // What BUSY has promised still holds: the receiver takes what its buffer holds while its storage works.
    busySince = nil
    meter.working(now: now)
  }

  // MARK: WELCOME and ACCEPT

  private mutating func receive(_ welcome: HaulReply.Welcome, now: Duration) {
    guard state == .greeting, settle(welcome.request, now: now) != nil else { return }
    noteConfirmation(now: now)
    guard welcome.version == Self.version, welcome.extensions.firstCritical == nil else {
      let what =
        welcome.extensions.firstCritical.map { "needs the extension \($0.type)" }
        ?? "speaks version \(welcome.version) of the protocol"
      return end(
        .failed(
          TransferError(
            .unsupportedDevice, "the device \(what), this program speaks version \(Self.version) without it",
            advice: "update the older of the two")), now: now)
    }
    guard let limits = PeerLimits(welcome) else {
      return end(
        .failed(
          TransferError(
            .unsupportedDevice,
            "the device takes segments of 2 to the power of \(welcome.largestSegmentPower) and buffers \(welcome.buffer) bytes",
            advice: "a receiver has to take segments of 4096 bytes")), now: now)
    }
    peer = limits
    if let object = objects[run.index...].first(where: { $0.size > welcome.largestObject }) {
      return end(
        .failed(
          TransferError(
            .refused,
            "\(object.name) has \(object.size) bytes, the device takes at most \(welcome.largestObject)",
            advice: "send a smaller file")), now: now)
    }
    if !goOnWithEarlyOffer(welcome, now: now) { offerObject(now: now) }
  }

  mutating func offerObject(now: Duration) {
    state = .offering
    segmentPower = segmentPower(for: codingPlan)
    meter.enter(.prepare, now: now)
    ask(.offer, now: now)
    report(now: now)
  }

  /// Waits for the answer to the offer that went with HELLO, if the receiver has taken it and it is the one that would be made now.
  private mutating func goOnWithEarlyOffer(_ welcome: HaulReply.Welcome, now: Duration) -> Bool {
    guard let early = earlyOffer else { return false }
    earlyOffer = nil
    let number = Self.number(after: lastRequest)
    segmentPower = segmentPower(for: codingPlan)
    let isStillRight = HaulRequest.offer(offer(number)).encoded == early
    guard isStillRight, OfferExtension.isTaken(welcome.extensions) else {
      // The receiver may have taken it, also where this WELCOME, which may answer a repetition, does not say so: another offer needs a number of its own.
      if !isStillRight { lastRequest = number }
      return false
    }
    lastRequest = number
    state = .offering
    expect(.offer, number: lastRequest, message: early, now: now)
    report(now: now)
    return true
  }

  private mutating func receive(_ accept: HaulReply.Accept, now: Duration) {
    guard state == .offering, settle(accept.request, now: now) != nil else { return }
    noteConfirmation(now: now)
    let size = run.object.size
    guard accept.durable <= size, accept.standing != .complete || accept.durable == size,
      accept.standing != .fresh || accept.durable == 0
    else {
      return violate("it holds \(accept.durable) bytes of an object of \(size)", now: now)
    }
    let (coding, isFinal) = granted(accept)
    // Nothing was sent yet. What is there whole needs no coding.
    guard isFinal || accept.durable == size else { return offerObject(now: now) }
    run.accepted(coding)
    accepted = max(accepted, run.index + 1)
    window = Self.freshWindow(configuration)
    run.raiseDurable(accept.durable)
    run.restart(
      epoch: accept.epoch, offset: accept.durable, room: accept.room, power: segmentPower, now: now)
    meter.accepted(durable: accept.durable, coding: run.streamCoding, shortfall: codingShortfall)
    emit(.accepted(index: run.index, durable: accept.durable))
    if accept.durable == size {
      beginVerification(now: now)
    } else {
      state = .streaming
      meter.enter(.transfer, now: now)
      emit(.dataReady)
    }
    report(now: now)
  }

  private mutating func beginVerification(now: Duration) {
    guard state == .streaming || state == .offering else { return }
    state = .verifying
    hasMoved = true
    meter.arrived(now: now)
    meter.enter(.verify, now: now)
  }

  // MARK: RECEIPT and LOST

  private mutating func receive(_ receipt: HaulReply.Receipt, now: Duration) {
    let request = settle(receipt.request, now: now)
    switch state {
    case .closing:
      if request?.purpose == .close { end(.finished, now: now) }
    case .leaving(let error):
      if request?.purpose == .cancel { end(.failed(error), now: now) }
    case .streaming, .verifying:
      follow(receipt, answering: request, now: now)
    case .connecting, .greeting, .offering, .ended:
      break
    }
  }

  private mutating func follow(
    _ receipt: HaulReply.Receipt, answering request: PendingRequest?, now: Duration
  ) {
    guard let epoch = run.epoch else { return }
    switch receipt.state {
    case .idle:
      // Only an answer counts: a receipt of the time before the offer may still be on its way.
      guard request != nil else { return }
      end(
        .failed(
          TransferError(
            .disconnected, "the device has ended the session and no longer receives \(run.object.name)",
            advice: "connect again", isRetriable: true)), now: now)
    case .streaming, .waitingForSync:
      guard !epoch.isNewer(than: receipt.epoch) else { return }
      guard receipt.durable <= receipt.received else {
        return violate(
          "\(receipt.durable) bytes are durable where \(receipt.received) have arrived", now: now)
      }
      if receipt.epoch.isNewer(than: epoch) {
        // The LOST of that epoch did not arrive.
        guard receipt.state == .waitingForSync else { return }
        startAgain(
          epoch: receipt.epoch, offset: receipt.received, durable: receipt.durable, room: receipt.room,
          reason: .asked, now: now)
      } else if receipt.epoch == epoch {
        followStream(receipt, answering: request, now: now)
      }
    case .verifying:
      guard receipt.epoch == epoch else { return }
      followVerification(receipt, now: now)
    case .complete, .failed:
      // The word itself is VERIFIED or FAILED, and it has been lost: ask for it.
      guard receipt.epoch == epoch else { return }
      if pending == nil { ask(.query, now: now) }
    }
  }

  private mutating func followStream(
    _ receipt: HaulReply.Receipt, answering request: PendingRequest?, now: Duration
  ) {
    // Also what was stored before: the epoch begins behind it.
    guard receipt.durable <= run.sent else {
      return violate("\(receipt.durable) bytes are durable where \(run.sent) were sent", now: now)
    }
    // A receiver may count more than was sent: a packet that came twice. The check after the segment will tell it.
    let (octets, carried, sample) = run.confirm(
      received: min(receipt.received, run.sent),
      edge: RightEdge.offset(received: receipt.received, room: receipt.room), now: now)
    let isDurableProgress = receipt.durable > run.durable
    run.raiseDurable(receipt.durable)
    if let sample { roundTrip.add(sample, now: now) }
    if octets > 0 {
      window.confirmed(
        carried, wasUsed: run.takeWindowWasUsed(),
        isQueueing: roundTrip.isQueueing)
    }
    if octets > 0 || isDurableProgress {
      if pending?.purpose == .query { pending = nil }
      noteConfirmation(now: now)
      meter.received(run.received, durable: run.durable, now: now)
      if run.hasArrived { beginVerification(now: now) }
      report(now: now)
    }
    if state == .streaming, run.isBlocked, !isPaused { emit(.dataReady) }
    if let request { weigh(receipt, answering: request, now: now) }
  }

  /// Decides after the answer to a QUERY whether data was lost without a word.
  private mutating func weigh(
    _ receipt: HaulReply.Receipt, answering request: PendingRequest, now: Duration
  ) {
    run.waitsSince = now
    guard request.purpose == .query, request.epoch == run.epoch, !isPaused, state == .streaming,
      receipt.received <= request.received
    else { return }
    // What was on its way before the question has not arrived: it, or the SYNC before it, is gone.
    let lostSync = receipt.state == .waitingForSync && request.hadSync
    if lostSync || request.sent > receipt.received { ask(.rewind, now: now) }
  }

  private mutating func followVerification(_ receipt: HaulReply.Receipt, now: Duration) {
    let size = run.object.size
    guard run.sent == size, receipt.received <= size else {
      return violate("it verifies \(size) bytes where \(run.sent) were sent", now: now)
    }
    guard receipt.durable <= size else {
      return violate("\(receipt.durable) bytes are durable of an object of \(size)", now: now)
    }
    let before = meter
    _ = run.confirm(received: size, edge: size, now: now)
    run.raiseDurable(receipt.durable)
    meter.received(size, durable: run.durable, now: now)
    beginVerification(now: now)
    meter.readBack(receipt.received)
    guard meter != before else { return }
    noteConfirmation(now: now)
    report(now: now)
  }

  private mutating func receive(_ lost: HaulReply.Lost, now: Duration) {
    _ = settle(lost.request, now: now)
    guard state == .streaming || state == .verifying, let epoch = run.epoch, lost.epoch.isNewer(than: epoch)
    else { return }
    startAgain(
      epoch: lost.epoch, offset: lost.offset, durable: nil, room: lost.room, reason: lost.reason, now: now)
  }

  private mutating func startAgain(
    epoch: Epoch, offset: UInt64, durable: UInt64?, room: UInt16, reason: HaulReply.Lost.Reason, now: Duration
  ) {
    guard offset <= max(run.farthest, run.received), offset < run.object.size || run.hasArrived else {
      return violate("it asks for data from \(offset) on where \(run.farthest) bytes were sent", now: now)
    }
    run.lost(at: offset, reason: reason)
    guard run.losses <= configuration.lostLimit else {
      return leave(
        TransferError(
          .protocolViolation,
          "the device has lost data \(run.losses) times at offset \(offset) of \(run.object.name): \(run.lastLoss.phrase)",
          advice: "check the device's buffer and storage", isRetriable: true), now: now)
    }
    if let durable { run.raiseDurable(durable) }
    if run.coding != nil, run.losses >= Self.codedLosses {
      meter.lost(offset: offset)
      coding.lower(from: segmentPower)
      return offerAnew(now: now)
    }
    window.lost()
    run.restart(epoch: epoch, offset: offset, room: room, power: segmentPower, now: now)
    meter.lost(offset: offset)
    if pending?.purpose == .query || pending?.purpose == .rewind { pending = nil }
    state = .streaming
    meter.enter(.transfer, now: now)
    report(now: now)
    if !isPaused { emit(.dataReady) }
  }

  // MARK: Outcomes

  private mutating func receive(_ verified: HaulReply.Verified, now: Duration) {
    guard state == .streaming || state == .verifying, Int(verified.index) == run.index else { return }
    _ = settle(verified.request, now: now)
    let object = run.object
    guard verified.size == object.size, verified.sha256 == object.sha256 else {
      return leave(
        TransferError(
          .verificationFailed,
          "the device has verified \(verified.size) bytes with SHA-256 \(verified.sha256), \(object.name) has \(object.size) with \(object.sha256)",
          advice: "do not activate what the device holds"), now: now)
    }
    noteConfirmation(now: now)
    meter.received(object.size, durable: object.size, now: now)
    meter.readBack(object.size)
    beginVerification(now: now)
    emit(.verified(index: run.index, sha256: object.sha256))
    pending = nil
    let next = run.index + 1
    guard next < objects.count else {
      report(now: now)
      state = .closing
      farewellDeadline = now + configuration.farewellLimit
      return ask(.close, now: now)
    }
    goOn(to: next)
    offerObject(now: now)
  }

  private mutating func receive(_ refusal: HaulReply.Refusal, now: Duration) {
    guard settle(refusal.request, now: now) != nil else { return }
    switch state {
    case .greeting, .offering, .streaming, .verifying:
      end(.failed(TransferError(refusal, object: run.object.name)), now: now)
    case .closing: end(.finished, now: now)
    case .leaving(let error): end(.failed(error), now: now)
    case .connecting, .ended: break
    }
  }

  private mutating func receive(_ failure: HaulReply.Failure, now: Duration) {
    let request = settle(failure.request, now: now)
    if state == .streaming || state == .verifying, blamesCoding(failure.code) { return offerAnew(now: now) }
    switch state {
    case .offering where request != nil, .streaming, .verifying:
      end(.failed(TransferError(failure, object: run.object)), now: now)
    case .connecting, .greeting, .offering, .closing, .leaving, .ended: break
    }
  }

  private mutating func receiveBusy(_ number: UInt8, seconds: Int, now: Duration) {
    switch state {
    case .offering, .streaming, .verifying: break
    case .connecting, .greeting, .closing, .leaving, .ended: return
    }
    // BUSY that answers an earlier request says nothing about this one.
    if number != 0, pending?.number != number { return }
    hasMoved = true
    let since = busySince ?? now
    let end = min(now + .seconds(min(seconds, Self.busyLimit)), since + .seconds(Self.busyTotal))
    meter.busy(seconds: seconds, quietSince: confirmedAt)
    busySince = since
    busyUntil = max(busyUntil, end)
    run.waitsSince = now
    if let request = pending, request.number == number {
      pending?.repeatAt = max(request.repeatAt, now + .seconds(min(seconds, 4)))
      pending?.wasRepeated = true
    }
    report(now: now)
  }

  /// Seconds that one BUSY counts at most.
  private static let busyLimit = 120
  /// Seconds that BUSY messages in a row count at most.
  private static let busyTotal = 600

  private mutating func violate(_ what: String, now: Duration) {
    leave(
      TransferError(
        .protocolViolation, "the device says that \(what)",
        advice: "update the device's receiver, and report this if it is the newest"), now: now)
  }
}

extension PeerLimits {
  /// Nil where the receiver does not take the smallest segments.
  fileprivate init?(_ welcome: HaulReply.Welcome) {
    let lowest = SegmentLayout.powers.lowerBound
    guard welcome.largestSegmentPower >= lowest, welcome.buffer >= 1 << UInt32(lowest) else { return nil }
    bufferPower = Self.power(of: welcome.buffer)
    segmentPower = min(welcome.largestSegmentPower, bufferPower, SegmentLayout.powers.upperBound)
    coding = CodingSupport(in: welcome.extensions)
  }
}
