import Testing

/// The page about the interface speaks of all of it, and of tests that exist.
@Suite struct SurfaceTableTests {
  @Test func everySymbolHasARow() throws {
    let listed = try SymbolList.checkedIn().paths
    let rows = try SurfaceTable().rows
    let named = rows.flatMap(\.symbols)
    try #require(listed.count > 300)
    #expect(listed.subtracting(named).sorted() == [])
    #expect(Set(rows.filter { !$0.isLeftOut }.flatMap(\.symbols)).subtracting(listed).sorted() == [])
    let twice = Dictionary(grouping: named) { $0 }.filter { $0.value.count > 1 }.keys
    #expect(twice.sorted() == [])
  }

  @Test func everyRowHasATestOrAReason() throws {
    let names = try TestNames()
    for row in try SurfaceTable().rows {
      #expect(!row.tests.isEmpty || row.hasReason, "line \(row.line) has neither a test nor a reason")
      let kinds = ["implemented", "differs: ", "not applicable: ", "ours"]
      #expect(kinds.contains { row.status.hasPrefix($0) }, "line \(row.line): \(row.status)")
      for test in row.tests { #expect(names.contains(test), "line \(row.line): there is no \(test)") }
    }
  }

  /// What the table calls ours is what the list marks, and nothing else.
  @Test func additionsAreMarked() throws {
    let marked = try SymbolList.checkedIn().lines.filter { $0.hasPrefix("+ ") }.map(SymbolList.path)
    let ours = try SurfaceTable().rows.filter { $0.status.hasPrefix("ours") }.flatMap(\.symbols)
    #expect(Set(marked).sorted() == Set(ours).sorted())
  }
}
