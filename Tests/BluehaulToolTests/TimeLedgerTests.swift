import BulkTransfer
import Testing
import VirtualRadio

@testable import BluehaulTool

@Suite struct TimeLedgerTests {
  private func activity(_ hold: TransferActivity.Hold, _ received: UInt64 = 0) -> TransferActivity {
    TransferActivity(hold: hold, received: received)
  }

  private func usage(air: Int, interval: Int, packets: Int = 0) -> LinkUsage {
    var usage = LinkUsage()
    usage.air = .milliseconds(air)
    usage.interval = .milliseconds(interval)
    usage.packets = packets
    return usage
  }

  @Test("the link's own time comes first, what is left belongs to what was waited for; the sum is the whole")
  func attributes() {
    var ledger = TimeLedger()
    // Before the session there is nothing to account for.
    ledger.note(activity(.link), usage: usage(air: 5, interval: 5), now: .milliseconds(50))
    ledger.note(
      activity(.agreement), usage: usage(air: 10, interval: 20, packets: 3), now: .milliseconds(100))
    ledger.note(activity(.carrier), usage: usage(air: 11, interval: 49), now: .milliseconds(160))
    ledger.note(activity(.receipts, 100), usage: usage(air: 111, interval: 149), now: .milliseconds(370))
    ledger.note(activity(.storage, 200), usage: usage(air: 121, interval: 149), now: .milliseconds(400))
    ledger.note(activity(.link, 200), usage: usage(air: 121, interval: 149), now: .milliseconds(1400))
    ledger.note(activity(.carrier, 200), usage: usage(air: 121, interval: 149), now: .milliseconds(1500))
    ledger.note(activity(.verification, 300), usage: usage(air: 221, interval: 199), now: .milliseconds(1650))
    ledger.note(
      activity(.farewell, 300), usage: usage(air: 222, interval: 200, packets: 40), now: .milliseconds(1700))
    // What comes after the last word does not count.
    ledger.note(activity(.link, 300), usage: usage(air: 900, interval: 900), now: .milliseconds(9000))
    let breakdown = ledger.breakdown
    #expect(breakdown.air == .milliseconds(212))
    #expect(breakdown.interval == .milliseconds(180))
    #expect(breakdown.agreement == .milliseconds(30))
    #expect(breakdown.host == .milliseconds(10))
    #expect(breakdown.receipts == .milliseconds(20))
    #expect(breakdown.storage == .milliseconds(1000))
    #expect(breakdown.connection == .milliseconds(100))
    #expect(breakdown.verification == .milliseconds(48))
    #expect(ledger.duration == .milliseconds(1600))
    #expect(ledger.carried?.packets == 37)
    // From 160 ms to 1650 ms, less the 100 ms without a link.
    #expect(ledger.transfer == .milliseconds(1390))
    #expect(breakdown.parts.reduce(.zero) { $0 + ($1.time ?? .zero) } == ledger.duration)
    #expect(ledger.points.last == TimeLedger.Point(time: .milliseconds(1600), received: 300))
  }

  @Test("without a link that tells, air and interval are not known, and the sum is still the whole")
  func unknownLink() {
    var ledger = TimeLedger()
    for (hold, at) in [
      (TransferActivity.Hold.agreement, 0), (.carrier, 10), (.receipts, 30), (.verification, 70),
      (.farewell, 75),
    ] {
      ledger.note(activity(hold), usage: nil, now: .milliseconds(at))
    }
    #expect(ledger.breakdown.air == nil && ledger.breakdown.interval == nil)
    #expect(ledger.breakdown.host == .milliseconds(20))
    #expect(ledger.breakdown.receipts == .milliseconds(40))
    #expect(ledger.breakdown.parts.reduce(.zero) { $0 + ($1.time ?? .zero) } == .milliseconds(75))
    #expect(ledger.carried == nil)
  }

  @Test("a session that ends without the receiver's last word has no duration")
  func unfinished() {
    var ledger = TimeLedger()
    ledger.note(activity(.agreement), usage: nil, now: .zero)
    ledger.note(activity(.carrier), usage: nil, now: .milliseconds(1))
    #expect(ledger.duration == nil)
  }

  @Test("however much arrives, few points are kept, in order, with the first and the last")
  func thinsOut() {
    var ledger = TimeLedger()
    for step in 0..<100_000 {
      ledger.note(activity(.carrier, UInt64(step) * 4096), usage: nil, now: .milliseconds(step * 30))
    }
    #expect(ledger.points.count < 5000 && ledger.points.count > 500)
    #expect(ledger.points.first == TimeLedger.Point(time: .zero, received: 0))
    #expect(ledger.points.last == TimeLedger.Point(time: .milliseconds(99_999 * 30), received: 99_999 * 4096))
    #expect(
      zip(ledger.points, ledger.points.dropFirst()).allSatisfy {
        $0.time < $1.time && $0.received <= $1.received
      })
  }

  @Test("what arrives at one moment is one point")
  func arrivals() {
    var ledger = TimeLedger()
    ledger.note(activity(.agreement), usage: nil, now: .milliseconds(100))
    for received in [10, 20, 30] as [UInt64] {
      ledger.note(activity(.carrier, received), usage: nil, now: .milliseconds(130))
    }
    ledger.note(activity(.farewell, 40), usage: nil, now: .milliseconds(160))
    #expect(
      ledger.points == [
        .init(time: .zero, received: 0), .init(time: .milliseconds(30), received: 30),
        .init(time: .milliseconds(60), received: 40),
      ])
  }
}
