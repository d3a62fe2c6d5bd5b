internal import Foundation

/// What a figure is held to. One without a threshold is a report.
struct Threshold: Hashable, Sendable, Decodable {
  var least: Double?
  var most: Double?

  /// Reads a file of names with their thresholds.
  static func all(in path: String) throws -> [String: Threshold] {
    try JSONDecoder().decode([String: Threshold].self, from: Data(contentsOf: URL(filePath: path)))
  }

  func holds(_ value: Double) -> Bool {
    value.isFinite && least.map { value >= $0 } != false && most.map { value <= $0 } != false
  }

  var words: String {
    [least.map { "at least \($0)" }, most.map { "at most \($0)" }].compactMap(\.self).joined(separator: ", ")
  }
}
