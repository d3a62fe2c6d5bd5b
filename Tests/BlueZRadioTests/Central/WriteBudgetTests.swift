import Testing

@testable import BlueZRadio

@Suite("Bytes in flight")
struct WriteBudgetTests {
  private static let small = WriteBudget.Amount(octets: 1000, values: 10)

  @Test("values are taken until octets or values are used up", arguments: [(100, 10), (300, 3), (20, 10)])
  func capacity(size: Int, expected: Int) {
    var budget = WriteBudget(capacity: Self.small)
    var taken = 0
    while budget.take(size) { taken += 1 }
    #expect(taken == expected)
    #expect(budget.inFlight == WriteBudget.Amount(octets: taken * size, values: taken))
    #expect(budget.needsEvidence)
    #expect(!budget.hasRoom(for: size))
  }

  @Test("evidence is needed at half of either, and never where a value would be refused without it")
  func half() {
    for size in [0, 1, 20, 99, 100, 101, 490, 510] {
      var budget = WriteBudget(capacity: Self.small)
      while budget.hasRoom(for: 512) {
        #expect(budget.needsEvidence == (budget.inFlight.octets >= 500 || budget.inFlight.values >= 5))
        #expect(budget.take(size) == true)
      }
      #expect(budget.needsEvidence)
    }
  }

  @Test("a reply gives back what the daemon had sent before its request, and not what came later")
  func evidence() {
    var budget = WriteBudget(capacity: Self.small)
    for _ in 0..<5 { #expect(budget.take(100) == true) }
    let coverage = budget.coverage(unsent: WriteBudget.Amount(octets: 200, values: 2))
    for _ in 0..<4 { #expect(budget.take(100) == true) }
    budget.confirm(coverage)
    #expect(budget.inFlight == WriteBudget.Amount(octets: 600, values: 6))
  }

  @Test("an overestimate of what is unsent proves less, never more")
  func caution() {
    var budget = WriteBudget(capacity: Self.small)
    #expect(budget.take(100) == true)
    let coverage = budget.coverage(unsent: WriteBudget.Amount(octets: 5000, values: 50))
    #expect(coverage == WriteBudget.Amount())
    budget.confirm(coverage)
    budget.confirm(WriteBudget.Amount(octets: 9999, values: 99))
    #expect(budget.inFlight == WriteBudget.Amount())
  }

  @Test("one value is taken whatever its length, so that a small budget never stands still")
  func oversize() {
    var budget = WriteBudget(capacity: WriteBudget.Amount(octets: 10, values: 1))
    #expect(budget.take(512) == true)
    #expect(budget.take(0) == false)
  }
}
