/// How far the coding of an object had to be lowered; the session after a reconnect goes on with it, and so does another run that finds it in the journal.
public struct CodingStanding: Hashable, Sendable {
  /// Index of the object.
  let object: Int
  /// The most that is asked for.
  private(set) var limit = CodingPlan.base
  /// The largest segment, coded or not, as a power of two; nil: as large as any.
  private(set) var powerLimit: UInt8?
  /// Whether the receiver may hold octets of the object that came coded.
  var wasCoded = false
  private(set) var shortfall: CodingShortfall?

  init(object: Int) { self.object = object }

  /// What an earlier session knew of the object, or nothing.
  init(object: Int, former: Self?) {
    self.init(object: object)
    if let former, former.object == object { self = former }
  }

  /// Goes without the base.
  mutating func dropBase() {
    limit = min(limit, .plain)
    shortfall = .notHeld
  }

  /// Goes without any coding.
  mutating func drop(_ why: CodingShortfall) {
    limit = .uncoded
    shortfall = why
  }

  /// Segments of this power do not get through.
  mutating func lower(from power: UInt8) {
    let lowest = SegmentLayout.powers.lowerBound
    powerLimit = max(lowest, power - min(power, 2))
    if power <= lowest { drop(.failed) }
  }
}

extension CodingStanding {
  private static let fact = "coding-limit"
  private static let uncoded = "uncoded"

  /// What a journal keeps of it (docs/manifest.md): what was learned about the link and the decoder. A base that the device does not hold may be there
  /// the next time.
  public var facts: [String: String] {
    let isUncoded = limit == .uncoded && shortfall == .failed
    guard isUncoded || powerLimit != nil else { return [:] }
    let words = [String(object), powerLimit.map { String($0) } ?? ""] + (isUncoded ? [Self.uncoded] : [])
    return [Self.fact: words.joined(separator: ":")]
  }

  /// Reads what ``facts`` has written; nil where there is nothing of it, or nothing that makes sense.
  public init?(facts: [String: String]) {
    guard let words = facts[Self.fact]?.split(separator: ":", omittingEmptySubsequences: false),
      (2...3).contains(words.count), let object = Int(words[0]), object >= 0
    else { return nil }
    self.init(object: object)
    if !words[1].isEmpty {
      guard let power = UInt8(words[1]), SegmentLayout.powers.contains(power) else { return nil }
      powerLimit = power
    }
    guard words.count == 3 else { return }
    guard words[2] == Self.uncoded else { return nil }
    drop(.failed)
  }
}
