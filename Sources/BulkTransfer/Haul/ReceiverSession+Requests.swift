internal import Foundation

extension ReceiverSession {
  /// Takes a control message; what cannot be read is refused where it can be answered, and dropped otherwise.
  mutating func receiveControl(_ message: Data, now: Duration) {
    let decoded: HaulRequest
    do throws(HaulCodingError) {
      decoded = try HaulRequest(decoding: message)
    } catch {
      return refuseUnreadable(message, error)
    }
    switch decoded {
    case .hello(let hello): receive(hello, now: now)
    case .offer(let offer): receive(offer, now: now)
    case .query(let request): answer(request, now: now)
    case .rewind(let request): rewind(request, now: now)
    case .cancel(let request, _):
      leaveObject(now: now)
      sendReceipt(answering: request, now: now)
    case .close(let request):
      endSession(now: now)
      sendReceipt(answering: request, now: now)
    }
  }

  private mutating func refuseUnreadable(_ message: Data, _ error: HaulCodingError) {
    let start = [UInt8](message.prefix(2))
    // Only HELLO and OFFER have fields that can be wrong.
    guard start.count == 2, start[0] == 0x01 || start[0] == 0x02, start[1] != 0 else { return }
    refuse(start[1], .malformed, error.description)
  }

  private mutating func refuse(_ request: UInt8, _ code: HaulRefusalCode, _ text: String) {
    send(.refused(HaulReply.Refusal(request: request, code: code, text: text)))
  }

  private mutating func receive(_ hello: HaulRequest.Hello, now: Duration) {
    guard hello.lowestVersion <= Self.version, Self.version <= hello.highestVersion else {
      return refuse(hello.request, .version, "this receiver speaks version \(Self.version)")
    }
    if let unknown = hello.extensions.firstCritical {
      return refuse(hello.request, .feature, "the extension \(unknown.type) is not known")
    }
    let isNew = peer != hello.session
    if isNew {
      endSession(now: now)
      peer = hello.session
      emit(.event(.sessionStarted))
    }
    var extensions = configuration.coding.map { [$0.encoded] } ?? []
    // A repetition must not bring back an offer that another one has followed.
    let offer = OfferExtension.offer(in: hello.extensions).flatMap { offer in
      (isNew ? suits(offer) : incoming?.offer == offer) ? offer : nil
    }
    if offer != nil { extensions.append(OfferExtension.taken) }
    let top: UInt64 = (1 << 48) - 1
    send(
      .welcome(
        HaulReply.Welcome(
          request: hello.request, version: Self.version, features: 0, device: configuration.device,
          buffer: UInt32(clamping: configuration.buffer),
          largestSegmentPower: configuration.largestSegmentPower,
          largestObject: min(limits.largestObject, top), freeSpace: min(limits.freeSpace, top),
          extensions: extensions)))
    if let offer { receive(offer, now: now) }
  }

  /// Whether an offer that was made before WELCOME is one that WELCOME allows. Any other is left out, and the sender makes a better one.
  private func suits(_ offer: HaulRequest.Offer) -> Bool {
    guard offer.extensions.firstCritical == nil, offer.segmentPower <= configuration.largestSegmentPower,
      offer.size <= limits.largestObject, opening.count < Self.openingLimit
    else { return false }
    guard CodingExtension.value(in: offer.extensions) != nil else { return true }
    guard configuration.decodes, let coding = try? CodingRequest(in: offer.extensions) else { return false }
    return (coding.base?.power ?? 0) <= (configuration.basePower ?? 0)
  }

