/// What may be on its way to one central: so much that the link never waits for more, so little that bluetoothd's memory does not grow.
///
/// bluetoothd takes every value at once and queues it without a bound, so what it has taken says nothing about the air. Evidence does: it sends a
/// request of its own to a central only after all values that wait for that central, and the central answers it after having got them. So a read of
/// one of the central's attributes confirms everything that was sent before it.
struct SendWindow: Hashable, Sendable {
  /// Values that may be unconfirmed.
  static let mostValues = 64
  /// Octets that may be unconfirmed; a single value may be longer.
  static let mostOctets = 16_384

  /// A point in the sequence of values.
  struct Mark: Hashable, Sendable {
    fileprivate(set) var values: UInt64 = 0
    fileprivate(set) var octets: UInt64 = 0
  }

  /// Everything that was taken.
  private var taken = Mark()
  /// Everything that was handed to bluetoothd.
  private(set) var sent = Mark()
  private var confirmed = Mark()

  private var values: UInt64 { taken.values - confirmed.values }
  private var octets: UInt64 { taken.octets - confirmed.octets }

  func hasRoom(for count: Int) -> Bool {
    guard values > 0 else { return true }
    return values < Self.mostValues && octets + UInt64(count) <= Self.mostOctets
  }

  /// Whether it is time to look for evidence: half of the window is unconfirmed.
  var isHalfFull: Bool { values * 2 >= Self.mostValues || octets * 2 >= Self.mostOctets }

  mutating func take(_ count: Int) {
    taken.values += 1
    taken.octets += UInt64(count)
  }

  /// A value that was taken has been handed to bluetoothd.
  mutating func send(_ count: Int) {
    sent.values = min(sent.values + 1, taken.values)
    sent.octets = min(sent.octets + UInt64(count), taken.octets)
  }

  /// Everything up to `mark` has arrived.
  mutating func confirm(_ mark: Mark) {
    confirmed.values = max(confirmed.values, min(mark.values, sent.values))
    confirmed.octets = max(confirmed.octets, min(mark.octets, sent.octets))
  }
}
