/// Writes sizes, rates and times for people, the same on every machine.
enum Amounts {
  /// `512 B`, `210.0 KiB`, `3.4 MiB`.
  static func bytes(_ count: Int) -> String {
    if count < 1024 { return "\(count) B" }
    var unit = 1024
    for (index, name) in ["KiB", "MiB", "GiB"].enumerated() {
      if index == 2 || count / unit < 1024 {
        let tenths = count / unit * 10 + count % unit * 10 / unit
        return "\(tenths / 10).\(tenths % 10) \(name)"
      }
      unit *= 1024
    }
    return "\(count) B"
  }

  /// Adds sizes, which a file may state as large as it likes.
  static func sum(_ total: Int, _ size: UInt64) -> Int {
    Int(clamping: UInt64(max(total, 0)).addingClamped(size))
  }

  /// As ``bytes(_:)``, a second.
  static func rate(_ bytesPerSecond: Double) -> String {
    guard bytesPerSecond.isFinite, bytesPerSecond >= 0 else { return "–" }
    return bytes(Int(min(bytesPerSecond, 1e15))) + "/s"
  }

  /// `12 ms`, `1.8 s`, `42 s`, `3 min 05 s`, `2 h 03 min`.
  static func time(_ duration: Duration) -> String {
    let milliseconds = max(0, Self.milliseconds(duration))
    let seconds = milliseconds / 1000
    switch milliseconds {
    case 0..<1000: return "\(milliseconds) ms"
    case 0..<10_000: return "\(seconds).\(milliseconds % 1000 / 100) s"
    case 0..<60_000: return "\(seconds) s"
    case 0..<3_600_000: return "\(seconds / 60) min \(padded(seconds % 60)) s"
    default: return "\(seconds / 3600) h \(padded(seconds % 3600 / 60)) min"
    }
  }

  /// Whole milliseconds, at most what an hour of centuries holds.
  static func milliseconds(_ duration: Duration) -> Int {
    let (seconds, attoseconds) = duration.components
    return Int(min(max(seconds, -1_000_000_000_000), 1_000_000_000_000)) * 1000
      + Int(attoseconds / 1_000_000_000_000_000)
  }

  /// Seconds with a fraction, for JSON.
  static func seconds(_ duration: Duration) -> Double { Double(milliseconds(duration)) / 1000 }

  /// A ratio with three digits, for people.
  static func ratio(_ value: Double) -> String {
    guard value.isFinite, value >= 0 else { return "–" }
    let thousandths = Int((min(value, 1000) * 1000).rounded())
    let digits = String(thousandths % 1000)
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - digits.count) + digits
  }

  /// Thousands of bits per second with one decimal, as data sheets of radios have them.
  static func kilobits(_ bytesPerSecond: Double) -> String { decimal(bytesPerSecond * 8 / 1000, digits: 1) }

  /// A number with so many digits behind the point, at most nine.
  static func decimal(_ value: Double, digits: Int) -> String {
    guard value.isFinite, abs(value) < 1e9 else { return "–" }
    let scale = (0..<min(max(digits, 0), 9)).reduce(1) { scale, _ in scale * 10 }
    let whole = Int((abs(value) * Double(scale)).rounded())
    let sign = value < 0 && whole > 0 ? "-" : ""
    guard scale > 1 else { return "\(sign)\(whole)" }
    let rest = String(whole % scale)
    return "\(sign)\(whole / scale)." + String(repeating: "0", count: digits - rest.count) + rest
  }

  private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension UInt64 {
  fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
