import Testing

@testable import CoreBluetooth

@Suite struct RequestQueueTests {
  private struct Failure: Error {}

  @Test(arguments: 1...50 as ClosedRange<UInt64>)
  func tellsFailuresInTheirTurn(seed: UInt64) {
    var random = LinearGenerator(seed: seed)
    var queue = RequestQueue<Int>()
    var numbers: [(number: UInt32, request: Int)] = []
    var told: [Int] = []
    func drain() {
      while let (request, _) = queue.popFailure() { told.append(request) }
    }
    let failing = Set((0..<200).filter { _ in Bool.random(using: &random) })
    for request in 0..<200 {
      if failing.contains(request) {
        queue.append(request, failedWith: Failure())
        drain()
      } else {
        numbers.append((queue.append(request), request))
      }
      if Bool.random(using: &random), let first = numbers.first {
        numbers.removeFirst()
        #expect(queue.complete(first.number) == first.request)
        #expect(queue.complete(first.number) == nil)
        told.append(first.request)
        drain()
      }
    }
    for (number, _) in numbers {
      if let request = queue.complete(number) { told.append(request) }
      drain()
    }
    #expect(told == Array(0..<200))
  }

  @Test func forgetsEverythingAtOnce() {
    var queue = RequestQueue<Int>()
    let number = queue.append(1)
    queue.append(2, failedWith: Failure())
    queue.removeAll()
    #expect(queue.complete(number) == nil)
    #expect(queue.popFailure() == nil)
    queue.append(3, failedWith: Failure())
    #expect(queue.popFailure()?.0 == 3)
  }
}

/// A generator whose sequence follows from its seed (Knuth's MMIX constants).
struct LinearGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ state >> 29
  }
}
