extension SenderSession {
  /// When the session wants ``Input/deadline``, if nothing happens before; nil if it waits for nothing.
  public var nextDeadline: Duration? {
    Duration.earliest(Duration.earliest(endDeadline, pending?.repeatAt), queryDeadline)
  }

  /// When the session ends for want of an answer.
  private var endDeadline: Duration? {
    switch state {
    case .connecting, .ended: return nil
    case .closing, .leaving: return farewellDeadline
    case .greeting, .offering, .streaming, .verifying:
      if isPaused {
        // A receiver that answers the keep-alive is there; nothing else can be expected of it.
        return pending.map { max($0.since, busyUntil) + configuration.idleLimit }
      }
      return max(confirmedAt, busyUntil) + configuration.idleLimit
    }
  }

  /// When the receiver is asked for its state.
  private var queryDeadline: Duration? {
    guard state == .streaming || state == .verifying, pending == nil else { return nil }
    if isPaused { return run.waitsSince + configuration.keepAlive }
    let patience = min(roundTrip.patience(atLeast: .seconds(1)), configuration.idleLimit / 3)
    return run.waitsSince + patience
  }

  mutating func checkDeadlines(now: Duration) {
    if let end = endDeadline, end <= now { return giveUp(now: now) }
    if let request = pending, request.repeatAt <= now { sendAgain(request, now: now) }
    if let query = queryDeadline, query <= now { ask(.query, now: now) }
  }

  private mutating func sendAgain(_ request: PendingRequest, now: Duration) {
    pending?.repeatAt = now + request.pause
    pending?.pause = request.pause * 2
    pending?.wasRepeated = true
    emit(.sendControl(request.message))
  }

  private mutating func giveUp(now: Duration) {
    switch state {
    case .closing: end(.finished, now: now)
    case .leaving(let error): end(.failed(error), now: now)
    case .greeting, .offering, .streaming, .verifying:
      end(
        .failed(
          TransferError(
            .timedOut, "the device has confirmed nothing for \(configuration.idleLimit.inWords): \(standing)",
            advice: "bring it nearer or restart it, then resume", isRetriable: true)), now: now)
    case .connecting, .ended: break
    }
  }

  /// Where the transfer stands, for an error.
  private var standing: String {
    let object = run.object
    switch state {
    case .greeting: return "it did not answer HELLO"
    case .offering: return "it did not answer the offer of \(object.name)"
    case .verifying: return "it was verifying \(object.name), \(object.size) bytes"
    case .connecting, .streaming, .closing, .leaving, .ended:
      return
        "\(run.received) of \(object.size) bytes of \(object.name) have arrived, \(run.durable) are durable and \(run.inFlight) in flight"
    }
  }
}

extension Duration {
  /// The earlier of two times, of which either may be missing.
  static func earliest(_ one: Duration?, _ other: Duration?) -> Duration? {
    guard let one else { return other }
    guard let other else { return one }
    return one < other ? one : other
  }

  /// Seconds, with a fraction where there is one.
  var inWords: String {
    let seconds = self / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
  }
}

extension TransferError {
  /// What a refusal means to the user.
  init(_ refusal: HaulReply.Refusal, object: String) {
    let text = refusal.text.isEmpty ? "code \(refusal.code.rawValue)" : refusal.text
    switch refusal.code {
    case .version, .feature:
      self.init(
        .unsupportedDevice, "the device does not speak this version of the protocol: \(text)",
        advice: "update the older of the two")
    case .inUse, .policy:
      self.init(
        .refused, "the device does not take \(object) now: \(text)", advice: "try again later",
        isRetriable: true)
    case .malformed:
      self.init(
        .protocolViolation, "the device could not read the request: \(text)",
        advice: "update the device's receiver")
    default:
      self.init(.refused, "the device does not take \(object): \(text)")
    }
  }

  /// What a failure at the receiver means to the user.
  init(_ failure: HaulReply.Failure, object: OutgoingObject) {
    let text = failure.text.isEmpty ? "" : ": \(failure.text)"
    switch failure.code {
    case .hashDiffers:
      self.init(
        .verificationFailed,
        "what the device has stored of \(object.name) does not have the SHA-256 \(object.sha256)\(text)",
        advice: "nothing was activated and the device has discarded it; send it again", isRetriable: true)
    case .undecodable:
      self.init(
        .protocolViolation,
        "the device says that it cannot decode \(object.name), which was sent to it as it is\(text)",
        advice: "update the device's receiver, and report this if it is the newest")
    case .nameTaken:
      self.init(
        .refused, "the device has all of \(object.name) and cannot give it its name\(text)",
        advice:
          "it keeps what it has: rename the other file there and push again, or send it under another name")
    case .noSpace:
      self.init(
        .deviceStorage, "the device has no space left for \(object.name)\(text)",
        advice: "free some space on the device")
    default:
      self.init(
        .deviceStorage, "the device cannot store \(object.name)\(text)",
        advice: "check the device's storage, then resume",
        isRetriable: true)
    }
  }
}

extension Optional where Wrapped == HaulReply.Lost.Reason {
  /// The reason as part of a sentence.
  var phrase: String {
    switch self {
    case .checksum: "the check value of a segment was wrong"
    case .overflow: "more came than it has room for"
    case .asked: "data did not arrive"
    case .storage: "its storage failed"
    case nil: "unknown"
    }
  }
}
