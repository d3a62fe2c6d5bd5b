internal import Foundation

/// A request that has not been answered.
struct PendingRequest: Sendable {
  enum Purpose: Hashable, Sendable {
    case hello
    case offer
    case query
    case rewind
    case cancel
    case close
  }

  var purpose: Purpose
  var number: UInt8
  var message: Data
  /// When it was sent first.
  var since: Duration
  /// When it is sent again.
  var repeatAt: Duration
  /// How long to wait after the next repetition.
  var pause: Duration
  /// Whether it was sent more than once: its answer measures no round trip then.
  var wasRepeated = false
  /// What was known about the stream when it was sent.
  var epoch: Epoch?
  var received: UInt64
  var sent: UInt64
  /// Whether the SYNC of that epoch was out.
  var hadSync: Bool
}

extension SenderSession {
  /// Sends a request; the one before, if any, is given up.
  mutating func ask(_ purpose: PendingRequest.Purpose, now: Duration) {
    lastRequest = Self.number(after: lastRequest)
    let number = lastRequest
    if purpose == .hello { earlyOffer = makeEarlyOffer(Self.number(after: number)) }
    let request: HaulRequest =
      switch purpose {
      case .hello:
        .hello(
          HaulRequest.Hello(
            request: number, lowestVersion: Self.version, highestVersion: Self.version, features: 0,
            session: sessionNumber,
            extensions: earlyOffer.flatMap(OfferExtension.bringing).map { [$0] } ?? []))
      case .offer: .offer(offer(number))
      case .query: .query(request: number)
      case .rewind: .rewind(request: number)
      case .cancel: .cancel(request: number, reason: 0)
      case .close: .close(request: number)
      }
    let message = request.encoded
    expect(purpose, number: number, message: message, now: now)
    emit(.sendControl(message))
  }

  /// Goes on as soon as the request is answered, and repeats it until then.
  mutating func expect(_ purpose: PendingRequest.Purpose, number: UInt8, message: Data, now: Duration) {
    pending = PendingRequest(
      purpose: purpose, number: number, message: message, since: now,
      repeatAt: now + configuration.requestRepeat, pause: configuration.requestRepeat * 2,
      epoch: run.epoch, received: run.received,
      sent: run.sent, hadSync: !run.needsSync)
  }

  static func number(after number: UInt8) -> UInt8 { number == 255 ? 1 : number + 1 }

  /// The first offer, as a receiver gets it that is like the one here.
  private func makeEarlyOffer(_ number: UInt8) -> Data? {
    var guess = self
    guess.peer = .usual
    guess.segmentPower = guess.segmentPower(for: guess.codingPlan)
    let message = HaulRequest.offer(guess.offer(number)).encoded
    return OfferExtension.bringing(message) == nil ? nil : message
  }

  func offer(_ number: UInt8) -> HaulRequest.Offer {
    let object = run.object
    return HaulRequest.Offer(
      request: number, discardsStored: discardsStored && run.index >= accepted,
      index: UInt16(truncatingIfNeeded: run.index),
      count: UInt16(truncatingIfNeeded: objects.count), segmentPower: segmentPower,
      receiptInterval: UInt32(clamping: configuration.receiptInterval), size: object.size,
      sha256: object.sha256, transfer: transfer, name: object.name,
      extensions: codingRequest.map { [$0.encoded] } ?? [])
  }

  /// Ends the wait for the request that `number` answers; 0 answers none.
  mutating func settle(_ number: UInt8, now: Duration) -> PendingRequest? {
    guard let request = pending, number != 0, request.number == number else { return nil }
    pending = nil
    if !request.wasRepeated, busySince == nil, request.purpose != .offer {
      // OFFER says more about the receiver's storage than about the way.
      roundTrip.add(now - request.since, now: now)
    }
    return request
  }
}
