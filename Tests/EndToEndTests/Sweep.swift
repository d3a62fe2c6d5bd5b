import Foundation

/// How much of a sweep runs: `TEST_THINNING=4` takes a fourth, for a build that a sanitizer slows down.
enum Sweep {
  static let thinning =
    ProcessInfo.processInfo.environment["TEST_THINNING"].flatMap(Int.init).map { max($0, 1) } ?? 1
}
