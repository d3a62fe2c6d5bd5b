internal import BluehaulTool
internal import BulkTransfer
internal import CAllocations
internal import CoreBluetooth
internal import Foundation
internal import Radio
internal import VirtualRadio

extension Benchmark {
  /// Many simulated devices in one process, each pushed to at the same time, in simulated time.
  static let fleet = [
    Benchmark(name: "fleet") { try await Fleet.measure([10, 100]) },
    // In lock-step each step of time asks every queue of every device: some minutes.
    Benchmark(name: "thousand", isOnDemand: true) { try await Fleet.measure([1000]) },
  ]
}

/// Devices on one air, each with a link of its own to one gateway. Links of a simulated adapter do not share its air time.
private struct Fleet {
  private static let contents = Data((0..<(64 << 10)).map { UInt8(truncatingIfNeeded: $0 &* 37) })
  private let count: Int

  init(_ count: Int) { self.count = count }

  static func measure(_ counts: [Int]) async throws -> [Measurement] {
    let one = try await Fleet(1).run()
    var measurements: [Measurement] = []
    for count in counts {
      var many = one
      let cpu = try await cpuSeconds { many = try await Fleet(count).run() }
      measurements += [
        Measurement("fleet of \(count) time", many.seconds / one.seconds, "times one device's"),
        Measurement(
          "fleet of \(count) memory", Double(many.octets - one.octets) / Double(count - 1) / 1024,
          "KiB a device"),
        Measurement("fleet of \(count) cpu", cpu / Double(count) * 1000, "ms a device"),
      ]
    }
    return measurements
  }

  /// - Returns: simulated seconds until the last one has verified, and the most memory beyond that of the beginning.
  func run() async throws -> (seconds: Double, octets: Int) {
    allocations_reset_peak()
    let baseline = allocations_live()
    let clock = VirtualClock(.lockStep)
    let air = VirtualAir(clock: clock)
    let time = RadioTime(clock)
    let digest = try SHA256Hasher.digest(of: Self.contents)
    let (failures, failure) = AsyncStream.makeStream(of: VirtualClockError.self)
    try clock.start { failure.yield($0) }
    defer { clock.stop() }

    var devices: [Task<Void, any Error>] = []
    var identifiers: [UUID] = []
    for number in 0..<count {
      let name = "device-\(number)"
      let radio = air.makeRadio(name: name)
      identifiers.append(radio.peerID.uuid)
      let device = ReceiveOperation(
        into: SimulatedFlash(profile: .init(capacity: 1 << 20)), options: try ReceiveOptions(name: name),
        managerOptions: [CBManagerOptionRadioKey: radio], clock: time)
      devices.append(Task { try await device.run() })
      for await event in device.events { if case .ready = event { break } }
    }
    let gateway = air.makeRadio(name: "gateway")
    // Simulated time stands still until all have begun.
    clock.beginActivity()
    let began = clock.now
    let ended = LastInstant()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for identifier in identifiers {
        let object = OutgoingObject(name: "image", size: UInt64(Self.contents.count), sha256: digest)
        let push = try PushOperation(
          [PushObject(object, from: MemorySource(Self.contents))], transferID: digest,
          to: .identifier(identifier),
          observe: { activity, now in if activity.hold == .farewell { ended.note(now) } },
          managerOptions: [CBManagerOptionRadioKey: gateway], clock: time)
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
        }
      }
      group.addTask {
        for await failure in failures { throw failure }
      }
      clock.endActivity()
      for _ in 0..<count { try await group.next() }
      group.cancelAll()
    }
    let octets = Int(allocations_peak() - baseline)
    for device in devices { device.cancel() }
    for device in devices { _ = await device.result }
    return ((ended.value - began) / .seconds(1), octets)
  }
}

/// When the last of many was verified.
// Sendable: behind a lock.
private final class LastInstant: @unchecked Sendable {
  private let lock = NSLock()
  private var instant = Duration.zero

  var value: Duration { lock.withLock { instant } }

  func note(_ now: Duration) { lock.withLock { instant = max(instant, now) } }
}
