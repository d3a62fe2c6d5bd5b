internal import BluehaulTool
internal import CAllocations
internal import Foundation

/// Whole transfers over the simulated link, in simulated time, by the command that everybody has; `link.json` says which, and what their
/// figures are held to. The tests of the tool hold the same file.
struct LinkBenchmark: Decodable, Sendable {
  let name: String
  let options: String
  var least: [String: Double]?
  var most: [String: Double]?

  static func all(in folder: URL) throws -> [LinkBenchmark] {
    try JSONDecoder().decode([Self].self, from: Data(contentsOf: folder.appending(path: "link.json")))
  }

  /// Members of the last object that are told whether they are held to something or not.
  private static let told = [
    "ratio": "of the ceiling", "transfer_ratio": "of the ceiling", "packets": "", "octets": "",
    "allocations": "a packet, both ends", "speed": "packets/s of one core",
  ]

  var benchmark: Benchmark {
    Benchmark(name: "link \(name)") {
      let before = allocations_count()
      var figures: [String: Double] = [:]
      let seconds = try await cpuSeconds { figures = try await run() }
      if let packets = figures["packets"], packets > 0 {
        figures["allocations"] = Double(allocations_count() - before) / packets
        figures["speed"] = packets / seconds
      }
      let held = Set((least ?? [:]).keys).union((most ?? [:]).keys)
      return try held.union(Self.told.keys.filter { figures[$0] != nil }).sorted().map { member in
        guard let figure = figures[member] else { throw BenchmarkError("bench has not told its \(member)") }
        return Measurement("link \(name) \(member)", figure, Self.told[member] ?? "")
      }
    }
  }

  var thresholds: [String: Threshold] {
    var thresholds: [String: Threshold] = [:]
    for (member, limit) in least ?? [:] {
      thresholds["link \(name) \(member)", default: Threshold()].least = limit
    }
    for (member, limit) in most ?? [:] {
      thresholds["link \(name) \(member)", default: Threshold()].most = limit
    }
    return thresholds
  }

  /// The numbers in the last object of `bluehaul bench --json`.
  private func run() async throws -> [String: Double] {
    let (output, errors) = (Lines(), Lines())
    let code = await Bluehaul.run(
      ["bench", "--json"] + options.split(separator: " ").map(String.init),
      in: ToolEnvironment(
        variables: [:], output: output, errors: errors, terminalColumns: nil, now: { .zero }),
      interrupts: Interrupts(exit: {}))
    guard code == .success, let last = output.last,
      let object = try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any]
    else { throw BenchmarkError("bench \(options): \(errors.last ?? "no output")") }
    return object.compactMapValues { ($0 as? NSNumber)?.doubleValue }
  }
}

/// Keeps the last line of what is written.
// Sendable: behind a lock.
private final class Lines: OutputSink, @unchecked Sendable {
  private let lock = NSLock()
  private var text: String?

  var last: String? { lock.withLock { text } }
  var isClosed: Bool { false }
  var failure: Int32? { nil }

  func write(_ text: String) { lock.withLock { self.text = text } }
}

/// Why there is no figure.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
