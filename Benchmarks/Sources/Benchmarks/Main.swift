internal import Foundation

/// Runs the benchmarks and compares them with `thresholds.json` and `link.json`. See Benchmarks/README.md.
@main
enum Main {
  static func main() async {
    if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--images" {
      do {
        return try Firmware.writeImages(to: URL(filePath: CommandLine.arguments[2]))
      } catch {
        tell("benchmarks: \(error)", isError: true)
        exit(1)
      }
    }
    let words = CommandLine.arguments.dropFirst().filter { $0 != "--check" }
    guard words.allSatisfy({ !$0.hasPrefix("-") }) else {
      tell(
        "usage: Benchmarks [--check] [WORD...]: those whose name contains a word; all without\n"
          + "       Benchmarks --images FOLDER: writes the images of the coding benchmarks", isError: true)
      exit(2)
    }
    do {
      let isGood = try await run(words: Array(words), checks: CommandLine.arguments.contains("--check"))
      exit(isGood ? 0 : 1)
    } catch {
      tell("benchmarks: \(error)", isError: true)
      exit(1)
    }
  }

  /// - Returns: whether every threshold holds; with `checks`, also whether each one has met its figure.
  private static func run(words: [String], checks: Bool) async throws -> Bool {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let links = try LinkBenchmark.all(in: folder)
    var thresholds = try Threshold.all(in: folder.appending(path: "thresholds.json").path)
    for link in links { thresholds.merge(link.thresholds) { $1 } }
    var unmet = Set(thresholds.keys)
    var isGood = true
    let all =
      Benchmark.engine + Benchmark.journal + Benchmark.coding + Benchmark.linkModel + links.map(\.benchmark)
      + Benchmark.fleet
    for benchmark in all {
      let isNamed = words.contains { benchmark.name.contains($0) }
      guard isNamed || (words.isEmpty && !benchmark.isOnDemand) else { continue }
      for figure in try await benchmark.run() {
        let threshold = thresholds[figure.name]
        unmet.remove(figure.name)
        let holds = threshold?.holds(figure.value) ?? true
        isGood = isGood && holds
        let verdict = threshold.map { (holds ? "ok, " : "FAILED, ") + $0.words } ?? "report"
        tell(
          "\(padded(figure.name, 44)) \(padded(number(figure.value), 12)) \(padded(figure.unit, 24)) \(verdict)"
        )
      }
    }
    if checks, words.isEmpty, !unmet.isEmpty {
      tell("thresholds without a figure: \(unmet.sorted().joined(separator: ", "))", isError: true)
      return false
    }
    return isGood
  }

  private static func number(_ value: Double) -> String {
    String(format: value >= 1000 ? "%.0f" : "%.4g", value)
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  private static func tell(_ line: String, isError: Bool = false) {
    let handle = isError ? FileHandle.standardError : FileHandle.standardOutput
    handle.write(Data((line + "\n").utf8))
  }
}