  private mutating func receive(_ offer: HaulRequest.Offer, now: Duration) {
    guard peer != nil else { return refuse(offer.request, .malformed, "there was no HELLO") }
    if let known = incoming, known.offer == offer { return repeatAnswer(known, now: now) }
    if let unknown = offer.extensions.firstCritical {
      return refuse(offer.request, .feature, "the extension \(unknown.type) is not known")
    }
    guard offer.segmentPower <= configuration.largestSegmentPower else {
      return refuse(
        offer.request, .malformed,
        "segments have at most 2 to the power of \(configuration.largestSegmentPower) octets")
    }
    guard offer.size <= limits.largestObject else {
      return refuse(
        offer.request, .tooLarge,
        "the object has \(offer.size) octets, at most \(limits.largestObject) are taken")
    }
    let coding: CodingRequest?
    do throws(HaulCodingError) {
      coding = try CodingRequest(in: offer.extensions)
    } catch {
      return refuse(offer.request, .malformed, "the coding cannot be read: \(error)")
    }
    guard opening.count < Self.openingLimit else {
      return refuse(offer.request, .policy, "the storage is busy with earlier offers")
    }
    leaveObject(now: now)
    objectNumber &+= 1
    opening.insert(objectNumber)
    let object = Incoming(number: objectNumber, offer: offer, coding: coding, configuration: configuration)
    incoming = object
    if let base = object.coding?.base { request(.findBase(base.identity), now: now) }
    request(.open(object.identity, discarding: offer.discardsStored), now: now)
  }

  /// The same OFFER has come again: its answer was lost, or is on its way.
  private mutating func repeatAnswer(_ object: Incoming, now: Duration) {
    switch object.phase {
    case .opening:
      break
    case .waitingForSync, .streaming, .finishing, .verifying, .committing:
      accept(now: now)
    case .complete:
      accept(now: now)
      sendVerified(answering: 0)
    case .failed(let code, let text):
      send(.failed(HaulReply.Failure(request: object.offer.request, code: code, text: text)))
    }
  }

  mutating func accept(now: Duration) {
    guard let object = incoming else { return }
    let room = noteReport(now: now)
    let standing: HaulReply.Accept.Standing =
      object.isKnown ? .complete : object.epochStart > 0 ? .resumed : .fresh
    send(
      .accept(
        HaulReply.Accept(
          request: object.offer.request, standing: standing, epoch: epoch, durable: object.epochStart,
          room: room, coding: object.acceptedCoding)))
  }

  /// Answers QUERY.
  private mutating func answer(_ request: UInt8, now: Duration) {
    switch incoming?.phase {
    case .complete: sendVerified(answering: request)
    case .failed(let code, let text):
      send(.failed(HaulReply.Failure(request: request, code: code, text: text)))
    case nil, .opening, .waitingForSync, .streaming, .finishing, .verifying, .committing:
      sendReceipt(answering: request, now: now)
    }
  }

  private mutating func rewind(_ request: UInt8, now: Duration) {
    switch incoming?.phase {
    case .waitingForSync, .streaming:
      // A repetition does not start another epoch.
      if incoming?.rewindRequest == request {
        sendLost(answering: request, now: now)
      } else {
        lose(.asked, answering: request, now: now)
      }
    case nil, .opening, .finishing, .verifying, .committing, .complete, .failed:
      answer(request, now: now)
    }
  }

  // MARK: Replies

  /// Notes that the sender is told how far things are; returns the room to state.
  mutating func noteReport(now: Duration) -> UInt16 { incoming?.report(now: now) ?? 0 }

  mutating func sendReceipt(answering request: UInt8, now: Duration) {
    let room = noteReport(now: now)
    var receipt = HaulReply.Receipt(
      request: request, epoch: epoch, state: .idle, received: 0, durable: 0, room: 0)
    if let object = incoming {
      receipt.state = object.receiptState
      receipt.received = receipt.state == .verifying ? object.readBack : object.received
      receipt.durable = object.durable
      receipt.room = room
    }
    send(.receipt(receipt))
  }

  mutating func sendReceiptIfDue(now: Duration) {
    // Asked for each packet: the object is not copied for that.
    guard incoming?.isReceiptDue(now: now) == true else { return }
    sendReceipt(answering: 0, now: now)
    guard let object = incoming else { return }
    emit(.event(.progress(received: object.received, durable: object.durable)))
  }

  mutating func sendVerified(answering request: UInt8) {
    guard let object = incoming else { return }
    send(
      .verified(
        HaulReply.Verified(
          request: request, index: object.offer.index, size: object.offer.size, sha256: object.offer.sha256)))
  }
}

extension Incoming {
  /// What a RECEIPT says about the phase.
  fileprivate var receiptState: HaulReply.Receipt.State {
    switch phase {
    case .opening: .idle
    case .waitingForSync: .waitingForSync
    case .streaming, .finishing: .streaming
    case .verifying, .committing: .verifying
    case .complete: .complete
    case .failed: .failed
    }
  }
}
