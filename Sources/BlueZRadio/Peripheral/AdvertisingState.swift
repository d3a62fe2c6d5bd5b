internal import Radio

/// What a client wants to have advertised, what of it bluetoothd has, and what to ask it for next.
///
/// A value: inputs in, steps out. Each registration has a number and thereby a path of its own: nothing that an earlier one left behind is in the way of a
/// later one. A registration cannot be taken back before it was answered, and one runs at a time, since the controller has few instances.
struct AdvertisingState: Sendable {
  typealias Number = UInt64

  enum Step: Hashable, Sendable {
    case register(Number, Advertisement)
    case unregister(Number)
    /// nil is success.
    case answer(RadioError?)
    /// Advertising has stopped without being asked to.
    case lost(RadioError)
    /// Wait a moment, then call ``retry()``.
    case retryLater
  }

  private var wanted: Advertisement?
  private var isUnanswered = false
  /// The registration that is being answered, and whether it is still the one that is wanted.
  private var running: (number: Number, isWanted: Bool)?
  /// What the daemon has.
  private var registered: Number?
  private var last: Number = 0

  /// Whether a registration has yet to be answered.
  var isRunning: Bool { running != nil }

  mutating func start(_ advertisement: Advertisement) -> [Step] {
    guard wanted == nil else {
      return [.answer(RadioError(.alreadyAdvertising, "this client is advertising already"))]
    }
    wanted = advertisement
    isUnanswered = true
    return register()
  }

  mutating func stop() -> [Step] {
    var steps: [Step] = []
    if isUnanswered { steps.append(.answer(RadioError(.cancelled, "advertising was stopped"))) }
    if let registered { steps.append(.unregister(registered)) }
    forget()
    return steps
  }

  /// The answer to a registration.
  mutating func registered(_ number: Number, _ result: Result<Void, RadioError>) -> [Step] {
    guard let running, running.number == number else {
      // One of a life of the daemon that is over.
      return []
    }
    self.running = nil
    guard running.isWanted else {
      if case .success = result { return [.unregister(number)] + register() }
      return register()
    }
    switch result {
    case .success:
      registered = number
      defer { isUnanswered = false }
      return isUnanswered ? [.answer(nil)] : []
    case .failure(let error):
      guard isUnanswered else { return [.lost(error)] }
      forget()
      return [.answer(error)]
    }
  }

  /// The daemon has let go of a registration.
  mutating func released(_ number: Number) -> [Step] {
    guard registered == number else { return [] }
    registered = nil
    return [.retryLater]
  }

  /// Registers again what is wanted and not there.
  mutating func retry() -> [Step] { register() }

  /// The adapter has its power back: the controller has forgotten everything that the daemon believes to be there.
  mutating func resume() -> [Step] {
    let leftover = registered.map { [Step.unregister($0)] } ?? []
    registered = nil
    return leftover + register()
  }

  /// The daemon has gone, or nothing of it can be reached.
  mutating func withdraw() -> [Step] {
    defer {
      forget()
      running = nil
    }
    return isUnanswered ? [.answer(.poweredDown)] : []
  }

  private mutating func register() -> [Step] {
    guard let wanted, registered == nil, running == nil else { return [] }
    last += 1
    running = (last, true)
    return [.register(last, wanted)]
  }

  private mutating func forget() {
    wanted = nil
    isUnanswered = false
    registered = nil
    running?.isWanted = false
  }
}
