import Testing

@testable import VirtualRadio

@Suite("Event queue") struct EventQueueTests {
  @Test("comes in order of time, then of adding, without what was cancelled", arguments: 1...20)
  func order(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var queue = EventQueue<Int>()
    var model: [(time: Int64, work: Int, token: UInt64)] = []
    var taken: [Int] = []
    var expected: [Int] = []
    for work in 0..<3000 {
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<5:
        let time = Int64.random(in: 0..<50, using: &generator)
        model.append((time, work, queue.add(at: time, work)))
      case 5..<8 where !model.isEmpty:
        let victim = model.remove(at: Int.random(in: 0..<model.count, using: &generator))
        #expect(queue.cancel(victim.token) == victim.work)
        #expect(queue.cancel(victim.token) == nil)
      default:
        let first = model.indices.min {
          (model[$0].time, model[$0].token) < (model[$1].time, model[$1].token)
        }
        #expect(queue.firstTime() == first.map { model[$0].time })
        if let work = queue.takeFirst()?.work { taken.append(work) }
        if let first { expected.append(model.remove(at: first).work) }
      }
      #expect(queue.count == model.count)
    }
    #expect(taken == expected)
  }

  @Test("a timer that is always set anew leaves nothing behind")
  func cancelledWorkIsDropped() {
    final class Payload {}
    var queue = EventQueue<Payload>()
    weak var last: Payload?
    for time in 0..<10_000 {
      let payload = Payload()
      last = payload
      queue.cancel(queue.add(at: Int64(time) + 1_000_000, payload))
    }
    #expect(last == nil)
    #expect(queue.count == 0)
    #expect(queue.firstTime() == nil)
    #expect(queue.takeFirst() == nil)
  }
}
