internal import BulkTransfer
internal import VirtualRadio

/// Measurements as a chart: over time, or over what a sweep has varied.
struct BenchPlot {
  private let results: [BenchResult]

  init(_ results: [BenchResult]) { self.results = results }

  /// Points of a curve over time.
  private static let steps = 60
  /// Steps that the rate at a point is the mean of. Receipts tell of arrivals in leaps: over a few of them a rate would say more about their rhythm than
  /// about the link, and stand above what the link can carry.
  private static let breadth = 5

  var svg: String { chart.svg }

  var chart: LineChart { results.first?.varied.isEmpty == false ? sweep : overTime }

  private var unit: String { "kB/s (1000 bytes of payload a second)" }

  private var overTime: LineChart {
    var series: [LineChart.Series] = []
    let end = results.map { $0.duration / .seconds(1) }.max() ?? 0
    for (index, result) in results.enumerated() {
      series.append(
        LineChart.Series(
          name: "\(result.mode.title), arrived", points: Self.rates(result), color: index))
      if let ceiling = result.ceiling {
        series.append(
          LineChart.Series(
            name: "\(result.mode.title), ceiling", points: [(0, ceiling / 1000), (end, ceiling / 1000)],
            color: index, isBound: true))
      }
    }
    return LineChart(
      title: title("Throughput over time"), xLabel: "seconds since the first request", yLabel: unit,
      xAxis: .numbers, series: series)
  }

  /// Arrivals in equal steps of time, as rates around the middle of each.
  static func rates(_ result: BenchResult) -> [(x: Double, y: Double)] {
    let end = result.points.last.map { $0.time / .seconds(1) } ?? 0
    guard end > 0 else { return [] }
    let step = end / Double(steps)
    var arrivals = Arrivals(result.points)
    let octets = (0...steps).map { arrivals.octets(at: step * Double($0)) }
    return (0..<steps).map { number in
      let last = min(number + breadth / 2 + 1, steps)
      // At the end, where the last receipt tells all that is left, none of the steps is left out.
      let first = max(last == steps ? steps - breadth : number - breadth / 2, 0)
      return (
        step * (Double(number) + 0.5), (octets[last] - octets[first]) / (step * Double(last - first)) / 1000
      )
    }
  }

  /// What has arrived at a moment: between two receipts, which tell it in leaps, evenly.
  private struct Arrivals {
    private let points: [TimeLedger.Point]
    private var next = 0

    init(_ points: [TimeLedger.Point]) {
      // Only where more has arrived is there something to tell; the first octets are on their way since the last word of their absence.
      var news: [TimeLedger.Point] = []
      for point in points {
        if point.received == 0, news.last?.received == 0 { news.removeLast() }
        if news.last.map({ $0.received < point.received }) ?? true { news.append(point) }
      }
      self.points = news
    }

    /// To be asked in order of time.
    mutating func octets(at seconds: Double) -> Double {
      while next < points.count, points[next].time / .seconds(1) <= seconds { next += 1 }
      guard next > 0 else { return 0 }
      let before = points[next - 1]
      guard next < points.count else { return Double(before.received) }
      let after = points[next]
      let share = (seconds - before.time / .seconds(1)) / ((after.time - before.time) / .seconds(1))
      return Double(before.received) + share * Double(after.received - before.received)
    }
  }

  private var sweep: LineChart {
    let keys = results[0].varied.map(\.key)
    // The values of the first sweep are the axis; the second and the carrier make curves.
    var places: [String] = []
    for result in results where !places.contains(result.varied[0].value) {
      places.append(result.varied[0].value)
    }
    var curves: [String] = []
    for result in results where !curves.contains(curve(result)) { curves.append(curve(result)) }
    var series: [LineChart.Series] = []
    for (index, name) in curves.enumerated() {
      let mine = results.filter { curve($0) == name }
      func points(_ value: (BenchResult) -> Double?) -> [(x: Double, y: Double)] {
        mine.compactMap { result in
          guard let place = places.firstIndex(of: result.varied[0].value), let rate = value(result) else {
            return nil
          }
          return (Double(place), rate / 1000)
        }
      }
      series.append(LineChart.Series(name: name, points: points(\.goodput), color: index))
      series.append(
        LineChart.Series(name: "\(name), ceiling", points: points(\.ceiling), color: index, isBound: true))
    }
    return LineChart(
      title: title("Goodput over \(keys[0])"), xLabel: Self.label(of: keys[0]), yLabel: unit,
      xAxis: .names(places), series: series)
  }

  private func curve(_ result: BenchResult) -> String {
    ([result.mode.title] + result.varied.dropFirst().map { "\($0.key) \($0.value)" }).joined(
      separator: ", ")
  }

  static func label(of key: String) -> String {
    guard key != BenchSweep.sizeKey else { return "size of what is sent" }
    return LinkParameters.keys.first { $0.name == key }.map { "\(key): \($0.meaning)" } ?? key
  }

  private func title(_ what: String) -> String {
    guard let first = results.first, first.varied.isEmpty else { return what }
    return "\(what), \(Amounts.bytes(first.size))" + (first.link.map { " on \($0)" } ?? "")
  }
}

extension RoundTripResult {
  static func svg(_ results: [RoundTripResult]) -> String {
    let unit = "milliseconds there and back"
    var series: [LineChart.Series] = []
    func add(_ name: String, _ color: Int, _ points: [(Double, Double)], floor: [(Double, Double)]) {
      series.append(LineChart.Series(name: name, points: points.map { ($0.0, $0.1) }, color: color))
      guard !floor.isEmpty else { return }
      series.append(
        LineChart.Series(
          name: "\(name), by the link's rules", points: floor.map { ($0.0, $0.1) }, color: color,
          isBound: true))
    }
    func ms(_ time: Duration) -> Double { time / .milliseconds(1) }
    guard let first = results.first, !first.varied.isEmpty else {
      for (index, result) in results.enumerated() {
        let end = Double(result.times.count)
        add(
          result.mode.title, index, result.times.enumerated().map { (Double($0.offset + 1), ms($0.element)) },
          floor: result.floor.map { [(0, ms($0)), (end, ms($0))] } ?? [])
      }
      return LineChart(
        title: "Round trips" + (results.first?.link.map { " on \($0)" } ?? ""),
        xLabel: "number of the round trip",
        yLabel: unit, xAxis: .numbers, series: series
      ).svg
    }
    // The values of the first sweep are the axis; the second and the way make curves.
    var places: [String] = []
    var curves: [(name: String, results: [RoundTripResult])] = []
    for result in results {
      if !places.contains(result.varied[0].value) { places.append(result.varied[0].value) }
      let words = result.varied.dropFirst().map { "\($0.key) \($0.value)" }
      let name = ([result.mode.title] + words).joined(separator: ", ")
      if let place = curves.firstIndex(where: { $0.name == name }) {
        curves[place].results.append(result)
      } else {
        curves.append((name, [result]))
      }
    }
    for (index, curve) in curves.enumerated() {
      func points(_ time: (RoundTripResult) -> Duration?) -> [(Double, Double)] {
        curve.results.compactMap { result in
          guard let place = places.firstIndex(of: result.varied[0].value), let time = time(result) else {
            return nil
          }
          return (Double(place), ms(time))
        }
      }
      add("\(curve.name), median", index, points(\.median), floor: points(\.floor))
    }
    return LineChart(
      title: "Round trips over \(first.varied[0].key)", xLabel: BenchPlot.label(of: first.varied[0].key),
      yLabel: unit, xAxis: .names(places), series: series
    ).svg
  }
}
