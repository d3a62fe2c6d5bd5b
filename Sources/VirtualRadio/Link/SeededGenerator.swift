/// Random numbers that are the same for the same seed on every machine (SplitMix64, Steele et al. 2014).
public struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
  private var state: UInt64

  /// Starts the sequence of a seed.
  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Starts a sequence of its own, so that one consumer's draws do not shift another's.
  public mutating func split() -> SeededGenerator { SeededGenerator(seed: next()) }

  /// True with the given probability.
  public mutating func chance(_ probability: Double) -> Bool {
    probability > 0 && next() < Self.threshold(probability)
  }

  /// The number below which a draw counts as a hit of `probability`.
  static func threshold(_ probability: Double) -> UInt64 {
    guard probability > 0 else { return 0 }
    return UInt64(exactly: (probability * 0x1p64).rounded()) ?? .max
  }
}
