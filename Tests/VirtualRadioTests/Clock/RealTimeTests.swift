import Dispatch
import Locking
import Radio
import Testing

@testable import VirtualRadio

@Suite("Real-time and unpaced clock") struct RealTimeTests {
  @Test(
    "each timer fires, and none of them early",
    arguments: [VirtualClock.Mode.realTime, .unpaced])
  func timers(_ mode: VirtualClock.Mode) async {
    let clock = VirtualClock(mode)
    let start = clock.now
    let log = Log<(Int, Duration)>()
    await withCheckedContinuation { continuation in
      for milliseconds in [12, 4, 8] {
        _ = clock.schedule(after: .milliseconds(milliseconds)) {
          log.append((milliseconds, clock.now))
          if log.all.count == 3 { continuation.resume() }
        }
      }
    }
    #expect(log.all.map(\.0).sorted() == [4, 8, 12])
    for (milliseconds, instant) in log.all { #expect(instant - start >= .milliseconds(milliseconds)) }
  }

  @Test("a timer that is set while the clock sleeps for a later one is not late for it")
  func earlierTimer() async {
    let clock = VirtualClock(.realTime)
    let late = clock.schedule(after: .seconds(3600)) {}
    await withCheckedContinuation { continuation in
      _ = clock.schedule(after: .milliseconds(1)) { continuation.resume() }
    }
    late.cancel()
    #expect(clock.now < .seconds(3600))
  }

  @Test("unpaced air runs an hour at once, in order, on its own time line")
  func unpacedAir() async {
    let clock = VirtualClock(.unpaced)
    let link = PosixMutex(
      LinkLayer(parameters: LinkParameters(), generator: SeededGenerator(seed: 1), now: .zero))
    let timers = Log<AirTimer>()
    let delivered = PosixMutex(0)
    let target = 20_000
    await withCheckedContinuation { continuation in
      let timer = clock.makeAirTimer { now in
        let next = link.withLock { link -> Duration? in
          var outputs: [LinkOutput] = []
          link.advance(to: now, into: &outputs)
          delivered.withLock { count in
            for case .delivered in outputs { count += 1 }
          }
          while link.hasRoom(.central), delivered.withLock({ $0 < target }) {
            _ = link.enqueue([UInt8](repeating: 1, count: 251), from: .central, now: now)
          }
          return link.nextWakeup
        }
        timers.all.first?.set(at: next)
        if next == nil { continuation.resume() }
        return .audible
      }
      timers.append(timer)
      timer.set(at: .zero)
    }
    timers.removeAll()
    let events = (target + 20) / 21
    #expect(clock.airNow >= .milliseconds(30) * (events - 1))
    #expect(clock.airNow <= .milliseconds(30) * (events + 4))
  }

  @Test("air events of several timers come in order of air time")
  func unpacedOrder() async {
    let clock = VirtualClock(.unpaced)
    let log = Log<Int>()
    let timers = Log<AirTimer>()
    await withCheckedContinuation { continuation in
      let gate = clock.makeAirTimer { _ in
        for index in [3, 1, 2] {
          let timer = clock.makeAirTimer { _ in
            log.append(index)
            if index == 3 { continuation.resume() }
            return .audible
          }
          timers.append(timer)
          timer.set(at: .seconds(index))
        }
        return .audible
      }
      timers.append(gate)
      gate.set(at: .zero)
    }
    timers.removeAll()
    #expect(log.all == [1, 2, 3])
    #expect(clock.airNow == .seconds(3))
  }

  @Test(
    "a clock that is released ends its thread and frees what waited", arguments: VirtualClock.Mode.allCases)
  func release(_ mode: VirtualClock.Mode) {
    final class Owner: Sendable {}
    weak var owner: Owner?
    do {
      let clock = VirtualClock(mode)
      let strong = Owner()
      owner = strong
      _ = clock.schedule(after: .seconds(3600)) { withExtendedLifetime(strong) {} }
    }
    #expect(owner == nil)
  }

  @Test("activities and watched queues cost nothing here", arguments: [VirtualClock.Mode.realTime, .unpaced])
  func activities(_ mode: VirtualClock.Mode) {
    let clock = VirtualClock(mode)
    // Unbalanced on purpose: only lock-step time counts them.
    clock.endActivity()
    clock.unwatch(.main)
  }
}
