import Foundation
import FoundationXML
import Testing

@testable import BluehaulTool

@Suite struct LineChartTests {
  private static func chart(_ points: [(x: Double, y: Double)], name: String = "one") -> LineChart {
    LineChart(
      title: "Rate", xLabel: "seconds", yLabel: "kB/s", xAxis: .numbers,
      series: [
        .init(name: name, points: points, color: 0),
        .init(name: "bound", points: points, color: 0, isBound: true),
      ])
  }

  /// Elements and texts of a document, or nil where it is no XML.
  private final class Reader: NSObject, XMLParserDelegate {
    var elements: [String] = []
    var attributes: [[String: String]] = []
    var text = ""

    static func read(_ svg: String) -> Reader? {
      let parser = XMLParser(data: Data(svg.utf8))
      let reader = Reader()
      parser.delegate = reader
      return parser.parse() ? reader : nil
    }

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String]
    ) {
      elements.append(name)
      self.attributes.append(attributes)
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
  }

  @Test(
    "whatever is drawn is well-formed, labelled, and within the paper",
    arguments: [
      [], [(0, 0)], [(0, 5)], [(0, 1), (1, 2), (2, 0.5)], [(0, 1e9), (1e6, 2e9)],
      [(0.001, 0.0001), (0.002, 0.0002)],
    ] as [[(x: Double, y: Double)]])
  func isWellFormed(points: [(x: Double, y: Double)]) throws {
    let svg = Self.chart(points).svg
    let reader = try #require(Reader.read(svg))
    #expect(reader.elements.first == "svg")
    for label in ["Rate", "seconds", "kB/s", "one", "bound"] { #expect(reader.text.contains(label)) }
    let box = try #require(reader.attributes.first?["viewBox"]).split(separator: " ").compactMap {
      Double($0)
    }
    for attributes in reader.attributes {
      for key in ["cx", "x"] {
        #expect(attributes[key].map { (0...box[2]).contains(Double($0) ?? -1) } != false)
      }
      for key in ["cy", "y"] {
        #expect(attributes[key].map { (0...box[3]).contains(Double($0) ?? -1) } != false)
      }
    }
  }

  @Test func namesCannotBreakTheDocument() throws {
    let reader = try #require(Reader.read(Self.chart([(0, 1)], name: "<a> & \"b\" \u{1B}[2J").svg))
    #expect(reader.text.contains("<a> & \"b\" \\u{1B}[2J"))
  }

  @Test func bothPapersHaveTheirColors() {
    let svg = Self.chart([(0, 1), (1, 1)]).svg
    #expect(svg.contains("prefers-color-scheme:dark"))
    // Every class that is used has a rule on either paper.
    for name in ["paper", "axis", "grid", "line0"] {
      #expect(svg.components(separatedBy: ".\(name){").count == 3, "\(name)")
    }
  }

  @Test(
    "the scale ends with a round number not below the data, in few steps",
    arguments: [0.0003, 0.7, 1, 3, 7, 9.99, 10, 99, 100, 173.2, 1402.3, 123_456_789])
  func scales(most: Double) {
    let scale = LineChart.Scale(upTo: most)
    #expect(scale.end >= most * 0.999_999 && scale.end <= most * 2)
    #expect((3...10).contains(scale.ticks.count))
    #expect(scale.ticks.first == 0 && scale.ticks.last == scale.end)
  }
}
