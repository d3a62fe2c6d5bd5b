import Foundation
import Locking
import Radio
import Testing
import VirtualRadio

@_spi(Streams) @testable import CoreBluetooth

/// Tasks at both ends of a simulated channel, in simulated time.
@Suite(.timeLimit(.minutes(30))) struct L2CAPByteChannelLinkTests {
  /// What one end has done, with the instants at which it did.
  private struct Outcome: Equatable {
    var received = Data()
    var instants: [Duration] = []
    var isDone = false
  }

  /// Sends `data` and then closes, in portions of a seed, while it reads to the end.
  private static func converse(
    _ bytes: L2CAPByteChannel, sending data: Data, limit: Int, seed: UInt64, clock: VirtualClock,
    into outcome: Shared
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        var generator = SeededGenerator(seed: seed)
        var rest = data
        while !rest.isEmpty {
          let portion = rest.prefix(Int.random(in: 1...limit, using: &generator))
          rest = rest.dropFirst(portion.count)
          try await bytes.write(portion)
        }
      }
      group.addTask {
        var generator = SeededGenerator(seed: ~seed)
        while outcome.value.received.count < data.count,
          let block = try await bytes.read(upTo: Int.random(in: 1...limit, using: &generator))
        {
          outcome.change {
            $0.received += block
            $0.instants.append(clock.now)
          }
        }
      }
      try await group.waitForAll()
    }
    outcome.change { $0.isDone = true }
  }

  private final class Shared: Sendable {
    private let outcome = PosixMutex(Outcome())
    var value: Outcome { outcome.withLock { $0 } }
    func change(_ body: (inout Outcome) -> Void) { outcome.withLock { body(&$0) } }
  }

  private static func run(seed: UInt64, limit: Int) throws -> (near: Outcome, far: Outcome) {
    let rig = AirRig()
    let executor = QueueExecutor()
    rig.clock.watch(executor.queue)
    defer { rig.clock.unwatch(executor.queue) }
    let (nearEnd, farEnd) = try rig.openedChannel()
    let outcomes = [Shared(), Shared()]
    let ends = [try #require(L2CAPByteChannel(nearEnd)), try #require(L2CAPByteChannel(farEnd))]
    let clock = rig.clock
    for (i, bytes) in ends.enumerated() {
      Task(executorPreference: executor) {
        try await converse(
          bytes, sending: pattern(40_000), limit: limit, seed: seed &+ UInt64(i), clock: clock,
          into: outcomes[i])
      }
    }
    try rig.run { outcomes.allSatisfy { $0.value.isDone } }
    // One side closes: the other reads its end.
    let atEnd = Shared()
    Task(executorPreference: executor) {
      let last = try await ends[1].read(upTo: 10)
      atEnd.change { $0.isDone = last == nil }
    }
    ends[0].close()
    try rig.run { atEnd.value.isDone }
    return (outcomes[0].value, outcomes[1].value)
  }

  @Test(arguments: [1, 2, 3] as [UInt64], [50, 3_000, 50_000])
  func carryBothWays(seed: UInt64, limit: Int) throws {
    let first = try Self.run(seed: seed, limit: limit)
    #expect(first.near.received == pattern(40_000))
    #expect(first.far.received == pattern(40_000))
    // Simulated time has waited for the tasks: nothing depends on how fast they were run.
    let second = try Self.run(seed: seed, limit: limit)
    #expect(first.near == second.near)
    #expect(first.far == second.far)
  }
}
