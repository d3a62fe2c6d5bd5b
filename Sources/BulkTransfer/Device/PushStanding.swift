/// Where a push stands, over all its links: what the device has accepted, calls durable and has verified, and when that was recorded and told.
struct PushStanding: Sendable {
  /// Octets of each object that the device calls durable.
  private(set) var durable: [UInt64]
  /// Objects, from the first, of which the device has said in this run where they stand.
  private(set) var accepted = 0
  /// Objects, from the first, that the device has verified.
  private(set) var verified = 0
  /// Where the first object began that was accepted.
  private(set) var resumedFrom: UInt64?
  /// Sessions that have begun.
  private(set) var sessions = 0
  /// Connections that were asked for.
  private(set) var attempts = 0
  /// What the newest session is carried by.
  private(set) var carrier = CarrierKind.gatt
  private var recordedAt: Duration?
  private var told: (phase: ProgressState.Phase, at: Duration)?

  init(objects: Int) { durable = [UInt64](repeating: 0, count: objects) }

  mutating func connecting() { attempts += 1 }

  mutating func sessionBegan(on carrier: CarrierKind) {
    sessions += 1
    self.carrier = carrier
  }

  mutating func accepted(_ index: Int, durable offset: UInt64) {
    accepted = max(accepted, index + 1)
    if resumedFrom == nil { resumedFrom = offset }
    durable[index] = offset
  }

  mutating func verified(_ index: Int, size: UInt64) {
    verified = index + 1
    durable[index] = size
  }

  /// Notes what a state confirms; returns whether that is more than before.
  mutating func confirmed(_ state: ProgressState) -> Bool {
    guard state.confirmedBytes > durable[state.objectIndex] else { return false }
    durable[state.objectIndex] = state.confirmedBytes
    return true
  }

  /// Octets durable of the object under way.
  var durableNow: UInt64 { durable[min(verified, durable.count - 1)] }

  /// What is recorded: of objects that were not accepted in this run, what an earlier one wrote still holds.
  var recorded: [UInt64] { Array(durable.prefix(accepted)) }

  /// Whether it is time for a record.
  func isRecordDue(_ interval: Duration, now: Duration) -> Bool {
    recordedAt.map { now - $0 >= interval } ?? true
  }

  mutating func wasRecorded(now: Duration) { recordedAt = now }

  /// Whether a state is to be told now: the first one of each phase is, and one an interval.
  mutating func isToBeTold(_ state: ProgressState, _ interval: Duration, now: Duration) -> Bool {
    if let told, told.phase == state.phase, now - told.at < interval { return false }
    told = (state.phase, now)
    return true
  }
}
