import TestSupport
import Testing

@testable import VirtualRadio

@Suite("Link ceiling and link layer against the reference table") struct CeilingTests {
  /// 0.2 % and the rounding of a figure that is given with one decimal.
  private func isNear(_ kilobits: Double, _ expected: Double) -> Bool {
    abs(kilobits - expected) <= expected * 0.002 + 0.05
  }

  @Test("the ceiling's arithmetic equals the table", arguments: CeilingCell.all)
  func ceilingEqualsTable(_ cell: CeilingCell) {
    let flow = cell.flow
    let seconds = Double(CeilingCell.events) * cell.interval / 1000
    let kilobits = Double(flow.units(inEvents: CeilingCell.events) * flow.payload) * 8 / 1000 / seconds
    #expect(isNear(kilobits, cell.kilobits))
    // Counting whole units of a finite time falls short by less than one unit.
    let unit = Double(flow.payload) * 8 / 1000 / seconds
    #expect(flow.sustained * 8 / 1000 >= kilobits - 0.001)
    #expect(flow.sustained * 8 / 1000 <= kilobits + unit + 0.001)
  }

  /// Where 2000 events would be very many packets, fewer are simulated, and the result must be the ceiling's to the unit.
  @Test(
    "the link layer with an endless source reaches the table",
    arguments: Sweep.part(of: CeilingCell.all))
  func linkLayerEqualsTable(_ cell: CeilingCell) {
    let perEvent = cell.parameters.connectionInterval / .microseconds(400)
    let events = min(CeilingCell.events, Int(6000 / min(perEvent, Double(cell.cap ?? 1000))))
    var trial = LinkTrial(cell.parameters, unit: cell.unit)
    trial.run(until: cell.parameters.connectionInterval * events)
    #expect(trial.units == cell.flow.units(inEvents: events))
    if events == CeilingCell.events {
      let seconds = Double(events) * cell.interval / 1000
      #expect(isNear(Double(trial.units * cell.flow.payload) * 8 / 1000 / seconds, cell.kilobits))
    }
  }

  @Test(
    "asymptotes, plain and encrypted",
    arguments: Sweep.part(
      of: [
        (.le1M, .writes(mtu: 23), 27, 236.7, 226.0), (.le1M, .writes(mtu: 247), 27, 295.4, 281.8),
        (.le1M, .writes(mtu: 185), 251, 738.3, 726.5), (.le1M, .writes(mtu: 247), 251, 790.9, 780.8),
        (.le1M, .writes(mtu: 498), 251, 802.3, 792.0), (.le2M, .writes(mtu: 23), 27, 322.6, 312.5),
        (.le2M, .writes(mtu: 185), 251, 1272.7, 1255.2), (.le2M, .writes(mtu: 247), 251, 1402.3, 1386.4),
        (.le2M, .writes(mtu: 498), 251, 1422.4, 1406.2), (.le2M, .writes(mtu: 517), 251, 1266.0, 1247.6),
        (.codedS2, .writes(mtu: 247), 251, 372.5, 368.0), (.codedS8, .writes(mtu: 247), 251, 109.6, 108.1),
        (.le1M, .channel(mps: 247, sdu: 4096), 251, 796.3, 786.0),
        (.le1M, .channel(mps: 247, sdu: 65535), 251, 800.2, 790.0),
        (.le2M, .channel(mps: 247, sdu: 245), 251, 1408.0, 1392.0),
        (.le2M, .channel(mps: 247, sdu: 65535), 251, 1418.5, 1402.3),
        (.codedS2, .channel(mps: 247, sdu: 4096), 251, 374.6, 370.0),
        (.codedS8, .channel(mps: 247, sdu: 4096), 251, 110.6, 109.0),
      ] as [(PHY, CeilingCell.Carrier, Int, Double, Double)]))
  func asymptotes(
    _ phy: PHY, _ carrier: CeilingCell.Carrier, _ dataLength: Int, _ plain: Double, _ encrypted: Double
  ) {
    let cell = CeilingCell(
      phy: phy, carrier: carrier, dataLength: dataLength, interval: 4000, kilobits: plain)
    for (isEncrypted, expected) in [(false, plain), (true, encrypted)] {
      var parameters = cell.parameters
      parameters.isEncrypted = isEncrypted
      let flow =
        switch carrier {
        case .writes: LinkCeiling(parameters).writesWithoutResponse()
        case .channel(let mps, let sdu): LinkCeiling(parameters).channel(sdu: sdu, mps: mps)
        }
      #expect(isNear(flow.asymptote * 8 / 1000, expected))
      // At an interval of 4 s the borders of events cost next to nothing: the link layer comes as near.
      var trial = LinkTrial(parameters, unit: cell.unit)
      trial.run(until: .seconds(8))
      let kilobits =
        Double(trial.frameOctets) / Double(trial.frameOctetsInUnit)
        * Double(flow.payload) * 8 / 1000 / 8
      #expect(abs(kilobits - expected) <= expected * 0.005)
    }
  }
}
