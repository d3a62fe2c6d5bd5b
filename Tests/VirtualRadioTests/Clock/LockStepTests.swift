import Dispatch
import Glibc
import Locking
import Radio
import Testing

@testable import VirtualRadio

/// What happened, in order, from any thread.
final class Log<Entry: Sendable>: Sendable {
  private let entries = PosixMutex<[Entry]>([])
  func append(_ entry: Entry) { entries.withLock { $0.append(entry) } }
  var all: [Entry] { entries.withLock(\.self) }
  func removeAll() { entries.withLock { $0 = [] } }
}

@Suite("Lock-step clock") struct LockStepTests {
  let clock = VirtualClock(.lockStep)

  @Test("timers come in order of time and of scheduling, each at its instant")
  func order() throws {
    let log = Log<String>()
    for (name, delay) in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2)] {
      _ = clock.schedule(after: .seconds(delay)) { [clock] in log.append("\(name) \(clock.now)") }
    }
    #expect(try !clock.run(until: { false }))
    #expect(log.all == ["a 1.0 seconds", "b1 2.0 seconds", "b2 2.0 seconds", "c 3.0 seconds"])
    #expect(clock.now == .seconds(3))
  }

  @Test("time stands until somebody drives it, and after the predicate holds")
  func standsStill() throws {
    let log = Log<Int>()
    for index in 1...10 { _ = clock.schedule(after: .seconds(index)) { log.append(index) } }
    #expect(log.all == [])
    #expect(try clock.run(until: { log.all.count == 4 }))
    #expect(log.all == [1, 2, 3, 4])
    #expect(clock.now == .seconds(4))
    try clock.run(for: .milliseconds(2500))
    #expect(log.all == [1, 2, 3, 4, 5, 6])
    #expect(clock.now == .milliseconds(6500))
  }

  @Test("a limit ends the run before the first event beyond it")
  func limit() throws {
    let log = Log<Int>()
    for index in 1...10 { _ = clock.schedule(after: .seconds(index)) { log.append(index) } }
    #expect(try !clock.run(until: { log.all.count == 9 }, within: .seconds(5)))
    #expect(log.all == [1, 2, 3, 4, 5])
    #expect(clock.now == .seconds(5))
  }

  @Test("cancelled timers do not run, and cancelling frees what they hold")
  func cancelling() throws {
    let log = Log<Int>()
    final class Owner: Sendable {}
    weak var owner: Owner?
    let timer: ScheduledWork
    do {
      let strong = Owner()
      owner = strong
      timer = clock.schedule(after: .seconds(1)) { withExtendedLifetime(strong) { log.append(1) } }
    }
    #expect(owner != nil)
    timer.cancel()
    timer.cancel()
    #expect(owner == nil)
    try clock.run(for: .seconds(2))
    #expect(log.all == [])
  }

  @Test("time waits for an activity that another thread holds")
  func activity() throws {
    let log = Log<String>()
    let queue = DispatchQueue(label: "unwatched")
    _ = clock.schedule(after: .seconds(1)) { [clock] in
      clock.async(on: queue) {
        for _ in 0..<200 { sched_yield() }
        log.append("worked at \(clock.now)")
      }
    }
    _ = clock.schedule(after: .seconds(2)) { log.append("later") }
    try clock.run(for: .seconds(3))
    #expect(log.all == ["worked at 1.0 seconds", "later"])
  }

  @Test("time waits for plain blocks of a watched queue, and for what they start")
  func watchedQueue() throws {
    let log = Log<String>()
    let first = DispatchQueue(label: "first")
    let second = DispatchQueue(label: "second")
    for queue in [first, second] { clock.watch(queue) }
    for round in 1...200 {
      _ = clock.schedule(after: .seconds(round)) { [clock] in
        first.async {
          for _ in 0..<50 { sched_yield() }
          second.async { [clock] in log.append("\(round) at \(clock.now)") }
        }
      }
    }
    try clock.run(for: .seconds(1000))
    #expect(log.all == (1...200).map { "\($0) at \(Double($0)) seconds" })
  }

  @Test("an inbox bounces between queues for as long as it likes")
  func inboxChain() throws {
    let log = Log<Duration>()
    let queues = (0..<4).map { DispatchQueue(label: "\($0)") }
    let chain = Chain(clock: clock, queues: queues, log: log)
    _ = clock.schedule(after: .seconds(1)) { chain.post(1000) }
    _ = clock.schedule(after: .seconds(2)) {}
    try clock.run(for: .seconds(5))
    #expect(log.all == [.seconds(1)])
  }

  private final class Chain: Sendable {
    private let inboxes = PosixMutex<[EventInbox<Int>]>([])

    init(clock: VirtualClock, queues: [DispatchQueue], log: Log<Duration>) {
      let made = queues.map { queue in
        EventInbox<Int>(queue: queue, clock: clock) { [weak self] left in
          guard let self else { return }
          if left == 0 { log.append(clock.now) } else { post(left - 1) }
        }
      }
      inboxes.withLock { $0 = made }
    }

    func post(_ left: Int) { inboxes.withLock { $0[left % $0.count] }.post(left) }
  }

  @Test("a queue that is no longer watched does not hold time")
  func unwatch() throws {
    let queue = DispatchQueue(label: "suspended")
    clock.watch(queue)
    clock.watch(queue)
    clock.unwatch(queue)
    clock.unwatch(queue)
    queue.suspend()
    queue.async {}
    defer { queue.resume() }
    try clock.run(for: .seconds(1))
    #expect(clock.now == .seconds(1))
  }

  @Test("what schedules itself without delay is found out")
  func livelock() {
    @Sendable func again(_ clock: VirtualClock?) {
      _ = clock?.schedule(after: .zero) { [weak clock] in again(clock) }
    }
    again(clock)
    let error = #expect(throws: VirtualClockError.self) { try clock.run(for: .seconds(1)) }
    #expect(error?.code == .livelock)
  }

  @Test("driving from a watched queue is refused instead of waiting for itself")
  func watchedDriver() {
    let queue = DispatchQueue(label: "watched")
    clock.watch(queue)
    let code = queue.sync { () -> VirtualClockError.Code? in
      do throws(VirtualClockError) { try clock.run(for: .seconds(1)) } catch { return error.code }
      return nil
    }
    #expect(code == .calledOnWatchedQueue)
  }

  @Test("only one may drive, and only lock-step time", arguments: [VirtualClock.Mode.realTime, .unpaced])
  func otherModes(_ mode: VirtualClock.Mode) throws {
    let other = VirtualClock(mode)
    #expect(throws: VirtualClockError.self) { try other.run(for: .seconds(1)) }
    let codes = Log<VirtualClockError.Code>()
    _ = clock.schedule(after: .seconds(1)) { [clock] in
      do throws(VirtualClockError) { try clock.run(for: .seconds(1)) } catch { codes.append(error.code) }
    }
    try clock.run(for: .seconds(2))
    #expect(codes.all == [.alreadyDriven])
  }

  @Test("in the background time runs by itself, sleeps when idle, and wakes for new work")
  func background() async throws {
    let failures = Log<VirtualClockError>()
    try clock.start { failures.append($0) }
    for round in 1...3 {
      await withCheckedContinuation { continuation in
        _ = clock.schedule(after: .seconds(3600)) { continuation.resume() }
      }
      #expect(clock.now == .seconds(3600 * round))
    }
    clock.stop()
    clock.stop()
    _ = clock.schedule(after: .seconds(1)) {}
    #expect(clock.now == .seconds(3 * 3600))
    try clock.run(for: .seconds(2))
    #expect(clock.now == .seconds(3 * 3600 + 2))
    #expect(failures.all.isEmpty)
  }

  @Test("stopping from a timer of the clock does not wait for itself")
  func stopFromInside() async throws {
    try clock.start { _ in }
    await withCheckedContinuation { continuation in
      _ = clock.schedule(after: .seconds(1)) { [clock] in
        clock.stop()
        continuation.resume()
      }
    }
    #expect(clock.now == .seconds(1))
  }

  @Test("air timers and programs' timers share one line, and a timer set anew fires once")
  func airTimers() throws {
    let log = Log<String>()
    let timer = clock.makeAirTimer {
      log.append("air \($0)"); return .audible
    }
    timer.set(at: .seconds(1))
    timer.set(at: .seconds(2))
    _ = clock.schedule(after: .milliseconds(1500)) { log.append("program") }
    try clock.run(for: .seconds(1))
    #expect(clock.airNow == .seconds(1))
    try clock.run(for: .seconds(5))
    timer.set(at: .seconds(7))
    timer.set(at: nil)
    try clock.run(for: .seconds(5))
    timer.set(at: .seconds(3))
    try clock.run(for: .zero)
    #expect(log.all == ["program", "air 2.0 seconds", "air 11.0 seconds"])
  }

  @Test("a predicate is not asked after silent air events, and time does not wait for them")
  func silentEvents() throws {
    let asked = Log<Duration>()
    let rounds = PosixMutex(0)
    let timers = Log<AirTimer>()
    let timer = clock.makeAirTimer { now in
      let round = rounds.withLock {
        $0 += 1; return $0
      }
      if round < 100_000 { timers.all.first?.set(at: now + .milliseconds(30)) }
      return .silent
    }
    timers.append(timer)
    defer { timers.removeAll() }
    timer.set(at: .zero)
    #expect(
      try !clock.run(until: {
        asked.append(clock.now); return false
      }))
    #expect(asked.all == [.zero])
    #expect(clock.now == .milliseconds(30) * 99_999)
  }

  @Test("who begins something while nobody listens on the air finds time standing, and who stops is heard")
  func activityAmongSilentEvents() async throws {
    let timers = Log<AirTimer>()
    defer { timers.removeAll() }
    let (rounds, round) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let timer = clock.makeAirTimer { now in
      timers.all.first?.set(at: now + .milliseconds(30))
      round.yield()
      return .silent
    }
    timers.append(timer)
    timer.set(at: .zero)
    try clock.start { Issue.record($0) }
    defer { clock.stop() }
    var beginnings = rounds.makeAsyncIterator()
    for _ in 1...50 {
      await beginnings.next()
      clock.beginActivity()
      let beginning = clock.now
      let moments = (1...500).map { _ in clock.now }
      clock.endActivity()
      #expect(moments.allSatisfy { $0 == beginning })
    }
  }
}
