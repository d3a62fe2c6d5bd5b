import Foundation
import Testing

@testable import BulkTransfer

/// What is shown as a rate, on a link of exactly 10 000 octets per second.
@Suite("Rates that are shown")
struct RateRulesTests {
  private func schedule() -> Schedule {
    var schedule = Schedule()
    schedule.objects = [image(100_000)]
    schedule.bytesPerSecond = 10_000
    schedule.latency = 10_000
    schedule.attempts = 2
    return schedule
  }

  private func isNear(_ rate: Double, within tolerance: Double) -> Bool {
    (10_000 - tolerance...10_000 + tolerance).contains(rate)
  }

  private func average(_ world: HaulWorld) throws -> Double {
    try #require(world.counts.progress.last?.averageBytesPerSecond)
  }

  @Test("A straight transfer has the rate of the link")
  func straight() throws {
    let world = try expectVerified(schedule())
    #expect(isNear(try average(world), within: 500))
  }

  @Test("After a resumption only what was sent counts")
  func resumed() throws {
    var schedule = schedule()
    schedule.incidents = [(5_000_000, .senderCrash)]
    let world = try expectVerified(schedule)
    let last = try #require(world.counts.progress.last)
    #expect(last.resumedFrom > 30_000)
    #expect(isNear(try average(world), within: 500))
  }

  @Test("After a reconnect of the same run the time without a link does not count")
  func reconnected() throws {
    var schedule = schedule()
    schedule.reconnectDelay = 30_000_000
    schedule.incidents = [(5_000_000, .cut)]
    let world = try expectVerified(schedule)
    #expect(isNear(try average(world), within: 700))
  }

  @Test("The silence before a loss is noticed is no transfer time", arguments: [1, 4, 9])
  func faded(seconds: Int) throws {
    var schedule = schedule()
    schedule.incidents = [(5_000_000, .fade(seconds * 1_000_000))]
    let world = try expectVerified(schedule)
    #expect(isNear(try average(world), within: 700))
    let last = try #require(world.counts.progress.last)
    #expect(last.elapsed.transfer > .seconds(9) && last.elapsed.transfer < .seconds(12))
    #expect(last.elapsed.connect > .seconds(seconds) && last.elapsed.connect < .seconds(seconds + 2))
  }

  @Test("A link that is lost while the receiver is busy leaves the rates in motion")
  func lostWhileBusy() throws {
    var meter = ProgressMeter(now: .zero)
    meter.enter(.transfer, now: .zero)
    meter.flowing(now: .zero)
    meter.received(10_000, durable: 10_000, now: .seconds(1))
    meter.busy(seconds: 30, quietSince: .seconds(1))
    meter.broken(confirmedAt: .seconds(1), isExpected: true, now: .seconds(8))
    #expect(meter.snapshot(now: .seconds(8)).busySeconds == nil)
    meter.enter(.transfer, now: .seconds(10))
    meter.flowing(now: .seconds(10))
    meter.received(30_000, durable: 30_000, now: .seconds(12))
    let state = meter.snapshot(now: .seconds(12))
    #expect(isNear(try #require(state.averageBytesPerSecond), within: 1))
    #expect(state.elapsed.transfer == .seconds(10))
  }

  @Test("A pause is no transfer time", arguments: [12, 10_000])
  func paused(hostDepth: Int) throws {
    var schedule = schedule()
    schedule.hostDepth = hostDepth
    schedule.incidents = [(5_000_000, .pause), (25_000_000, .resume)]
    let world = try expectVerified(schedule)
    #expect(isNear(try average(world), within: 500))
    #expect(try #require(world.counts.progress.last).elapsed.transfer > .seconds(28))
  }

  @Test("Erasing before the first octet is no transfer time, and is shown apart")
  func erasedBefore() throws {
    var schedule = schedule()
    schedule.flash.erasesAtOpen = true
    schedule.flash.eraseTime = .seconds(1)
    let world = try expectVerified(schedule)
    let last = try #require(world.counts.progress.last)
    #expect(isNear(try average(world), within: 500))
    #expect(last.elapsed.prepare > .seconds(24))
    #expect(last.elapsed.transfer > .seconds(9) && last.elapsed.transfer < .seconds(11))
  }

  @Test("Erasing once the first segment has come is no transfer time either, if the buffer is small")
  func erasedLater() throws {
    var schedule = schedule()
    schedule.receiver.buffer = 8192
    schedule.flash.sectorSize = 1 << 17
    schedule.flash.eraseTime = .seconds(25)
    let world = try expectVerified(schedule)
    #expect(isNear(try average(world), within: 1000))
  }

  @Test("A deep queue at the sender's host is not progress", arguments: [CarrierKind.gatt, .l2cap])
  func deepQueue(carrier: CarrierKind) throws {
    var schedule = schedule()
    schedule.carrier = carrier
    schedule.hostDepth = 262  // 64 kB
    schedule.configuration.initialWindow = 65536
    let world = try expectVerified(schedule)
    #expect(isNear(try average(world), within: 1000))
    let moving = world.counts.progress.filter { $0.phase == .transfer && $0.receivedBytes > 20_000 }
    #expect(moving.count > 5)
    for state in moving {
      let shown = try #require(state.bytesPerSecond)
      #expect(isNear(shown, within: 1000))
    }
    // Done is said when the receiver has everything, and that takes ten seconds on this link.
    #expect(world.now > 10_000_000)
    let early = world.counts.progress.filter { $0.phase != .done && $0.fraction >= 1 }
    #expect(early.isEmpty)
  }

  @Test("The time that is left falls to nothing, and phases come in their order")
  func remaining() throws {
    let world = try expectVerified(schedule())
    let states = world.counts.progress
    let half = try #require(states.first { $0.receivedBytes >= 50_000 })
    let left = try #require(half.timeRemaining)
    #expect(left > .milliseconds(4300) && left < .milliseconds(5700))
    let order = ProgressState.Phase.allCases
    let places = states.compactMap { order.firstIndex(of: $0.phase) }
    #expect(zip(places, places.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(states.last?.phase == .done)
    #expect(states.dropLast().allSatisfy { $0.phase != .done })
  }
}
