import Foundation
import Testing

@testable import VirtualRadio

/// The tables of docs/link-budget.md: each row as its cells, by the section that it stands in.
private struct LinkBudget {
  private var tables: [[[String]]] = []

  init() throws {
    let root = URL(filePath: #filePath).pathComponents.dropLast(4)
    let path = NSString.path(withComponents: root + ["docs", "link-budget.md"])
    var isInside = false
    for line in try String(contentsOfFile: path, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
    {
      guard line.hasPrefix("|") else {
        isInside = false
        continue
      }
      let cells = line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces.union(["`"])) }
      if !isInside { tables.append([]) }
      isInside = true
      if !cells.allSatisfy({ $0.hasPrefix("---") }) { tables[tables.count - 1].append(cells) }
    }
  }

  var count: Int { tables.count }

  /// The rows of the table whose first row begins with these cells.
  func rows(_ head: String...) throws -> [[String]] {
    let table = try #require(tables.first { Array($0[0].prefix(head.count)) == head }, "\(head)")
    #expect(table.count > 1)
    return Array(table.dropFirst())
  }
}

@Suite("docs/link-budget.md") struct LinkBudgetDocumentTests {
  private let document: LinkBudget

  init() throws { document = try LinkBudget() }

  private func phy(_ word: String) throws -> PHY {
    try #require(PHY.allCases.first { $0.description == word })
  }

  private func kilobits(_ words: String, _ traffic: LinkCeiling.Traffic) throws -> String {
    let bytes = LinkCeiling(try LinkParameters(parsing: words)).octetsPerSecond(of: traffic)
    return String(format: "%.1f", bytes * 8 / 1000)
  }

  @Test func everyTableIsRead() { #expect(document.count == 6) }

  @Test func partsOfAPacket() throws {
    let rows = try document.rows("PHY", "preamble")
    #expect(rows.map(\.[0]) == PHY.allCases.map(\.description))
    for row in rows {
      let phy = try phy(row[0])
      let figures = row.dropFirst().compactMap { Int($0) }
      #expect(figures.count == 8)
      #expect(figures.prefix(6).reduce(0, +) == figures[6])
      #expect(AirTime.packet(octets: 0, phy: phy) == .microseconds(figures[6]))
      #expect(AirTime.packet(octets: 1, phy: phy) == .microseconds(figures[6] + figures[7]))
    }
  }

  @Test func timesOfPacketsAndExchanges() throws {
    let rows = try document.rows("PHY", "0", "27")
    #expect(rows.map(\.[0]) == PHY.allCases.map(\.description))
    for row in rows {
      let phy = try phy(row[0])
      let expected = [
        AirTime.packet(octets: 0, phy: phy), AirTime.packet(octets: 27, phy: phy),
        AirTime.packet(octets: 251, phy: phy), AirTime.packet(octets: 251, phy: phy, isEncrypted: true),
        AirTime.pair(centralOctets: 27, phy: phy), AirTime.pair(centralOctets: 251, phy: phy),
        AirTime.pair(centralOctets: 251, phy: phy, isEncrypted: true),
      ]
      #expect(row.dropFirst().compactMap { Int($0) }.map { Duration.microseconds($0) } == expected, "\(phy)")
    }
  }

  @Test func theExampleByHand() throws {
    let link = try LinkParameters(parsing: "phy=2M,mtu=247,dle=251,interval=30")
    let flow = LinkCeiling(link).flow(of: .commands)
    let exchange = AirTime.pair(centralOctets: flow.packets[0], phy: link.phy)
    let expected: KeyValuePairs = [
      "payload of a value": "\(flow.payload)",
      "octets of its frame, which is one packet": "\(flow.packets.reduce(0, +))",
      "microseconds of an exchange": "\(Int(exchange / .microseconds(1)))",
      "exchanges in an interval": "\(Int(flow.exchangesPerEvent))",
      "microseconds left over": "\(Int((flow.idleShare * 30_000).rounded()))",
      "bytes per second": "\(Int(flow.sustained.rounded()))",
      "kbit/s": try kilobits("\(link)", .commands),
    ]
    #expect(flow.packets.count == 1)
    #expect(try document.rows("step") == expected.map { [$0.key, $0.value] })
  }

  @Test func ceilings() throws {
    for row in try document.rows("link", "writes without response") {
      #expect(try row[1] == kilobits(row[0], .commands), "\(row[0])")
      #expect(try row[2] == kilobits(row[0], .channel), "\(row[0])")
    }
  }

  @Test func writesWithResponse() throws {
    for row in try document.rows("ATT MTU", "7.5 ms", "15 ms", "30 ms", "50 ms") {
      for (interval, figure) in zip(["7.5", "15", "30", "50"], row.dropFirst()) {
        let link = try LinkParameters(parsing: "mtu=\(row[0]),interval=\(interval)")
        #expect(figure == String(format: "%.0f", LinkCeiling(link).octetsPerSecond(of: .requests)))
      }
    }
  }

  @Test func advice() throws {
    let names: [String: LinkAdvice.Parameter] = [
      "data length": .dataLength, "ATT MTU": .attMTU, "PHY": .phy, "packets in an event": .packetsPerEvent,
      "interval": .interval,
    ]
    let rows = try document.rows("link", "parameter", "better")
    #expect(Set(rows.compactMap { names[$0[1]] }) == Set(LinkAdvice.Parameter.allCases))
    for row in rows {
      let advice = LinkAdvice.advice(on: try LinkParameters(parsing: row[0]), for: .commands)
      let found = try #require(advice.first { $0.parameter == names[row[1]] }, "\(row[0])")
      #expect("\(found.better)" == row[2])
      #expect(try row[3] == kilobits(row[0], .commands))
      #expect(try row[4] == kilobits(row[2], .commands))
    }
  }
}
