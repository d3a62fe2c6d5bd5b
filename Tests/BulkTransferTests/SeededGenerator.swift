import Foundation

/// The same numbers for the same seed on every machine (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678_9ABC_DEF1 }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// A number of the range.
  mutating func pick(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

  /// True once in `one` times on average.
  mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }

  /// Octets without a repeating pattern.
  mutating func bytes(_ count: Int) -> Data {
    var words: [UInt64] = []
    words.reserveCapacity(count / 8 + 1)
    for _ in 0...(count / 8) { words.append(next()) }
    return unsafe words.withUnsafeBytes { unsafe Data($0.prefix(count)) }
  }
}
