import Foundation

@testable import BulkTransfer

extension HaulWorld {
  func connect() {
    guard outcome == nil, !isConnected, sender == nil else { return }
    attempts += 1
    link += 1
    isConnected = true
    airFree = now
    hostCount = 0
    weakening = nil
    isGarbled = false
    lastControlToReceiver = now
    lastControlToSender = now
    toReceiver = ControlFragmenter()
    fromReceiver = ControlAssembler()
    channelFromReceiver = RecordDecoder()
    toSender = ControlFragmenter()
    fromSender = ControlAssembler()
    channelFromSender = RecordDecoder()
    startSender()
  }

  /// Takes the link away without telling the sender's session.
  func dropLink() {
    guard isConnected else { return }
    isConnected = false
    link += 1
    tellReceiver(.carrierLost)
  }

  /// The link breaks.
  func cut() {
    guard isConnected else { return }
    dropLink()
    tell(.carrierLost(TransferError(.disconnected, "the link was lost", isRetriable: true)))
  }

  /// Hands a packet of the data stream to the host.
  func transmit(_ record: Record) {
    let octets = schedule.carrier == .gatt ? record.body : RecordEncoder.encode(record)
    counts.dataOctets += octets.count
    hostCount += 1
    if let (interval, packets) = schedule.connectionEvents {
      occupyEvents(octets.count, interval: interval, packets: packets)
    } else {
      airFree = max(airFree, now) + airTime(octets.count)
    }
    events.add(.departed(link: link), at: airFree)
    if schedule.lostPackets.contains(counts.dataPackets.count - 1), record.kind == .stream { return }
    arriveAfterAir(octets)
  }

  /// Puts octets into the next connection events that have place, and the air's end behind the last of them.
  private func occupyEvents(_ octets: Int, interval: Int, packets: Int) {
    let next = now / interval + 1
    if airEvent.number < next { airEvent = (next, 0) }
    for _ in 0..<((octets + 243) / 244) {
      if airEvent.packets == packets { airEvent = (airEvent.number + 1, 0) }
      airEvent.packets += 1
    }
    airFree = airEvent.number * interval + airEvent.packets * interval / (packets + 1)
  }

  /// Brings octets to the receiver after what is on the air before them, with the faults of the link.
  func arriveAfterAir(_ octets: Data) {
    let at = max(airFree, now) + schedule.latency
    guard schedule.carrier == .gatt else {
      // A channel loses nothing and keeps no borders.
      let cut = random.pick(0...octets.count)
      if cut > 0 { events.add(.data(link: link, octets.prefix(cut)), at: at) }
      if cut < octets.count { events.add(.data(link: link, octets.dropFirst(cut)), at: at) }
      return
    }
    guard hasFaults else { return events.add(.data(link: link, octets), at: at) }
    if random.chance(schedule.faults.dataLoss) { return }
    var arriving = octets
    if random.chance(schedule.faults.dataDamage), !arriving.isEmpty {
      arriving = Data(arriving)
      arriving[random.pick(0...(arriving.count - 1))] ^= 1 << UInt8(random.pick(0...7))
    }
    events.add(.data(link: link, arriving), at: at)
    if random.chance(schedule.faults.dataDoubling) { events.add(.data(link: link, arriving), at: at) }
  }

  private func controlTime(after last: Int) -> Int {
    if let (interval, _) = schedule.connectionEvents { return max(last, (now / interval + 1) * interval) }
    let latency = random.pick(schedule.controlLatency.lowerBound...schedule.controlLatency.upperBound)
    return max(last, now + Int(Double(latency) * repetitions))
  }

  private func airTime(_ octets: Int) -> Int {
    Int(Double(octets * 1_000_000 / schedule.bytesPerSecond) * repetitions)
  }

  /// How often each packet is sent until it has arrived: at the end of a link that becomes weaker 19 of 20 are lost.
  private var repetitions: Double {
    guard let (start, end) = weakening, hasFaults, end > start else { return 1 }
    return 1 / (1 - 0.95 * min(1, Double(now - start) / Double(end - start)))
  }

  func sendToReceiver(_ message: Data) {
    counts.controlOctets += message.count
    guard isConnected else { return }
    if schedule.carrier == .l2cap {
      airFree = max(airFree, now) + airTime(message.count)
      counts.controlOctets += Record.headerCount
      return arriveAfterAir(RecordEncoder.encode(Record(kind: .control, body: message)))
    }
    toReceiver.enqueue(message)
    while let fragment = toReceiver.next(limit: limit) {
      if fragment.count > limit { violate("a fragment of \(fragment.count) octets at a limit of \(limit)") }
      counts.controlOctets += 1
      lastControlToReceiver = controlTime(after: lastControlToReceiver)
      for _ in 0..<copies() {
        events.add(.controlToReceiver(link: link, fragment), at: lastControlToReceiver)
      }
    }
  }

  func sendToSender(_ message: Data) {
    counts.controlOctets += message.count
    guard isConnected else { return }
    lastControlToSender = controlTime(after: lastControlToSender)
    if schedule.carrier == .l2cap {
      counts.controlOctets += Record.headerCount
      let octets = RecordEncoder.encode(Record(kind: .control, body: message))
      let cut = random.pick(1...octets.count)
      events.add(.channelToSender(link: link, octets.prefix(cut)), at: lastControlToSender)
      if cut < octets.count {
        events.add(.channelToSender(link: link, octets.dropFirst(cut)), at: lastControlToSender)
      }
      return
    }
    toSender.enqueue(message)
    while let fragment = toSender.next(limit: limit) {
      if fragment.count > limit {
        violate("a notification of \(fragment.count) octets at a limit of \(limit)")
      }
      counts.controlOctets += 1
      lastControlToSender = controlTime(after: lastControlToSender)
      for _ in 0..<copies() { events.add(.controlToSender(link: link, fragment), at: lastControlToSender) }
    }
  }

  /// How often a control fragment arrives.
  private func copies() -> Int {
    guard hasFaults else { return 1 }
    if random.chance(schedule.faults.controlLoss) { return 0 }
    return random.chance(schedule.faults.controlDoubling) ? 2 : 1
  }
}
