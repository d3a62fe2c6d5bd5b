import Foundation

/// How much of random schedules and of sweeps runs: `TEST_THINNING=4` takes a fourth, for a build that a sanitizer slows down;
/// `TEST_THINNING=0.05` takes twenty times as many schedules, for a night.
package enum Sweep {
  private static let thinning =
    ProcessInfo.processInfo.environment["TEST_THINNING"].flatMap(Double.init).flatMap {
      $0 >= 0.001 && $0 <= 1000 ? $0 : nil
    } ?? 1

  /// Whether nothing is left out; memory figures are those of a plain build then.
  package static var isWhole: Bool { thinning <= 1 }

  /// How many of `whole` to run, at least one; more than `whole` where it can go on for ever.
  package static func count(_ whole: Int) -> Int { max(Int(Double(whole) / thinning), 1) }

  /// What to run of `cases`: all of them, or the first of each so many.
  package static func part<Case>(of cases: [Case]) -> [Case] {
    Swift.stride(from: 0, to: cases.count, by: stride(1)).map { cases[$0] }
  }

  /// How far apart the steps of a sweep are that are `step` apart in a whole one.
  package static func stride(_ step: Int) -> Int { max(Int(Double(step) * thinning), 1) }
}
