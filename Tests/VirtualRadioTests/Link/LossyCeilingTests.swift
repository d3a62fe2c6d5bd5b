import TestSupport
import Testing

@testable import VirtualRadio

/// The ceiling of a link that loses packets, against the link itself with a source that never runs dry.
@Suite("Link ceiling and link layer with loss") struct LossyCeilingTests {
  /// Links whose events are short count most how an event begins: with a packet that the one before has delivered, or with a new one.
  static let links: [(LinkParameters, mtu: Int)] = [
    (LinkParameters(phy: .le2M, connectionInterval: .milliseconds(30), packetsPerEvent: 1), 247),
    (LinkParameters(phy: .le1M, connectionInterval: .milliseconds(15), packetsPerEvent: 2), 247),
    (LinkParameters(phy: .le2M, connectionInterval: .milliseconds(30), packetsPerEvent: 3), 498),
    (LinkParameters(phy: .codedS8, connectionInterval: .milliseconds(20)), 247),
    (LinkParameters(phy: .codedS2, connectionInterval: .milliseconds(11)), 498),
    (LinkParameters(phy: .le2M, connectionInterval: .microseconds(7500)), 247),
    (LinkParameters(phy: .le1M, dataLength: 27, connectionInterval: .microseconds(7500)), 23),
  ]

  /// 80 000 exchanges and more: what they carry is within some thousandths of what is to be expected.
  @Test(
    "with loss the link carries what the ceiling says",
    arguments: Sweep.part(of: Array(links.indices)), [0.05, 0.3, 0.6])
  func linkKeepsToCeiling(_ link: Int, _ rate: Double) {
    var parameters = Self.links[link].0
    parameters.attMTU = Self.links[link].mtu
    parameters.packetErrorRate = rate
    parameters.supervisionTimeout = .seconds(32)
    let flow = LinkCeiling(parameters).writesWithoutResponse()
    let events = 80_000 / max(1, Int(flow.exchangesPerEvent))
    // An ATT MTU's write with the headers of ATT and L2CAP.
    var trial = LinkTrial(parameters, unit: [parameters.attMTU + 4], seed: 11)
    trial.run(until: parameters.connectionInterval * events)
    let seconds = parameters.connectionInterval * events / .seconds(1)
    let measured = Double(trial.units * flow.payload) / seconds
    #expect(!trial.hasEnded)
    #expect(
      abs(measured / flow.sustained - 1) < 0.02,
      "\(parameters) at \(rate): \(measured) of \(flow.sustained)")
  }
}
