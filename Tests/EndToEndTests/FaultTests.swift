import BulkTransfer
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

@Suite("A push over a link with faults", .timeLimit(.minutes(30)))
struct FaultTests {
  private static let size = 100_000

  private static func plan(_ words: String) throws -> FaultPlan {
    try FaultPlan(parsing: words).resolved(totalBytes: size)
  }

  /// Faults of the link and of the peer, and those of what carries the data.
  private static let cases: [(CarrierChoice, String)] = {
    let both = [
      "drop@40%", "drop-in-frame@40%", "hangup@40%", "reboot@50%", "freeze@30%:3s",
      "drop@10%,drop@20%,hangup@70%",
    ]
    let gatt = [
      "lose-notify@20%:5", "lose-notify~0.2", "overflow@30%:3", "overflow~0.02", "late-ready@20%",
      "lost-ready@20%", "mtu@300ms=185", "mtu@300ms=23", "mtu@40%=517",
    ]
    let channel = ["no-credits@0:1,hangup@2s", "no-credits@0:30,drop@2s"]
    return (both + gatt).map { (.gatt, $0) } + (both + channel).map { (.l2cap, $0) }
  }()

  @Test("ends verified all the same", arguments: cases)
  func verified(choice: CarrierChoice, words: String) async throws {
    let world = try World(faults: try Self.plan(words))
    let device = try await world.startDevice()
    let contents = image(Self.size)
    let (result, events) = await (try world.push([contents], options: PushOptions(via: choice))).collect()
    #expect(throws: Never.self) { try result.get() }
    #expect(world.flash.contents(of: "image-0") == contents)
    let confirmed = events.compactMap {
      if case .progress(let state) = $0 { state.confirmedBytes } else { nil }
    }
    #expect(confirmed == confirmed.sorted())
    try await device.stop()

    // The same push without the fault is another course of events: the case is one of this carrier.
    guard Sweep.isWhole else { return }
    let calm = try World()
    let other = try await calm.startDevice()
    _ = try await calm.push([contents], options: PushOptions(via: choice)).run()
    #expect(world.sender.seen.course != calm.sender.seen.course)
    try await other.stop()
  }

  @Test(
    "goes on where the device's storage stands", arguments: [CarrierChoice.gatt, .l2cap],
    ["drop@60%", "hangup@60%"])
  func resumes(choice: CarrierChoice, words: String) async throws {
    let world = try World(faults: try Self.plan(words))
    let device = try await world.startDevice()
    let (result, events) = await (try world.push([image(Self.size)], options: PushOptions(via: choice)))
      .collect()
    let report = try result.get()
    #expect(report.sessions == 2)
    let starts = events.compactMap { if case .accepted(_, _, let durable, _) = $0 { durable } else { nil } }
    #expect(starts.count == 2)
    #expect(starts.first == 0)
    let resumedAt = try #require(starts.last)
    #expect(
      resumedAt > UInt64(Self.size) * 4 / 10 && resumedAt <= UInt64(Self.size) * 65 / 100,
      "resumed at \(resumedAt)")
    let lost = events.compactMap { if case .linkLost(_, let confirmed) = $0 { confirmed } else { nil } }
    #expect(!lost.isEmpty && lost.allSatisfy { $0 > 0 && $0 <= resumedAt }, "\(lost)")
    try await device.stop()
  }

  @Test(
    "a device that answers nothing ends it in time, and the next push goes on",
    arguments: [CarrierChoice.gatt, .l2cap])
  func frozen(choice: CarrierChoice) async throws {
    let world = try World(faults: try Self.plan("freeze@50%"))
    let device = try await world.startDevice()
    let contents = image(Self.size)
    let (result, _) = await (try world.push([contents], options: PushOptions(via: choice))).collect()
    #expect(throws: TransferError.self) { try result.get() }
    if case .failure(let error) = result {
      #expect(error.code == .timedOut || error.code == .disconnected)
      #expect(error.isRetriable)
    }
    #expect(world.clock.now < .seconds(40))
    #expect(world.flash.contents(of: "image-0") == nil)
    world.air.setFaults(FaultPlan())
    let report = try await world.push([contents], options: PushOptions(via: choice)).run()
    #expect(report.resumedFrom > 0)
    #expect(world.flash.contents(of: "image-0") == contents)
    try await device.stop()
  }

  @Test(
    "wrong bytes in the device's storage are never called a success", arguments: [CarrierChoice.gatt, .l2cap])
  func corrupted(choice: CarrierChoice) async throws {
    let world = try World()
    world.flash.corruptWrites(at: 12_345)
    let device = try await world.startDevice()
    let contents = image(Self.size)
    let (result, events) = await (try world.push([contents], options: PushOptions(via: choice))).collect()
    guard case .failure(let error) = result else {
      Issue.record("success with wrong bytes")
      return
    }
    #expect(error.code == .verificationFailed)
    #expect(!events.contains { if case .verified = $0 { true } else { false } })
    #expect(world.flash.contents(of: "image-0") == nil)
    // The device has discarded it: the next push begins at 0 and succeeds.
    let report = try await world.push([contents], options: PushOptions(via: choice)).run()
    #expect(report.resumedFrom == 0)
    #expect(world.flash.contents(of: "image-0") == contents)
    try await device.stop()
  }

  @Test("cancelled, it leaves what is durable and goes on there", arguments: [CarrierChoice.gatt, .l2cap])
  func cancelled(choice: CarrierChoice) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let contents = image(400_000)
    let push = try world.push([contents], options: PushOptions(via: choice))
    // Time stands until the push has begun; then the timer comes in the middle of the transfer.
    world.clock.beginActivity()
    let task = Task { try await push.run() }
    for await event in push.events { if case .searching = event { break } }
    let timer = world.clock.schedule(after: .milliseconds(1800)) { task.cancel() }
    world.clock.endActivity()
    let outcome = await task.result
    if case .failure(let error) = outcome {
      #expect((error as? TransferError)?.code == .cancelled)
    } else {
      Issue.record("a cancelled push succeeded")
    }
    timer.cancel()
    let report = try await world.push([contents], options: PushOptions(via: choice)).run()
    #expect(report.resumedFrom > 50_000)
    #expect(world.flash.contents(of: "image-0") == contents)
    try await device.stop()
  }

  @Test("a device that is not there is named in the error", arguments: ["bench-2", "bench-1\u{7}"])
  func absent(name: String) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let (result, _) = await (try world.push([image(10)], target: .name(name))).collect()
    if case .failure(let error) = result {
      #expect(error.code == .deviceNotFound)
      #expect(error.message.contains("10"))
    } else {
      Issue.record("found a device that is not there")
    }
    try await device.stop()
  }
}
