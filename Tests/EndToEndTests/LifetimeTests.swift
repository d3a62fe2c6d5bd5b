import Foundation
import Radio
import Testing
import VirtualRadio

@testable import BulkTransfer

@Suite("Lifetimes")
struct LifetimeTests {
  private struct WeakDriver { weak var driver: PushDriver? }
  private struct WeakOperation { weak var operation: PushOperation? }

  private static func descriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }

  /// One push; every other one is cancelled on its way.
  private func transfer(_ round: Int, in world: World) async throws -> (WeakOperation, WeakDriver) {
    var options = PushOptions()
    options.link.choice = round % 4 < 2 ? .gatt : .l2cap
    let push = try world.push([image(50_000, seed: UInt64(round))], options: options)
    if round % 2 == 0 {
      _ = try await push.run()
    } else {
      world.clock.beginActivity()
      let task = Task { try await push.run() }
      for await event in push.events { if case .searching = event { break } }
      let timer = world.clock.schedule(after: .milliseconds(400)) { task.cancel() }
      world.clock.endActivity()
      _ = await task.result
      timer.cancel()
    }
    // The block that ran last on the push's queue lets go of it before the next one begins.
    await withCheckedContinuation { turn in push.queue.async { turn.resume() } }
    return (WeakOperation(operation: push), WeakDriver(driver: push.driver))
  }

  /// Two hundred, in full.
  @Test("many pushes, half of them aborted, leave nothing behind")
  func pushes() async throws {
    let world = try World()
    let device = try await world.startDevice()
    var left: [(WeakOperation, WeakDriver)] = []
    for round in 1...200 / Sweep.thinning { left.append(try await transfer(round, in: world)) }
    try await device.stop()
    #expect(left.count { $0.0.operation != nil } == 0)
    #expect(left.count { $0.1.driver != nil } == 0)
  }

  @Test("pushes leave no descriptor open")
  func descriptors() async {
    // In a process of its own: descriptors belong to the whole process.
    await #expect(processExitsWith: .success) {
      let suite = LifetimeTests()
      let world = try World()
      let device = try await world.startDevice()
      _ = try await suite.transfer(0, in: world)
      let before = try Self.descriptors()
      for round in 1...8 { _ = try await suite.transfer(round, in: world) }
      let after = try Self.descriptors()
      try await device.stop()
      exit(after <= before ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }
}
