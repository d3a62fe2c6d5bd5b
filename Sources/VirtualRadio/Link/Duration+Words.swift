internal import Foundation

extension Duration {
  /// Reads a time such as `30`, `7.5`, `250ms`, `1.5s` or `2min`; without a unit it is milliseconds.
  ///
  /// Takes what is not negative, at most a day, and whole in microseconds.
  init?(words: some StringProtocol) {
    let units: [(suffix: String, microseconds: Int64)] = [
      ("min", 60_000_000), ("ms", 1000), ("us", 1), ("s", 1_000_000), ("", 1000),
    ]
    guard let unit = units.first(where: { words.hasSuffix($0.suffix) }) else { return nil }
    let number = words.dropLast(unit.suffix.count)
    guard Double(plainDecimal: number) != nil else { return nil }
    // Exactly: a value that is rounded is another one than was said.
    let parts = number.split(separator: ".", omittingEmptySubsequences: false)
    var fraction = parts.dropFirst().first ?? ""
    while fraction.last == "0" { fraction.removeLast() }
    // No unit has more twos or fives in it: what has more digits is not whole.
    guard fraction.count <= 8, let whole = Int64(parts[0].isEmpty ? "0" : parts[0]), whole <= 86_400_000_000
    else { return nil }
    let scale = fraction.reduce(Int64(1)) { scale, _ in scale * 10 }
    let rest = (Int64(fraction) ?? 0) * unit.microseconds
    let (product, overflow) = whole.multipliedReportingOverflow(by: unit.microseconds)
    guard !overflow, rest % scale == 0, product + rest / scale <= 86_400_000_000 else { return nil }
    self = .microseconds(product + rest / scale)
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
