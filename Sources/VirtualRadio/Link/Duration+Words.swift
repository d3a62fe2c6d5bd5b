internal import Foundation

extension Duration {
  /// Reads a time such as `30`, `7.5`, `250ms`, `1.5s` or `2min`; without a unit it is milliseconds.
  ///
  /// Takes what is not negative, at most a day, and whole in microseconds.
  init?(words: some StringProtocol) {
    let units: [(suffix: String, microseconds: Double)] = [
      ("min", 60_000_000), ("ms", 1000), ("us", 1), ("s", 1_000_000), ("", 1000),
    ]
    guard let unit = units.first(where: { words.hasSuffix($0.suffix) }) else { return nil }
    guard let number = Double(plainDecimal: words.dropLast(unit.suffix.count)) else { return nil }
    let microseconds = number * unit.microseconds
    guard microseconds <= 86_400_000_000, abs(microseconds - microseconds.rounded()) < 1e-3 else {
      return nil
    }
    self = .microseconds(Int64(microseconds.rounded()))
  }

  /// The time as ``init(words:)`` reads it, in milliseconds without a unit.
  var inMillisecondWords: String {
    let (whole, rest) = (inNanoseconds / 1000).quotientAndRemainder(dividingBy: 1000)
    guard rest != 0 else { return "\(whole)" }
    var digits = String(rest)
    digits = String(repeating: "0", count: 3 - digits.count) + digits
    while digits.hasSuffix("0") { digits.removeLast() }
    return "\(whole).\(digits)"
  }
}

extension Double {
  /// Digits with a point and no exponent, for finite numbers that are not negative.
  var inPlainDecimal: String {
    let shortest = "\(self)"
    guard shortest.contains("e") else {
      return shortest.hasSuffix(".0") ? String(shortest.dropLast(2)) : shortest
    }
    var digits = String(format: "%.20f", self)
    while digits.hasSuffix("0") { digits.removeLast() }
    return digits.hasSuffix(".") ? String(digits.dropLast()) : digits
  }

  /// Reads digits with at most one point; no sign, exponent, infinity or hexadecimal.
  init?(plainDecimal words: some StringProtocol) {
    guard !words.isEmpty, words.utf8.count <= 24, words != ".",
      words.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E })
    else { return nil }
    self.init(String(words))
  }
}
