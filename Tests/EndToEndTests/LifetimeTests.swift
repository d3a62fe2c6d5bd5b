import CoreBluetooth
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

@testable import BulkTransfer

/// In a process of its own: descriptors and memory belong to the whole process.
@Suite("Lifetimes", .timeLimit(.minutes(30)))
struct LifetimeTests {
  /// What was used by one push.
  // Sendable: written before the push begins and on its queue, read after its end.
  private final class Parts: @unchecked Sendable {
    weak var operation: PushOperation?
    weak var driver: PushDriver?
    weak var manager: CBCentralManager?
    weak var peripheral: CBPeripheral?
    weak var carrier: AnyObject?
    /// Whether they were there to be watched.
    var wereThere = false

    /// Looks at what a push has in its hands while it streams; on its queue.
    func look(at activity: TransferActivity) {
      guard !wereThere, activity.hold == .carrier || activity.hold == .receipts, let driver else { return }
      manager = driver.connection.manager
      peripheral = driver.connection.peripheral
      carrier = driver.carrier
      wereThere = manager != nil && peripheral != nil && carrier != nil
    }

    var isLeft: Bool {
      operation != nil || driver != nil || manager != nil || peripheral != nil || carrier != nil
    }
  }

  /// One push; every other one is cancelled on its way.
  private static func transfer(_ round: Int, in world: World) async throws -> Parts {
    let options = PushOptions(via: round % 4 < 2 ? .gatt : .l2cap)
    let parts = Parts()
    let push = try world.push(
      [image(50_000, seed: UInt64(round))], options: options,
      observe: { activity, _ in parts.look(at: activity) })
    (parts.operation, parts.driver) = (push, push.driver)
    let isAborted = !round.isMultiple(of: 2)
    // Simulated time stands still until the push has begun and its end is planned.
    world.clock.beginActivity()
    let task = Task { try await push.run() }
    var hasBegun = false
    var timer: ScheduledWork?
    for await event in push.events {
      switch event {
      case .searching where !hasBegun:
        hasBegun = true
        if isAborted, round % 8 < 4 {
          timer = world.clock.schedule(after: .milliseconds(400)) { task.cancel() }
        }
        world.clock.endActivity()
      case .carrier: if isAborted { task.cancel() }
      default: break
      }
    }
    if !hasBegun { world.clock.endActivity() }
    let result = await task.result
    if !isAborted { _ = try result.get() }
    timer?.cancel()
    // The block that ran last on the push's queue lets go of it before the next one begins.
    await withCheckedContinuation { turn in push.queue.async { turn.resume() } }
    return parts
  }

  private static func descriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }

  /// Octets that are resident.
  private static func memory() throws -> Int {
    let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return try #require(Int(words[1])) * Int(getpagesize())
  }

  @Test("two hundred pushes, half of them aborted, leave no object, no descriptor and no memory behind")
  func pushes() async {
    await #expect(processExitsWith: .success) {
      let world = try World()
      let device = try await world.startDevice()
      // What is made once, and what the first rounds let memory grow to, is there before it is measured. Their images are others: what the device has is not sent.
      for round in 0..<Sweep.count(20) { _ = try await Self.transfer(1000 + round, in: world) }
      let before = (memory: try Self.memory(), descriptors: try Self.descriptors())
      var left: [Parts] = []
      for round in 0..<max(Sweep.count(200), 8) { left.append(try await Self.transfer(round, in: world)) }
      let after = (memory: try Self.memory(), descriptors: try Self.descriptors())
      try await device.stop()
      #expect(left.count { $0.isLeft } == 0)
      #expect(left.count { $0.wereThere } >= left.count / 2)
      #expect(after.descriptors <= before.descriptors)
      // A sanitizer keeps memory that was freed.
      if Sweep.isWhole {
        let grown = after.memory - before.memory
        #expect(grown < 5_000_000, "\(grown) octets")
      }
    }
  }
}
