internal import BulkTransfer
internal import Foundation

/// A line chart as SVG, readable on light and on dark paper: colours follow the reader's setting (CSS `prefers-color-scheme`).
struct LineChart: Sendable {
  /// One curve.
  struct Series: Sendable {
    var name: String
    /// In the chart's units.
    var points: [(x: Double, y: Double)]
    /// Which colour; series of one index share it.
    var color: Int
    /// A bound that others are compared with: dashed.
    var isBound = false
  }

  /// How places on the x axis are called.
  enum XAxis: Sendable {
    /// Numbers from 0 on, with ticks at round ones.
    case numbers
    /// Places 0, 1, 2, ... with these names.
    case names([String])
  }

  var title: String
  var xLabel: String
  var yLabel: String
  var xAxis: XAxis
  var series: [Series]

  private static let width = 840.0
  /// What every drawing begins with; it tells them from other files.
  fileprivate static let beginning =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Int(width)) "
  private static let plot = (left: 84.0, right: 816.0, height: 330.0)
  private static let legendRow = 20.0
  /// Colours on light and on dark paper that also differ for who sees colours differently (Okabe and Ito, darkened for light paper).
  private static let colors = [
    ("#0060a0", "#56b4e9"), ("#b34700", "#e69f00"), ("#00795c", "#2bc79c"), ("#99417a", "#e09cc4"),
    ("#6b5b00", "#f0e442"), ("#444d56", "#b0b8c0"),
  ]

  /// The document.
  var svg: String {
    let entries = series
    let perRow = 2
    let rows = (entries.count + perRow - 1) / perRow
    let top = 56.0 + Double(rows) * Self.legendRow
    let bottom = top + Self.plot.height
    let height = bottom + 64
    let xs = xScale
    let ys = Scale(upTo: series.flatMap(\.points).map(\.y).max() ?? 0)
    func x(_ value: Double) -> String {
      let share = xs.end > 0 ? value / xs.end : 0.5
      return number(Self.plot.left + share * (Self.plot.right - Self.plot.left))
    }
    func y(_ value: Double) -> String { number(bottom - value / ys.end * Self.plot.height) }

    var lines = [
      "\(Self.beginning)\(number(height))\" role=\"img\">",
      "<title>\(escaped(title))</title>", style,
      "<rect class=\"paper\" width=\"\(number(Self.width))\" height=\"\(number(height))\"/>",
      "<text class=\"title\" x=\"\(number(Self.plot.left))\" y=\"30\">\(escaped(title))</text>",
    ]
    for (index, entry) in entries.enumerated() {
      let left = Self.plot.left + Double(index % perRow) * 366
      let line = 52 + Double(index / perRow) * Self.legendRow
      lines.append(
        "<path class=\"\(classes(entry))\" d=\"M\(number(left)) \(number(line - 4))h26\"/>"
          + "<text x=\"\(number(left + 34))\" y=\"\(number(line))\">\(escaped(entry.name))</text>")
    }
    for tick in ys.ticks {
      lines.append(
        "<path class=\"grid\" d=\"M\(number(Self.plot.left)) \(y(tick))H\(number(Self.plot.right))\"/>"
          + "<text class=\"end\" x=\"\(number(Self.plot.left - 8))\" y=\"\(y(tick))\" dy=\"4\">\(number(tick))</text>"
      )
    }
    for (place, name) in xs.ticks {
      lines.append(
        "<path class=\"axis\" d=\"M\(x(place)) \(number(bottom))v5\"/>"
          + "<text class=\"middle\" x=\"\(x(place))\" y=\"\(number(bottom + 20))\">\(escaped(name))</text>")
    }
    lines.append(
      "<path class=\"axis\" d=\"M\(number(Self.plot.left)) \(number(top))V\(number(bottom))H\(number(Self.plot.right))\"/>"
    )
    let middle = (top + bottom) / 2
    lines.append(
      "<text class=\"middle\" x=\"\(number((Self.plot.left + Self.plot.right) / 2))\" y=\"\(number(bottom + 46))\">\(escaped(xLabel))</text>"
    )
    lines.append(
      "<text class=\"middle\" transform=\"translate(24 \(number(middle))) rotate(-90)\">\(escaped(yLabel))</text>"
    )
    for entry in entries where !entry.points.isEmpty {
      let path = entry.points.enumerated().map { index, point in
        "\(index == 0 ? "M" : "L")\(x(point.x)) \(y(point.y))"
      }.joined()
      lines.append("<path class=\"\(classes(entry))\" d=\"\(path)\"/>")
      // A line of few points shows them; one point has no line.
      guard entry.points.count <= 40, !entry.isBound || entry.points.count == 1 else { continue }
      for point in entry.points {
        lines.append(
          "<circle class=\"dot\(entry.color % Self.colors.count)\" cx=\"\(x(point.x))\" cy=\"\(y(point.y))\" r=\"3\"/>"
        )
      }
    }
    return (lines + ["</svg>"]).joined(separator: "\n") + "\n"
  }

  private func classes(_ series: Series) -> String {
    "line\(series.color % Self.colors.count)" + (series.isBound ? " bound" : "")
  }

  /// Rules of both papers; no custom properties, which not every viewer knows.
  private var style: String {
    func rules(_ paper: String, _ ink: String, _ grid: String, _ color: ((String, String)) -> String)
      -> String
    {
      let lines = Self.colors.enumerated().map { index, pair in
        ".line\(index){stroke:\(color(pair))}.dot\(index){fill:\(color(pair))}"
      }
      return ".paper{fill:\(paper)}text{fill:\(ink)}.axis{stroke:\(ink)}.grid{stroke:\(grid)}"
        + lines.joined()
    }
    return "<style>text{font:13px system-ui,sans-serif}.title{font-size:16px;font-weight:600}"
      + ".middle{text-anchor:middle}.end{text-anchor:end}path{fill:none;stroke-width:1}"
      + "path[class^=line]{stroke-width:2;stroke-linejoin:round}.bound{stroke-dasharray:6 5;opacity:.75}"
      + rules("#ffffff", "#1f2328", "#dfe3e8", \.0)
      + "@media (prefers-color-scheme:dark){" + rules("#0d1117", "#e6edf3", "#30363d", \.1) + "}</style>"
  }

  private var xScale: (end: Double, ticks: [(Double, String)]) {
    switch xAxis {
    case .names(let names):
      return (Double(max(names.count - 1, 0)), names.enumerated().map { (Double($0.offset), $0.element) })
    case .numbers:
      let most = series.flatMap(\.points).map(\.x).max() ?? 0
      let scale = Scale(upTo: most)
      // The axis ends with the data: a tick beyond would be empty paper.
      return (max(most, .leastNormalMagnitude), scale.ticks.filter { $0 <= most }.map { ($0, number($0)) })
    }
  }

  /// A scale from 0 to a round number, with four to ten round steps.
  struct Scale {
    let end: Double
    let ticks: [Double]

    init(upTo most: Double) {
      guard most.isFinite, most > 0 else {
        (end, ticks) = (1, [0, 1])
        return
      }
      let magnitude = pow(10, floor(log10(most / 5)))
      let step = ([1, 2, 5, 10].map { $0 * magnitude }.first { most / $0 <= 8 }) ?? 10 * magnitude
      let count = Int((most / step).rounded(.up))
      end = step * Double(max(count, 1))
      ticks = (0...max(count, 1)).map { step * Double($0) }
    }
  }

  /// At most three digits behind the point, and none that say nothing.
  private func number(_ value: Double) -> String {
    var digits = Amounts.decimal(value, digits: 3)
    while digits.hasSuffix("0") { digits.removeLast() }
    return digits.hasSuffix(".") ? String(digits.dropLast()) : digits
  }

  private func escaped(_ text: String) -> String {
    Printable.text(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
      ">", with: "&gt;")
  }
}

extension OutputFile.Kind {
  /// Drawings of ``LineChart``.
  static let chart = Self("drawing of bluehaul bench") { $0.starts(with: Data(LineChart.beginning.utf8)) }
}
