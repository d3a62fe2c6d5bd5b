import Dispatch
import Radio
import Locking
import Synchronization
import Testing

/// Counts activities and notices when they go below zero.
private final class CountingClock: RadioClock {
  var activities: Int { held.load(ordering: .sequentiallyConsistent) }
  var hops: Int { begun.load(ordering: .sequentiallyConsistent) }
  var balanced: Bool { activities == 0 && !wentNegative.load(ordering: .sequentiallyConsistent) }

  private let held = Atomic<Int>(0)
  private let begun = Atomic<Int>(0)
  private let wentNegative = Atomic<Bool>(false)

  var now: Duration { .zero }
  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> ScheduledWork {
    ScheduledWork(onCancel: {})
  }
  func beginActivity() {
    held.add(1, ordering: .sequentiallyConsistent)
    begun.add(1, ordering: .sequentiallyConsistent)
  }
  func endActivity() {
    let left = held.subtract(1, ordering: .sequentiallyConsistent).newValue
    if left < 0 { wentNegative.store(true, ordering: .sequentiallyConsistent) }
  }
  func watch(_ queue: DispatchQueue) {}
  func unwatch(_ queue: DispatchQueue) {}
}

@Suite("Event inbox")
struct EventInboxTests {
  private struct Log: Sendable {
    var seen: [Int] = []
    var inside = 0
    var overlapped = false
  }

  @Test("keeps order and never overlaps, on any queue", arguments: [true, false])
  func order(isConcurrent: Bool) async {
    let queue = DispatchQueue(label: "inbox", attributes: isConcurrent ? .concurrent : [])
    let clock = CountingClock()
    let log = PosixMutex(Log())
    let count = 20_000
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      let inbox = EventInbox<Int>(queue: queue, clock: clock) { event in
        log.withLock {
          $0.inside += 1
          if $0.inside > 1 { $0.overlapped = true }
          $0.seen.append(event)
        }
        log.withLock { $0.inside -= 1 }
        if event == count - 1 { done.resume() }
      }
      for event in 0..<count { inbox.post(event) }
    }
    await withCheckedContinuation { done in
      queue.async(flags: .barrier) { done.resume() }
    }
    log.withLock {
      #expect($0.seen == Array(0..<count))
      #expect(!$0.overlapped)
    }
    #expect(clock.balanced)
  }

  @Test("holds an activity while its handler runs, and hops once for many events")
  func activity() async {
    let queue = DispatchQueue(label: "inbox")
    let clock = CountingClock()
    let heldInside = PosixMutex([Int]())
    queue.suspend()
    let inbox = EventInbox<Int>(queue: queue, clock: clock) { _ in
      heldInside.withLock { $0.append(clock.activities) }
    }
    for event in 0..<100 { inbox.post(event) }
    #expect(clock.activities == 1)
    queue.resume()
    await withCheckedContinuation { done in queue.async { done.resume() } }
    heldInside.withLock { #expect($0 == [Int](repeating: 1, count: 100)) }
    #expect(clock.hops == 1)
    #expect(clock.activities == 0)
  }

  @Test("a handler may post, and what it posts comes after what waits")
  func nested() async {
    let queue = DispatchQueue(label: "inbox")
    let seen = PosixMutex([Int]())
    let box = PosixMutex<EventInbox<Int>?>(nil)
    let inbox = EventInbox<Int>(queue: queue, clock: CountingClock()) { event in
      seen.withLock { $0.append(event) }
      if event < 10 { box.withLock { $0 }?.post(event + 10) }
    }
    box.withLock { $0 = inbox }
    let between = PosixMutex([Int]())
    queue.suspend()
    for event in 0..<3 { inbox.post(event) }
    await withCheckedContinuation { done in
      queue.async {
        let now = seen.withLock { $0 }
        between.withLock { $0 = now }
        done.resume()
      }
      queue.resume()
    }
    await withCheckedContinuation { done in queue.async { done.resume() } }
    between.withLock { #expect($0 == [0, 1, 2]) }
    seen.withLock { #expect($0 == [0, 1, 2, 10, 11, 12]) }
    box.withLock { $0 = nil }
  }

  @Test("other work of the queue has its turn, however many events come", arguments: [true, false])
  func turns(isConcurrent: Bool) async {
    let queue = DispatchQueue(label: "inbox", attributes: isConcurrent ? .concurrent : [])
    let clock = CountingClock()
    let most = 100_000
    let seen = Atomic<Int>(0)
    let isEnough = Atomic<Bool>(false)
    let box = PosixMutex<EventInbox<Int>?>(nil)
    await withCheckedContinuation { (over: CheckedContinuation<Void, Never>) in
      let inbox = EventInbox<Int>(queue: queue, clock: clock) { event in
        seen.store(event, ordering: .sequentiallyConsistent)
        // The flood goes on until somebody else of the queue has ended it.
        if event < most, !isEnough.load(ordering: .sequentiallyConsistent) {
          box.withLock { $0 }?.post(event + 1)
        } else {
          over.resume()
        }
      }
      box.withLock { $0 = inbox }
      queue.suspend()
      inbox.post(0)
      queue.async(flags: .barrier) { isEnough.store(true, ordering: .sequentiallyConsistent) }
      queue.resume()
    }
    #expect(seen.load(ordering: .sequentiallyConsistent) < most)
    await withCheckedContinuation { done in queue.async(flags: .barrier) { done.resume() } }
    #expect(clock.balanced)
    box.withLock { $0 = nil }
  }

  @Test("once closed it delivers nothing, not even what waited, and lets time go on")
  func close() async {
    let queue = DispatchQueue(label: "inbox")
    let clock = CountingClock()
    let seen = PosixMutex([Int]())
    let inbox = EventInbox<Int>(queue: queue, clock: clock) { event in seen.withLock { $0.append(event) } }
    queue.suspend()
    inbox.post(1)
    inbox.close()
    inbox.post(2)
    queue.resume()
    await withCheckedContinuation { done in queue.async { done.resume() } }
    seen.withLock { #expect($0.isEmpty) }
    #expect(clock.activities == 0)
  }
}
