/// How much may be on its way to a peer in writes without response.
///
/// A daemon takes what it is given into memory, so that its descriptor is always ready and says nothing of the air. What bounds the bytes in
/// flight is evidence: the ATT bearer keeps its order, so the reply to a request proves that everything which the daemon had sent before is
/// with the peer. Half of the budget used, a request has to be sent, if none is: a transfer costs one small read for each half.
struct WriteBudget: Sendable, Hashable {
  /// Octets and values: small values cost the daemon much more than their octets.
  struct Amount: Sendable, Hashable {
    var octets = 0
    var values = 0

    static func + (left: Amount, right: Amount) -> Amount {
      Amount(octets: left.octets + right.octets, values: left.values + right.values)
    }

    /// Never below zero.
    static func - (left: Amount, right: Amount) -> Amount {
      Amount(octets: max(0, left.octets - right.octets), values: max(0, left.values - right.values))
    }
  }

  static let capacity = Amount(octets: 64 * 1024, values: 160)

  let capacity: Amount
  private(set) var inFlight = Amount()

  init(capacity: Amount = capacity) { self.capacity = capacity }

  /// Whether a value of so many octets would be taken. One value is, whatever its length.
  func hasRoom(for octets: Int) -> Bool {
    inFlight.values == 0
      || (inFlight.values < capacity.values && inFlight.octets + octets <= capacity.octets)
  }

  /// Takes a value; false where there is no room.
  mutating func take(_ octets: Int) -> Bool {
    guard hasRoom(for: octets) else { return false }
    inFlight = inFlight + Amount(octets: octets, values: 1)
    return true
  }

  /// Whether so much is in flight that evidence is needed.
  var needsEvidence: Bool {
    inFlight.octets * 2 >= capacity.octets || inFlight.values * 2 >= capacity.values || !hasRoom(for: 512)
  }

  /// What the reply to a request will prove that is sent now, while the daemon has not yet got `unsent`.
  func coverage(unsent: Amount) -> Amount { inFlight - unsent }

  /// The reply has come.
  mutating func confirm(_ coverage: Amount) { inFlight = inFlight - coverage }
}
