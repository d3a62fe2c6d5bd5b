internal import Radio

/// What a client wants to have advertised, what of it bluetoothd has, and what to ask it for next.
///
/// A value: inputs in, steps out. Each registration has a number and thereby a path of its own: nothing that an earlier one left behind is in the way of a
/// later one. A registration cannot be taken back before it was answered.
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
  /// The registration that counts, and whether it was answered.
  private var current: (number: Number, isRegistered: Bool)?
  private var last: Number = 0

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
    if let current, current.isRegistered { steps.append(.unregister(current.number)) }
    forget()
    return steps
  }

  /// The answer to a registration.
  mutating func registered(_ number: Number, _ result: Result<Void, RadioError>) -> [Step] {
    guard let current, current.number == number, !current.isRegistered else {
      if case .success = result { return [.unregister(number)] }
      return []
    }
    switch result {
    case .success:
      self.current = (number, true)
      defer { isUnanswered = false }
      return isUnanswered ? [.answer(nil)] : []
    case .failure(let error):
      self.current = nil
      guard isUnanswered else { return [.lost(error)] }
      forget()
      return [.answer(error)]
    }
  }

  /// The daemon has let go of a registration.
  mutating func released(_ number: Number) -> [Step] {
    guard let current, current.number == number, current.isRegistered else { return [] }
    self.current = nil
    return [.retryLater]
  }

  /// Registers again what is wanted and not there.
  mutating func retry() -> [Step] { wanted != nil && current == nil ? register() : [] }

  /// The adapter has its power back: the controller has forgotten everything that the daemon believes to be there.
  mutating func resume() -> [Step] {
    guard wanted != nil else { return [] }
    // One that is on its way was asked for with the power.
    if let current, !current.isRegistered { return [] }
    let leftover = current.map { [Step.unregister($0.number)] } ?? []
    return leftover + register()
  }

  /// The daemon has gone, or nothing of it can be reached.
  mutating func withdraw() -> [Step] {
    defer { forget() }
    return isUnanswered ? [.answer(.poweredDown)] : []
  }

  private mutating func register() -> [Step] {
    guard let wanted else { return [] }
    last += 1
    current = (last, false)
    return [.register(last, wanted)]
  }

  private mutating func forget() {
    wanted = nil
    isUnanswered = false
    current = nil
  }
}
