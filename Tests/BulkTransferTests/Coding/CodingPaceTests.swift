import Foundation
import Testing

@testable import BulkTransfer

@Suite("Levels that the link leaves time for", .timeLimit(.minutes(30)))
struct CodingPaceTests {
  /// A sender whose encoder takes a scripted time at each level, and whose link takes another for what was coded.
  struct Bench {
    var pace = CodingPace()
    var now: Duration = .zero
    var coding: Duration = .zero
    let times: [Duration]

    mutating func run(_ segments: Int, sending: Duration) {
      for _ in 0..<segments {
        let took = times[pace.reduction]
        let start = now
        now += took
        coding += took
        pace.coded(from: start, to: now, steps: times.count - 1)
        now += sending
      }
    }
  }

  static let times: [Duration] = [100, 30, 10, 2, 0].map { .milliseconds($0) }

  @Test(
    "The first level that takes no more than a quarter of the link's time is kept",
    arguments: [(1000, 0), (300, 1), (60, 2), (10, 3), (1, 4)])
  func settles(sending: Int, reduction: Int) {
    var bench = Bench(times: Self.times)
    bench.run(1000, sending: .milliseconds(sending))
    #expect(bench.pace.reduction == reduction)
    // From then on coding adds no more than a quarter.
    let (before, coded) = (bench.now, bench.coding)
    bench.run(1000, sending: .milliseconds(sending))
    #expect((bench.coding - coded) * 5 <= (bench.now - before) * 1.2)
  }

  @Test("A slower link gets the better level again")
  func rises() {
    var bench = Bench(times: Self.times)
    bench.run(500, sending: .milliseconds(10))
    #expect(bench.pace.reduction == 3)
    bench.run(100, sending: .seconds(10))
    #expect(bench.pace.reduction == 0)
  }

  @Test("Coding that takes no time, as in simulated time, never costs a level")
  func standingClock() {
    var bench = Bench(times: [.zero, .zero])
    bench.run(10_000, sending: .microseconds(1))
    #expect(bench.pace.reduction == 0)
  }

  @Test("What passes between two links is no time of sending")
  func interruption() {
    var bench = Bench(times: Self.times)
    for _ in 0..<20 {
      bench.run(2, sending: .milliseconds(10))
      bench.pace.interrupted()
      bench.now += .seconds(60)
    }
    #expect(bench.pace.reduction > 0)
  }

  @Test("Each step below the best level gives a frame, and after the last the segment travels as it is")
  func levels() throws {
    let (bytes, base) = (ZstdTests.text(60_000), ZstdTests.text(60_000, seed: 2))
    let encoder = SegmentEncoder()
    let part = (source: MemorySource(base) as any ByteSource, range: UInt64(0)..<60_000)
    var frames: [Int?] = []
    for reduction in 0...SegmentEncoder.steps {
      frames.append(try encoder.encode(bytes, base: part, reduction: reduction)?.count)
    }
    #expect(frames.dropLast().allSatisfy { $0 != nil } && frames.last == .some(nil))
    encoder.release()
    let again = try encoder.encode(bytes, base: part)
    #expect(again?.count == frames.first)
    #expect(try encoder.encode(bytes, reduction: 1) != nil)
    #expect(try encoder.encode(bytes, reduction: 2) == nil)
  }

  @Test("Pushes that share an encoder get what each would get alone")
  func shared() async throws {
    let shared = SegmentEncoder()
    let bases = (0..<4).map { MemorySource(ZstdTests.text(20_000, seed: UInt64($0) + 10)) }
    let segments = (0..<4).map {
      ZstdTests.text(20_000, seed: UInt64($0) + 10) + Data(repeating: 7, count: $0 + 1)
    }
    let expected = try (0..<4).map { number in
      try SegmentEncoder().encode(segments[number], base: (bases[number], 0..<20_000))
    }
    try await withThrowingTaskGroup(of: (Int, Data?).self) { group in
      for turn in 0..<40 {
        group.addTask {
          let number = turn % 4
          if turn % 7 == 0 { shared.release() }
          return (number, try shared.encode(segments[number], base: (bases[number], 0..<20_000)))
        }
      }
      for try await (number, frame) in group { #expect(frame != nil && frame == expected[number]) }
    }
  }
}
