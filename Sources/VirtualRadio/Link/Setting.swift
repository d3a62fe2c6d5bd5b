internal import Foundation
internal import Wording

/// One `key=value` of a setting in words, with readers that name both where they fail.
struct Setting {
  let key: String
  let value: String

  /// Splits an item; the key must be one of `keys`.
  init(_ item: some StringProtocol, keys: [String]) throws(SettingError) {
    let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
    let key = (parts.first ?? "").lowercased()
    guard !key.isEmpty else {
      throw SettingError(key: "\"\(item)\"", value: nil, problem: "an item is empty; items are key=value")
    }
    guard keys.contains(key) else {
      let likely = Spelling.closest(to: key, among: keys).map { " (did you mean \($0)?)" } ?? ""
      throw SettingError(
        key: key, value: nil, problem: "no such key\(likely); there are \(keys.joined(separator: ", "))")
    }
    guard parts.count == 2, !parts[1].isEmpty else {
      throw SettingError(key: key, value: nil, problem: "has no value; write \(key)=VALUE")
    }
    self.key = key
    value = parts[1]
  }

  func error(_ problem: String) -> SettingError { SettingError(key: key, value: value, problem: problem) }

  func isWord(_ word: String) -> Bool { value.lowercased() == word }

  func integer(in range: ClosedRange<Int>) throws(SettingError) -> Int {
    guard let number = Int(value) else { throw error("is not a whole number") }
    guard range.contains(number) else {
      throw error("must be \(range.lowerBound)...\(range.upperBound)")
    }
    return number
  }

  func duration(in range: ClosedRange<Duration>) throws(SettingError) -> Duration {
    guard let duration = Duration(words: value.lowercased()) else {
      throw error("is not a time of whole microseconds; write milliseconds, or a number with ms, s or min")
    }
    guard range.contains(duration) else {
      throw error(
        "must be \(range.lowerBound.inMillisecondWords)...\(range.upperBound.inMillisecondWords) ms")
    }
    return duration
  }

  func flag() throws(SettingError) -> Bool {
    switch value.lowercased() {
    case "yes", "true", "on", "1": true
    case "no", "false", "off", "0": false
    default: throw error("must be yes or no")
    }
  }

  func fraction(upTo limit: Double) throws(SettingError) -> Double {
    let isPercent = value.hasSuffix("%")
    guard let number = Double(plainDecimal: value.dropLast(isPercent ? 1 : 0)) else {
      throw error("is not a number; write a fraction such as 0.01, or 1%")
    }
    let fraction = isPercent ? number / 100 : number
    guard fraction <= limit else { throw error("must be 0...\(limit)") }
    return fraction
  }
}
