import BulkTransfer
import Foundation
import Radio
import Testing
import VirtualRadio

/// A device that opens a channel and gives no credits, or too few for data.
@Suite("A channel that carries nothing", .timeLimit(.minutes(20)))
struct MuteChannelTests {
  private static let contents = image(60_000)

  private static func abandoned(_ events: [PushEvent]) -> [String] {
    events.compactMap { if case .channelAbandoned(let why) = $0 { why } else { nil } }
  }

  private static func lost(_ events: [PushEvent]) -> Int {
    events.count { if case .linkLost = $0 { true } else { false } }
  }

  // Without a credit nothing is answered; with one or two HELLO and OFFER are, and data is not taken.
  @Test(
    "is left for GATT on the same link, in time, and is tried again by the next push",
    arguments: ["", ":1", ":2"])
  func fallback(credits: String) async throws {
    let world = try World(faults: try FaultPlan(parsing: "no-credits@0\(credits)"))
    let device = try await world.startDevice()
    let began = world.clock.now
    let (result, events) = await (try world.push([Self.contents])).collect()
    let report = try result.get()
    #expect(report.carrier == .gatt)
    #expect(report.sessions == 2)
    #expect(world.flash.contents(of: "image-0") == Self.contents)
    #expect(Self.abandoned(events) == ["nothing has moved on it within 7.5 s"])
    #expect(Self.lost(events) == 0)
    #expect(world.sender.seen.connections == 1)
    #expect(world.sender.seen.channels == 1)
    #expect(world.clock.now - began < .seconds(15))

    // Nothing of it is remembered: the fault has happened once.
    let again = try await world.push([image(50_000, seed: 9)], options: PushOptions(via: .automatic)).run()
    #expect(again.carrier == .l2cap)
    #expect(again.sessions == 1)
    try await device.stop()
  }

  @Test("ends a push that demanded it, and a push over GATT does not care")
  func demanded() async throws {
    let world = try World(faults: try FaultPlan(parsing: "no-credits@0"))
    let device = try await world.startDevice()
    let (result, events) = await (try world.push([Self.contents], options: PushOptions(via: .l2cap)))
      .collect()
    if case .failure(let error) = result {
      #expect(error.code == .timedOut)
      #expect(error.isRetriable)
    } else {
      Issue.record("a push over a channel without credits succeeded")
    }
    #expect(Self.abandoned(events).isEmpty)
    world.air.setFaults(try FaultPlan(parsing: "no-credits@0"))
    let (other, told) = await (try world.push([Self.contents], options: PushOptions(via: .gatt))).collect()
    #expect(throws: Never.self) { try other.get() }
    #expect(Self.abandoned(told).isEmpty)
    try await device.stop()
  }

  @Test("is not taken for one while the user has paused the transfer, or while the device erases its flash")
  func quiet() async throws {
    var profile = SimulatedFlash.Profile()
    profile.eraseTime = .seconds(2)
    profile.sectorSize = 8192
    let world = try World(flash: profile)
    let device = try await world.startDevice()
    let push = try world.push([Self.contents])
    let timers = Timers()
    world.clock.beginActivity()
    timers.add(world.clock.schedule(after: .milliseconds(900)) { push.pause() })
    timers.add(world.clock.schedule(after: .seconds(120)) { push.resume() })
    let task = world.start(push)
    world.clock.endActivity()
    let outcome = await task.value
    #expect(try outcome.result.get().carrier == .l2cap)
    #expect(Self.abandoned(outcome.events).isEmpty)
    timers.cancel()
    try await device.stop()
  }
}

/// Keeps timers until they are cancelled.
private final class Timers {
  private var timers: [ScheduledWork] = []
  func add(_ timer: ScheduledWork) { timers.append(timer) }
  func cancel() { for timer in timers { timer.cancel() } }
}
