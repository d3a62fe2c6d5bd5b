import Foundation
import Radio
import Testing

@testable import CoreBluetooth

@Suite struct AdvertisementBudgetTests {
  private static let short = (0..<20).map { BluetoothUUID(0xFD00 + UInt16($0)) }
  private static let long = (0..<4).map { _ in BluetoothUUID(UUID()) }

  /// Octets of legacy advertising data that the contents need, flags apart, packed as well as can be.
  private func octets(_ name: String?, _ services: [BluetoothUUID]) -> Int {
    let shorts = services.filter { $0.short != nil }.count
    let longs = services.count - shorts
    return (shorts > 0 ? 2 + 2 * shorts : 0) + (longs > 0 ? 2 + 16 * longs : 0)
      + (name.map { 2 + $0.utf8.count } ?? 0)
  }

  @Test(arguments: [0, 1, 8, 10, 26, 27, 29], [0, 1, 2])
  func keepsNamesThatFit(length: Int, longs: Int) {
    let name = String(repeating: "n", count: length)
    let budget = AdvertisementBudget(name: name, services: Array(Self.long.prefix(longs)))
    #expect(budget.advertisement.localName == (length == 0 ? nil : name))
    #expect(!budget.isNameShortened)
    #expect(budget.advertisement.services.count + budget.leftOut.count == longs)
    #expect(budget.leftOut.count == (longs == 2 && length > 11 ? 1 : 0))
  }

  @Test(arguments: [(30, "n", 29), (40, "é", 14), (9, "👩‍🔧", 2), (200, "n", 29)])
  func shortensAtACharacter(count: Int, character: String, kept: Int) {
    let budget = AdvertisementBudget(name: String(repeating: character, count: count), services: [])
    #expect(budget.isNameShortened)
    #expect(budget.advertisement.localName == String(repeating: character, count: kept))
  }

  @Test(arguments: 0...20, [0, 1, 2, 3])
  func neverExceedsBothPackets(shorts: Int, longs: Int) {
    let services = Array(Self.long.prefix(longs)) + Array(Self.short.prefix(shorts))
    let budget = AdvertisementBudget(name: "production line 7", services: services)
    #expect(octets(budget.advertisement.localName, budget.advertisement.services) <= 28 + 31)
    #expect(budget.advertisement.localName == "production line 7")
    #expect(Set(budget.advertisement.services + budget.leftOut) == Set(services))
    if services.count <= 1 { #expect(budget.leftOut == []) }
  }
}
