internal import BulkTransfer
internal import CAllocations
internal import CoreBluetooth
internal import Foundation
internal import Radio
internal import VirtualRadio

extension Benchmark {
  /// Many simulated devices in one process, each pushed to at the same time, in simulated time.
  static let fleet = [
    Benchmark(name: "fleet") {
      let one = try await Fleet(1).run()
      var measurements: [Measurement] = []
      for count in [10, 100] {
        let many = try await Fleet(count).run()
        measurements += [
          Measurement("fleet of \(count) time", many.seconds / one.seconds, "times one device's"),
          Measurement(
            "fleet of \(count) memory", Double(many.octets - one.octets) / Double(count - 1) / 1024,
            "KiB a device"),
        ]
      }
      return measurements
    }
  ]
}

/// Devices on one air, each with a link of its own to one gateway. Links of a simulated adapter do not share its air time.
private struct Fleet {
  private static let contents = Data((0..<(64 << 10)).map { UInt8(truncatingIfNeeded: $0 &* 37) })
  private let count: Int

  init(_ count: Int) { self.count = count }

  /// - Returns: simulated seconds until the last one has verified, and the most memory beyond that of the beginning.
  func run() async throws -> (seconds: Double, octets: Int) {
    allocations_reset_peak()
    let baseline = allocations_live()
    let clock = VirtualClock(.lockStep)
    let air = VirtualAir(clock: clock)
    let time = EngineTime(clock)
    let digest = try SHA256Hasher.digest(of: Self.contents)
    let (failures, failure) = AsyncStream.makeStream(of: VirtualClockError.self)
    try clock.start { failure.yield($0) }
    defer { clock.stop() }

    var devices: [Task<Void, any Error>] = []
    for number in 0..<count {
      let name = "device-\(number)"
      let device = ReceiveOperation(
        into: SimulatedFlash(profile: .init(capacity: 1 << 20)), options: try ReceiveOptions(name: name),
        managerOptions: [CBManagerOptionRadioKey: air.makeRadio(name: name)], clock: time)
      devices.append(Task { try await device.run() })
      for await event in device.events { if case .ready = event { break } }
    }
    let gateway = air.makeRadio(name: "gateway")
    // Simulated time stands still until all have begun.
    clock.beginActivity()
    let began = clock.now
    let ended = try await withThrowingTaskGroup(of: Duration.self) { group in
      for number in 0..<count {
        let object = OutgoingObject(name: "image", size: UInt64(Self.contents.count), sha256: digest)
        let push = try PushOperation(
          [PushObject(object, from: MemorySource(Self.contents))], transferID: digest,
          to: .name("device-\(number)"), managerOptions: [CBManagerOptionRadioKey: gateway], clock: time)
        clock.beginActivity()
        group.addTask {
          let listener = Task {
            var hasBegun = false
            for await _ in push.events where !hasBegun {
              hasBegun = true
              clock.endActivity()
            }
            if !hasBegun { clock.endActivity() }
          }
          _ = try await push.run()
          await listener.value
          return clock.now
        }
      }
      group.addTask {
        for await failure in failures { throw failure }
        return .zero
      }
      clock.endActivity()
      var last = Duration.zero
      for _ in 0..<count { last = max(last, try await group.next() ?? .zero) }
      group.cancelAll()
      return last
    }
    let octets = Int(allocations_peak() - baseline)
    for device in devices { device.cancel() }
    for device in devices { _ = await device.result }
    return ((ended - began) / .seconds(1), octets)
  }
}

/// The engine's clock on a radio's.
private final class EngineTime: TransferClock {
  private let clock: any RadioClock

  init(_ clock: any RadioClock) { self.clock = clock }

  var now: Duration { clock.now }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> TransferTimer {
    let scheduled = clock.schedule(after: delay, work)
    return TransferTimer { scheduled.cancel() }
  }

  func beginActivity() { clock.beginActivity() }

  func endActivity() { clock.endActivity() }
}
