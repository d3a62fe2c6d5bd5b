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
  /// Since when nothing has arrived, while the receiver says that it is busy.
  private var quietSince: Duration?
  /// How long nothing may arrive before that time is the receiver's and not the transfer's.
  private static let quietLimit = Duration.seconds(1)

  /// Starts in the phase `connect`.
  public init(now: Duration) { accountedTo = now }

  /// The state at `now`.
  public func snapshot(now: Duration) -> ProgressState {
    var state = state
    state.elapsed.add(max(.zero, now - accountedTo), to: state.phase)
    var measured = now
    if let quiet = quietSince, now - quiet > Self.quietLimit { measured = quiet }
    state.bytesPerSecond = rate.windowRate(now: measured)
    state.averageBytesPerSecond = rate.averageRate(now: measured)
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
    if phase != .transfer { rate.stop(at: now) }
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
  mutating func accepted(durable: UInt64, coding: StreamCoding, shortfall: CodingShortfall?) {
    state.coding = coding
    state.codingShortfall = shortfall
    state.resumedFrom = durable
    state.confirmedBytes = durable
    state.receivedBytes = durable
    state.verifiedBytes = 0
    counted = durable
  }

  /// The first octets of a stream were handed over.
  mutating func flowing(now: Duration) {
    guard state.phase == .transfer, !isPaused else { return }
    rate.start(now: now)
  }

  /// Octets of a data stream went to the carrier.
  mutating func handedOver(_ octets: Int) { state.streamBytes += UInt64(octets) }

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

  /// The user pauses; so much was in flight when something was last confirmed.
  mutating func paused(inFlight: UInt64, confirmedAt: Duration, now: Duration) {
    isPaused = true
    state.isPaused = true
    // What is in flight will arrive, and takes its time for it.
    let drain = rate.windowRate(now: confirmedAt).map { Duration.seconds(Double(inFlight) / $0) } ?? .zero
    rate.stop(at: max(now, confirmedAt + drain))
  }

  mutating func resumed() {
    isPaused = false
    state.isPaused = false
  }

  /// The receiver is busy, and nothing has arrived since `quiet`.
  mutating func busy(seconds: Int, quietSince quiet: Duration) {
    state.busySeconds = seconds
    quietSince = quietSince ?? quiet
  }

  /// Something was confirmed: the receiver is at work again. The time for which it was quiet is no transfer time.
  mutating func working(now: Duration) {
    state.busySeconds = nil
    guard let quiet = quietSince else { return }
    quietSince = nil
    guard now - quiet > Self.quietLimit, rate.isRunning else { return }
    rate.stop(at: quiet)
    rate.start(now: now)
  }

  /// The session has ended before its time, and nothing was confirmed since `confirmed`.
  ///
  /// The silence until a loss is noticed, some seconds of a supervision timeout, is no transfer time: that ends with the last confirmation
  /// and begins again with the first octets over the next link. Silence that is expected, as in a pause, stays with the phase.
  mutating func broken(confirmedAt confirmed: Duration, isExpected: Bool, now: Duration) {
    if state.phase == .transfer, !isExpected { enter(.connect, now: min(max(confirmed, accountedTo), now)) }
    rate.stop(at: confirmed)
    quietSince = nil
    state.busySeconds = nil
    enter(.connect, now: now)
  }

  /// Everything has arrived: the clock of the transfer stops.
  mutating func arrived(now: Duration) { rate.stop(at: now) }
}
