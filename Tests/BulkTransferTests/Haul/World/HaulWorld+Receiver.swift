import Foundation

@testable import BulkTransfer

extension HaulWorld {
  func tellReceiver(_ input: ReceiverSession.Input) {
    receiver.handle(input, now: time)
    counts.peakBuffer = max(counts.peakBuffer, receiver.bufferedBytes)
    if receiver.bufferedBytes > receiver.configuration.buffer {
      violate(
        "the receiver holds \(receiver.bufferedBytes) octets, its buffer has \(receiver.configuration.buffer)"
      )
    }
    while let action = receiver.nextAction() {
      switch action {
      case .sendControl(let message): sendToSender(message)
      case .storage(let request):
        storageQueue.append(request)
        runStorage()
      case .event(let event):
        note("receiver: \(event)")
        counts.events.append(event)
        if case .objectFailed(let object, let error) = event, error.code == .verificationFailed {
          // What was found damaged is thrown away, whether or not the sender hears of it.
          for index in outgoing.indices where outgoing[index].sha256 == object.sha256 {
            discarded.insert(index)
          }
        }
      case .closeCarrier: cut()
      }
    }
    armReceiverTimer()
  }

  /// Carries out what waits, one request after another.
  private func runStorage() {
    while !isStorageBusy, !storageQueue.isEmpty {
      let (report, busy) = worker.perform(storageQueue.removeFirst())
      let wait = busy.microseconds
      guard let report else { continue }
      isStorageBusy = true
      if wait > 500_000 {
        events.add(.storage(life: life, StorageReport(object: report.object, result: .busy(busy))), at: now)
      }
      events.add(.storage(life: life, report), at: now + wait)
    }
  }

  func storageAnswers(_ report: StorageReport) {
    if case .busy = report.result {} else { isStorageBusy = false }
    if let limits = try? flash.limits() { receiver.limits = limits }
    tellReceiver(.storage(report))
    runStorage()
  }

  private func armReceiverTimer() {
    guard let deadline = receiver.nextDeadline else { return }
    let at = max(now, deadline.microseconds)
    guard at < receiverTimerAt else { return }
    receiverTimerAt = at
    events.add(.receiverTimer(life: life), at: at)
  }

  // MARK: From the sender

  /// Data for the receiver: a packet of the data characteristic, or octets of the channel.
  func arrive(_ bytes: Data) {
    if now < stuckUntil { return events.add(.data(link: link, bytes), at: stuckUntil) }
    guard schedule.carrier == .l2cap else {
      // A deaf device loses what the link layer has delivered.
      if now >= deafUntil || !hasFaults { tellReceiver(.packet(bytes)) }
      return
    }
    guard let records = try? channelFromSender.decode(bytes) else {
      return isGarbled ? cut() : violate("the channel is broken")
    }
    let heard = records.filter { $0.kind != .stream || now >= deafUntil || !hasFaults }
    if !heard.isEmpty { tellReceiver(.records(heard)) }
  }

  func controlArrives(_ fragment: Data) {
    if now < stuckUntil { return events.add(.controlToReceiver(link: link, fragment), at: stuckUntil) }
    if case .message(let message) = fromSender.receive(fragment) { tellReceiver(.control(message)) }
  }
}
