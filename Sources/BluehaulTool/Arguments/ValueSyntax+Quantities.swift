internal import BulkTransfer

extension ValueSyntax where Value == Int {
  /// Bytes: `4096`, `64KiB`, `1.5MB`.
  static func size(in range: ClosedRange<Int> = 0...Int.max) -> Self {
    Self("SIZE") { text throws(InvalidValue) in
      guard let quantity = Quantity(text), let unit = sizeUnits[quantity.unit.lowercased()] else {
        throw InvalidValue("is not a size; write a number with B, kB, KiB, MB, MiB, GB or GiB, such as 64KiB")
      }
      guard let bytes = quantity.inWhole(unit), range.contains(Int(bytes)) else {
        throw InvalidValue("is out of range: \(words(for: range, of: "bytes"))")
      }
      return Int(bytes)
    }
  }

  /// A whole number.
  static func count(in range: ClosedRange<Int>) -> Self {
    Self("COUNT") { text throws(InvalidValue) in
      guard let count = Int(text), range.contains(count) else {
        throw InvalidValue("is not a whole number \(words(for: range, of: nil))")
      }
      return count
    }
  }
}

extension ValueSyntax where Value == UInt64 {
  /// A seed of pseudo-random choices, decimal or hexadecimal.
  static var seed: Self {
    Self("SEED") { text throws(InvalidValue) in
      guard let value = address(text) else {
        throw InvalidValue("is not a number such as 42 or 0x2A")
      }
      return value
    }
  }
}

extension ValueSyntax where Value == Duration {
  /// A time: `500ms`, `30s`, `2min`, `1h`; a bare number counts seconds.
  static func duration(in range: ClosedRange<Duration>) -> Self {
    Self("DURATION") { text throws(InvalidValue) in
      guard let quantity = Quantity(text), let unit = durationUnits[String(quantity.unit)] else {
        throw InvalidValue("is not a duration; write a number with us, ms, s, min or h, such as 500ms or 30s")
      }
      guard let nanoseconds = quantity.inWhole(unit) else { throw InvalidValue("is out of range") }
      let duration = Duration.nanoseconds(nanoseconds)
      guard range.contains(duration) else {
        throw InvalidValue(
          "is out of range: from \(Amounts.time(range.lowerBound)) to \(Amounts.time(range.upperBound))")
      }
      return duration
    }
  }
}

extension ValueSyntax where Value == AddressRange {
  /// Addresses `START-END`, both of them taken, or `START+SIZE`.
  static var addressRange: Self {
    Self("RANGE") { text throws(InvalidValue) in
      let form = InvalidValue("is not a range of addresses such as 0x26000-0x3FFFF or 0x26000+64KiB")
      guard let sign = text.firstIndex(where: { $0 == "-" || $0 == "+" }) else { throw form }
      guard let start = address(text[..<sign]) else { throw form }
      let behind = String(text[text.index(after: sign)...])
      let end: UInt64
      if text[sign] == "-" {
        guard let last = address(behind) else { throw form }
        guard start <= last else { throw InvalidValue("is an empty range: its end is below its start") }
        end = last &+ 1
      } else {
        let size = address(behind) ?? (try? ValueSyntax<Int>.size().read(behind)).map(UInt64.init)
        guard let size else { throw form }
        guard size > 0 else { throw InvalidValue("is an empty range") }
        end = start &+ size
      }
      guard let range = AddressRange(start: start, end: end) else {
        throw InvalidValue("reaches beyond the highest address")
      }
      return range
    }
  }
}

/// A number in decimal, or in hexadecimal after `0x`.
private func address(_ text: some StringProtocol) -> UInt64? {
  let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
  let digits = isHexadecimal ? String(text.dropFirst(2)) : String(text)
  guard digits.first?.isHexDigit == true else { return nil }
  return UInt64(digits, radix: isHexadecimal ? 16 : 10)
}

/// A decimal number with a unit behind it, kept exactly.
struct Quantity {
  /// All digits, without the decimal point.
  let digits: Int64
  /// Ten to the power of the number of digits behind the point.
  let scale: Int64
  let unit: Substring

  init?(_ text: String) {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let parts = number.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }) else { return nil }
    let fraction = parts.count == 2 ? parts[1] : ""
    guard fraction.count <= 9, let digits = Int64(String(parts[0]) + fraction) else { return nil }
    self.digits = digits
    scale = fraction.reduce(1) { scale, _ in scale * 10 }
    unit = text[number.endIndex...].drop { $0 == " " }
  }

  /// The amount as a whole number of what `unit` counts; nil where it is none, or too large.
  func inWhole(_ unit: Int64) -> Int64? {
    let product = digits.multipliedReportingOverflow(by: unit)
    guard !product.overflow, product.partialValue % scale == 0 else { return nil }
    return product.partialValue / scale
  }
}

private let sizeUnits: [String: Int64] = [
  "": 1, "b": 1, "kb": 1000, "kib": 1 << 10, "mb": 1_000_000, "mib": 1 << 20, "gb": 1_000_000_000,
  "gib": 1 << 30,
]

private let durationUnits: [String: Int64] = [
  "": 1_000_000_000, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000,
  "h": 3_600_000_000_000,
]

private func words(for range: ClosedRange<Int>, of unit: String?) -> String {
  let unit = unit.map { " \($0)" } ?? ""
  return range.upperBound == Int.max
    ? "from \(range.lowerBound)\(unit) up" : "from \(range.lowerBound) to \(range.upperBound)\(unit)"
}
