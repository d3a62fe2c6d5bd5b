import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

/// A measurement of `Benchmarks/link.json`, and what its figures are held to.
private struct Bound: Decodable {
  let name: String
  let options: String
  var least: [String: Double]?
  var most: [String: Double]?
}

extension WholeRuns {
  @Suite struct BenchBoundsTests {
    /// In simulated time, so on every machine alike; a part of them where a sanitizer slows everything down.
    @Test func transfersComeAsNearToTheCeilingAsTheyHaveTo() async throws {
      let bounds = try JSONDecoder().decode(
        [Bound].self, from: Data(Documentation.text("Benchmarks/link.json").utf8))
      #expect(bounds.count >= 15)
      for bound in bounds.prefix(Sweep.count(bounds.count)) {
        let run = await ToolRun(["bench", "--json"] + bound.options.split(separator: " ").map(String.init))
        #expect(run.code == .success, "\(bound.name): \(run.errors)")
        let last = try #require(run.lines.last)
        let figures = try #require(
          try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
        #expect(bound.least?.isEmpty == false || bound.most?.isEmpty == false)
        for (member, limit) in bound.least ?? [:] {
          let figure = try #require((figures[member] as? NSNumber)?.doubleValue, "\(member)")
          #expect(figure >= limit, "\(bound.name): \(member)")
        }
        for (member, limit) in bound.most ?? [:] {
          let figure = try #require((figures[member] as? NSNumber)?.doubleValue, "\(member)")
          #expect(figure <= limit, "\(bound.name): \(member)")
        }
      }
    }
  }
}
