import Foundation
import Testing

/// Nothing is lost from the public interface, and nothing added to it, unseen.
@Suite(.timeLimit(.minutes(30))) struct SymbolListTests {
  private static let writes = ProcessInfo.processInfo.environment[SymbolList.variable] == "write"

  @Test(.enabled(if: SymbolGraph.obstacle == nil, "\(SymbolGraph.obstacle ?? "")"))
  func thePublicSymbolsAreThoseOfTheList() async throws {
    let built = SymbolList(try await SymbolGraph.read())
    // A graph that was read wrongly would be short.
    try #require(built.lines.count > 300)
    if Self.writes { try built.write() }
    let listed = try SymbolList.checkedIn()
    let difference = built.lines.difference(from: listed.lines)
    let added = difference.insertions.map { "  added:   \(Self.line(of: $0))" }
    let removed = difference.removals.map { "  removed: \(Self.line(of: $0))" }
    if !difference.isEmpty {
      Issue.record(
        """
        the public symbols have changed:
        \((removed + added).joined(separator: "\n"))
        Where that is meant, renew the list with: \(SymbolList.renewal)
        """)
    }
  }

  private static func line(of change: CollectionDifference<String>.Change) -> String {
    switch change {
    case .insert(_, let line, _), .remove(_, let line, _): line
    }
  }

  @Test func theListIsSortedAndHasEverySymbolOnce() throws {
    let lines = try SymbolList.checkedIn().lines
    #expect(lines == lines.sorted())
    #expect(Set(lines).count == lines.count)
  }
}
