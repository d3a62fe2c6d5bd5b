import Foundation

@testable import BulkTransfer

extension HaulWorld {
  func startSender() {
    senderNumber += 1
    senderTimerAt = Int.max
    told = ToldEdge()
    lastProgress = nil
    do {
      sender = try SenderSession(
        objects: outgoing, first: min(verifiedObjects, outgoing.count - 1), transfer: Array(1...16),
        sessionNumber: random.next(), configuration: schedule.configuration, discardsStored: restarts,
        accepted: acceptedObjects, coding: coding, meter: meter, now: time)
    } catch {
      outcome = .failed(error)
      return
    }
    tell(.carrierReady(schedule.carrier))
  }

  func tell(_ input: SenderSession.Input) {
    guard sender != nil else { return }
    sender?.handle(input, now: time)
    pumpSender()
  }

  /// Carries out actions, and hands over data while the host takes it.
  func pumpSender() {
    while sender != nil {
      while let action = sender?.nextAction() { perform(action) }
      guard sender != nil, isConnected else { break }
      while hostCount < schedule.hostDepth, now >= hostStallEnd, let record = nextPacket() {
        transmit(record)
      }
      guard let action = sender?.nextAction() else { break }
      perform(action)
    }
    armSenderTimer()
  }

  private func encode(_ object: Int, _ segment: Data, _ base: Range<UInt64>?) throws(TransferError) -> Data? {
    if let encode = schedule.coding?.encode { return try encode(object, segment, base) }
    return try encoder.encode(segment, against: self.base, base)
  }

  private func nextPacket() -> Record? {
    let before = sender?.run.sent ?? 0
    let packet = sender?.nextPacket(
      limit: limit, now: time,
      read: { object, offset, count throws(TransferError) in
        var contents = schedule.objects[object]
        if let changed = schedule.changedObjects, now >= changed.at { contents = changed.contents[object] }
        return contents.dropFirst(Int(offset)).prefix(count)
      },
      encode: { object, segment, base throws(TransferError) in
        try self.encode(object, segment, base)
      })
    guard let packet, let run = sender?.run, let window = sender?.window else { return nil }
    if packet.body.count > limit { violate("a packet of \(packet.body.count) octets at a limit of \(limit)") }
    if packet.body.isEmpty { violate("an empty packet") }
    guard packet.kind == .stream else {
      counts.syncs += 1
      note("SYNC \(run.epoch?.rawValue ?? 0) at \(before)")
      return packet
    }
    counts.dataPackets.append(packet.body.count)
    if counts.firstData == nil { counts.firstData = now }
    if run.sent > before {
      if run.sent > told.edge { violate("sent \(run.sent), the receiver has told an edge of \(told.edge)") }
      if run.inFlight > UInt64(window.size) {
        violate("\(run.inFlight) in flight, the window is \(window.size)")
      }
    }
    return packet
  }

  private func perform(_ action: SenderSession.Action) {
    switch action {
    case .sendControl(let message):
      let request = try? HaulRequest(decoding: message)
      note("-> \(request.map { "\($0)" } ?? "?")")
      if case .offer(let offer) = request, counts.offers.last != offer { counts.offers.append(offer) }
      sendToReceiver(message)
    case .dataReady: break
    case .progress(let state): check(state)
    case .accepted(let index, let durable):
      counts.resumedFrom.append(durable)
      lastProgress = nil
      if restarts, index >= acceptedObjects {
        // What is final stays; of anything else nothing is left.
        if durable > 0, durable < outgoing[index].size {
          violate("object \(index) begins anew at \(durable)")
        }
        self.durable[index] = 0
      }
      acceptedObjects = max(acceptedObjects, index + 1)
      // What was called durable has to be there again, unless it was found damaged and thrown away as a whole.
      if discarded.remove(index) != nil { self.durable[index] = 0 }
      if durable < self.durable[index] ?? 0 {
        violate("object \(index) goes on at \(durable), \(self.durable[index] ?? 0) was called durable")
      }
    case .verified(let index, let sha256):
      verifiedObjects = index + 1
      let object = outgoing[index]
      if sha256 != object.sha256 || flash.contents(of: object.name) != schedule.objects[index] {
        violate("\(object.name) is called verified and is not there")
      }
    case .finished:
      note("finished")
      outcome = .verified
    case .failed(let error):
      note("failed: \(error)")
      end(error)
    }
  }

  private func end(_ error: TransferError) {
    lastError = error
    meter = sender?.meter
    coding = sender?.coding
    sender = nil
    senderNumber += 1
    dropLink()
    if error.isRetriable, attempts < schedule.attempts {
      events.add(.connect, at: now + schedule.reconnectDelay)
    } else {
      outcome = .failed(error)
    }
  }

  private func check(_ state: ProgressState) {
    counts.progress.append(state)
    if let last = lastProgress, last.objectIndex == state.objectIndex {
      if state.confirmedBytes < last.confirmedBytes {
        violate("progress went from \(last.confirmedBytes) to \(state.confirmedBytes)")
      }
      if state.confirmedBytes > last.confirmedBytes { counts.lastConfirmed = now }
    }
    if state.confirmedBytes > state.totalBytes || (state.phase != .done && state.fraction >= 1) {
      violate("progress says \(state.confirmedBytes) of \(state.totalBytes) in \(state.phase)")
    }
    if state.phase == .transfer { durable[state.objectIndex] = state.confirmedBytes }
    counts.losses = state.losses
    lastProgress = state
  }

  private func armSenderTimer() {
    guard let deadline = sender?.nextDeadline else { return }
    let at = max(now, deadline.microseconds)
    guard at < senderTimerAt else { return }
    senderTimerAt = at
    events.add(.senderTimer(session: senderNumber), at: at)
  }

  // MARK: From the receiver

  func senderHears(_ fragment: Data) {
    if case .message(let message) = fromReceiver.receive(fragment) { senderReceives(message) }
  }

  func senderHearsChannel(_ bytes: Data) {
    guard let records = try? channelFromReceiver.decode(bytes) else {
      return violate("the channel is broken")
    }
    for record in records where record.kind == .control { senderReceives(record.body) }
  }

  private func senderReceives(_ message: Data) {
    if let reply = try? HaulReply(decoding: message) {
      note("<- \(reply)")
      switch reply {
      case .accept(let accept):
        counts.accepts.append(accept)
        counts.streamOctetsAtAccept.append(streamOctets)
        tellEdge(accept.epoch, accept.durable, accept.room)
      case .lost(let lost): tellEdge(lost.epoch, lost.offset, lost.room)
      case .receipt(let receipt) where receipt.state == .streaming || receipt.state == .waitingForSync:
        tellEdge(receipt.epoch, receipt.received, receipt.room)
      default: break
      }
    }
    tell(.control(message))
  }

  private func tellEdge(_ epoch: Epoch, _ received: UInt64, _ room: UInt16) {
    let edge = (received / 256 + UInt64(room)) * 256
    if let known = told.epoch, known == epoch {
      told.edge = max(told.edge, edge)
    } else if told.epoch == nil || told.epoch.map(epoch.isNewer) == true {
      told = ToldEdge(epoch: epoch, edge: edge)
    }
  }
}

extension Duration {
  /// Whole microseconds, rounded up.
  var microseconds: Int {
    let (seconds, attoseconds) = components
    return Int(seconds) * 1_000_000 + Int((attoseconds + 999_999_999_999) / 1_000_000_000_000)
  }
}
