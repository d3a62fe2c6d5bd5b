internal import BulkTransfer
internal import VirtualRadio

/// What a measured transfer has come to.
struct BenchResult: BenchMeasurement {
  let mode: BenchMode
  /// The simulated link; nil where it is a real one.
  let link: LinkParameters?
  let size: Int
  /// From the first octet of the session to the receiver's last word; where the link alone is measured, from the first request to the last octet.
  let duration: Duration
  /// The part of it in which data was under way: all of it where the link alone is measured.
  let transfer: Duration
  let breakdown: TimeLedger.Breakdown
  let carried: LinkUsage?
  let points: [TimeLedger.Point]
  /// What a sweep has varied, in its order.
  var varied: [(key: String, value: String)] = []

  /// Bytes per second, handshake and verification included.
  var goodput: Double { Double(size) / (duration / .seconds(1)) }

  /// Bytes per second at best.
  var ceiling: Double? { link.map { LinkCeiling($0).octetsPerSecond(of: mode.traffic) } }

  /// The ratio without handshake and verification.
  var transferRatio: Double? {
    guard let ceiling, ceiling > 0, transfer > .zero else { return nil }
    return Double(size) / (transfer / .seconds(1)) / ceiling
  }

  var ratio: Double? { ceiling.flatMap { $0 > 0 ? goodput / $0 : nil } }
}

extension BenchResult {
  /// - Throws: where there is nothing to tell.
  init(mode: BenchMode, link: LinkParameters?, size: Int, _ outcome: LinkBench.Outcome) throws(TransferError)
  {
    let ledger = outcome.ledger
    guard let duration = ledger.duration, duration > .zero else {
      throw TransferError(.unsupportedDevice, "nothing has arrived: nothing was measured")
    }
    self.init(
      mode: mode, link: link, size: size, duration: duration, transfer: duration,
      breakdown: ledger.breakdown, carried: ledger.carried, points: ledger.points)
  }

  static func svg(_ results: [BenchResult]) -> String { BenchPlot(results).svg }

  var report: Report { .bench(self) }
}

extension TimeLedger.Breakdown {
  /// For people: each cause with its share of the whole.
  func lines(of whole: Duration) -> [String] {
    parts.compactMap { part in
      guard let time = part.time, time > .zero else { return nil }
      let share = Amounts.decimal(time / whole * 100, digits: 1)
      let padding = String(repeating: " ", count: max(0, 5 - share.count))
      return "    \(padding)\(share) %  \(Amounts.decimal(time / .seconds(1), digits: 3)) s  \(part.title)"
    }
  }

  var json: JSONValue { .object(parts.map { .init($0.name, .optional($0.time.map { $0 / .seconds(1) })) }) }
}

extension Report {
  fileprivate static func bench(_ result: BenchResult) -> Report {
    var rate = "  goodput: \(Amounts.rate(result.goodput)) (\(Int(result.goodput.rounded())) bytes/s)"
    if let ceiling = result.ceiling, let ratio = result.ratio {
      rate += ", \(Amounts.ratio(ratio)) of the ceiling of \(Amounts.rate(ceiling))"
    }
    var lines = [
      "\(result.mode.title), \(Amounts.bytes(result.size))\(result.link.map { " on \($0)" } ?? "")", rate,
      "  time:    \(Amounts.decimal(result.duration / .seconds(1), digits: 3)) s\(result.mode.carrier == nil ? "" : " with handshake and verification"), of which",
    ]
    lines += result.breakdown.lines(of: result.duration)
    if let ratio = result.transferRatio, result.mode.carrier != nil {
      lines.append(
        "  data:    \(Amounts.decimal(result.transfer / .seconds(1), digits: 3)) s, \(Amounts.ratio(ratio)) of the ceiling, without handshake and verification"
      )
    }
    if let carried = result.carried {
      lines.append(
        "  packets: \(carried.packets) with data, \(carried.repetitions) of them sent again; \(carried.octets) octets"
      )
    }
    return Report("bench", .result, lines, members(result))
  }

  private static func members(_ result: BenchResult) -> [JSONValue.Member] {
    [
      .init("via", .string(result.mode.via.rawValue)),
      .init("direction", .string(result.mode.direction.rawValue)),
      .init("link", .optional(result.link.map { "\($0)" })),
      .init("varied", .object(result.varied.map { .init($0.key, .string($0.value)) })),
      .init("bytes", .integer(result.size)), .init("seconds", .number(result.duration / .seconds(1))),
      .init("goodput", .number(result.goodput)), .init("ceiling", .optional(result.ceiling)),
      .init("ratio", .optional(result.ratio)),
      .init("transfer_seconds", .number(result.transfer / .seconds(1))),
      .init("transfer_ratio", .optional(result.transferRatio)),
      .init("breakdown", result.breakdown.json),
      .init("packets", .optional(result.carried?.packets)),
      .init("repetitions", .optional(result.carried?.repetitions)),
      .init("octets", .optional(result.carried?.octets)),
    ]
  }
}

extension BenchResult {
  static func csv(_ results: [BenchResult]) -> String {
    let parts = results.first?.breakdown.parts.map(\.name) ?? []
    let keys = results.first?.varied.map(\.key) ?? []
    var rows = [
      ["via", "direction", "link"] + keys + [
        "bytes", "seconds", "goodput", "ceiling", "ratio", "transfer_seconds", "transfer_ratio",
      ]
        + parts
        + ["packets", "repetitions", "octets"]
    ]
    for result in results {
      let times = result.breakdown.parts.map { $0.time.map { "\($0 / .seconds(1))" } ?? "" }
      rows.append(
        [result.mode.via.rawValue, result.mode.direction.rawValue, result.link.map { "\($0)" } ?? ""]
          + result.varied.map(\.value)
          + ["\(result.size)", "\(result.duration / .seconds(1))", "\(result.goodput)"]
          + [result.ceiling, result.ratio, result.transfer / .seconds(1), result.transferRatio].map {
            $0.map { "\($0)" } ?? ""
          } + times
          + [result.carried?.packets, result.carried?.repetitions, result.carried?.octets].map {
            $0.map { "\($0)" } ?? ""
          })
    }
    return Table.text(rows)
  }
}
