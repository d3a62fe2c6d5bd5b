/// Makes ``ProgressState`` values from what a sender session learns; may be handed on to the session after a reconnect.
public struct ProgressMeter: Hashable, Sendable {
  private var state = ProgressState()
  private var rate = RateEstimator()
  /// When the phase began or was last accounted.
  private var accountedTo: Duration
  /// Octets of the object from which on arrivals count: what has been counted before is not counted again after a loss.
  private var counted: UInt64 = 0
  /// What stops the clock of the transfer.
  private var isPaused = false
  private var isBusy = false

  /// Starts in the phase `connect`.
  public init(now: Duration) { accountedTo = now }

  /// The state at `now`.
  public func snapshot(now: Duration) -> ProgressState {
    var state = state
    state.elapsed.add(max(.zero, now - accountedTo), to: state.phase)
    state.bytesPerSecond = rate.windowRate(now: now)
    state.averageBytesPerSecond = rate.averageRate(now: now)
    if state.phase == .transfer, let pace = state.bytesPerSecond, pace > 0 {
      let left = state.totalBytes - min(state.totalBytes, state.receivedBytes)
      state.timeRemaining = .seconds(Double(left) / pace)
    }
    return state
  }

  /// Enters a phase.
  public mutating func enter(_ phase: ProgressState.Phase, now: Duration) {
    state.elapsed.add(max(.zero, now - accountedTo), to: state.phase)
    accountedTo = now
    guard phase != state.phase else { return }
    state.phase = phase
    if phase != .transfer { rate.stop(now: now) }
  }

  mutating func object(_ objects: [OutgoingObject], index: Int) {
    let object = objects[index]
    let isSame =
      state.objectIndex == index && state.objectName == object.name && state.totalBytes == object.size
    state.objectName = object.name
    state.objectIndex = index
    state.objectCount = objects.count
    state.totalBytes = object.size
    guard !isSame else { return }
    state.confirmedBytes = 0
    state.receivedBytes = 0
    state.resumedFrom = 0
    counted = 0
    state.verifiedBytes = 0
  }

  /// The receiver has said from where it goes on.
  mutating func accepted(durable: UInt64) {
    state.resumedFrom = durable
    state.confirmedBytes = durable
    state.receivedBytes = durable
    state.verifiedBytes = 0
    counted = durable
  }

  /// The first octets of a stream were handed over.
  mutating func flowing(now: Duration) {
    guard state.phase == .transfer, !isPaused, !isBusy else { return }
    rate.start(now: now)
  }

  mutating func received(_ received: UInt64, durable: UInt64, now: Duration) {
    if received > counted {
      rate.add(received - counted, now: now)
      counted = received
    }
    state.receivedBytes = received
    state.confirmedBytes = max(state.confirmedBytes, durable)
  }

  mutating func lost(offset: UInt64) {
    state.losses += 1
    state.receivedBytes = offset
  }

  mutating func readBack(_ octets: UInt64) { state.verifiedBytes = max(state.verifiedBytes, octets) }

  mutating func paused(_ paused: Bool, now: Duration) {
    isPaused = paused
    state.isPaused = paused
    if paused { rate.stop(now: now) }
  }

  /// The receiver is busy, and has got nowhere since `since`; nil seconds: no longer.
  mutating func busy(seconds: Int?, since: Duration) {
    isBusy = seconds != nil
    state.busySeconds = seconds
    if isBusy { rate.stop(now: since) }
  }

  /// Everything has arrived: the clock of the transfer stops.
  mutating func arrived(now: Duration) { rate.stop(now: now) }
}
