import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

/// Many seeded schedules of losses, cuts, crashes, slow flash, stuck peers, pauses and changing limits.
///
/// A schedule that fails is named by its seed. To run it alone, with a trace of both sides on standard output:
/// `HAUL_SEED=1234 swift test --filter RandomScheduleTests`, with `HAUL_CODED=1` for the coded one. ``Sweep`` says how many of them run.
@Suite("Random schedules", .timeLimit(.minutes(30)))
struct RandomScheduleTests {
  static let batch = 50
  static let batches = Sweep.count(48)

  static func failure(of schedule: Schedule) throws -> String? {
    let world = try HaulWorld(schedule)
    let outcome = world.run()
    world.settle(for: 60_000_000)
    var complaints = world.violations
    if outcome == .overdue { complaints.append("not over at \(world.now) us of \(schedule.bound)") }
    if case .failed(let error) = outcome, schedule.mustSucceed { complaints.append("failed: \(error)") }
    return complaints.isEmpty ? nil : "seed \(schedule.seed): \(complaints.joined(separator: "; "))"
  }

  @Test("Each ends verified with the same bytes, or with an error in bounded time", arguments: 0..<batches)
  func schedules(batch: Int) throws {
    for seed in (batch * Self.batch)..<((batch + 1) * Self.batch) {
      let failure = try Self.failure(of: Schedule(randomSeed: UInt64(seed)))
      #expect(failure == nil)
    }
  }

  @Test("Coded and with a base each ends so too", arguments: 0..<batches)
  func codedSchedules(batch: Int) throws {
    for seed in (batch * Self.batch)..<((batch + 1) * Self.batch) {
      let failure = try Self.failure(of: Schedule(codedSeed: UInt64(seed)))
      #expect(failure == nil)
    }
  }

  /// Segments of 64 KiB do not get through where a packet in a hundred is lost: they become smaller, and may end uncoded.
  @Test(
    "Coded objects of 300 kB arrive over links that never stop losing", arguments: 0..<Sweep.count(24))
  func lastingLoss(number: Int) throws {
    var random = SeededGenerator(UInt64(number) ^ 0x1A57)
    var schedule = Schedule()
    schedule.seed = UInt64(number)
    schedule.objects = [mixture(300_000, &random)]
    schedule.coding = Schedule.Coding(base: number % 2 == 0 ? nil : edited(schedule.objects[0], &random))
    if number % 4 == 1 { schedule.coding?.base = random.bytes(300_000) }
    schedule.faults = Schedule.Faults(
      dataLoss: Double(random.pick(1...12)) / 1000, dataDoubling: random.chance(0.3) ? 0.002 : 0,
      dataDamage: random.chance(0.3) ? 0.001 : 0, controlLoss: random.chance(0.5) ? 0.05 : 0)
    schedule.limit = [61, 182, 244][random.pick(0...2)]
    schedule.receiver.buffer = [1 << 16, 1 << 18][random.pick(0...1)]
    schedule.bytesPerSecond = 100_000
    schedule.attempts = 20
    schedule.mustSucceed = true
    #expect(try Self.failure(of: schedule) == nil)
  }

  @Test(
    "The coded schedules reach what they are meant to reach",
    .enabled(if: Sweep.isWhole, "too few of them run")
  )
  func codedCoverage() throws {
    var (coded, proved, resumed, lost, declined) = (0, 0, 0, 0, 0)
    for seed in 0..<UInt64(160) {
      let world = try HaulWorld(Schedule(codedSeed: seed))
      world.run()
      let codings = world.counts.accepts.map(\.coding)
      if codings.contains(.coded(proof: nil)) { coded += 1 }
      let hasProved = codings.contains {
        if case .coded(.some) = $0 { true } else { false }
      }
      if hasProved { proved += 1 }
      if codings.contains(.uncoded) { declined += 1 }
      guard hasProved || codings.contains(.coded(proof: nil)) else { continue }
      if world.counts.resumedFrom.contains(where: { $0 > 0 }) { resumed += 1 }
      if world.counts.losses > 0 { lost += 1 }
    }
    #expect(coded > 30)
    #expect(proved > 30)
    #expect(resumed > 10)
    #expect(lost > 10)
    #expect(declined > 5)
  }

  @Test(
    "The schedules reach what they are meant to reach", .enabled(if: Sweep.isWhole, "too few of them run"))
  func coverage() throws {
    var verified = 0
    var failed = 0
    var resumed = 0
    var losses = 0
    var kinds: [String: Int] = [:]
    // How much of its bound each run has used, in percent.
    var used: [Int] = []
    for seed in 0..<UInt64(400) {
      let schedule = Schedule(randomSeed: seed)
      for incident in Set(schedule.incidents.map(\.what.word)) { kinds[incident, default: 0] += 1 }
      if schedule.restarts { kinds["restarts", default: 0] += 1 }
      let world = try HaulWorld(schedule)
      defer { used.append(world.now * 100 / schedule.bound) }
      switch world.run() {
      case .verified: verified += 1
      case .failed: failed += 1
      case .overdue: break
      }
      if world.counts.resumedFrom.contains(where: { $0 > 0 }) { resumed += 1 }
      if world.counts.losses > 0 { losses += 1 }
    }
    #expect(verified > 280)
    #expect(failed > 10)
    #expect(resumed > 35)
    #expect(losses > 50)
    for word in [
      "cut", "fade", "weaken", "restart", "restarts", "starve", "garble", "powerCut", "senderCrash", "stuck",
      "deaf",
      "pause", "limit", "flood", "hostStall",
    ] { #expect(kinds[word, default: 0] >= 5, "\(word)") }
    // Bounds that are far away would find nothing.
    used.sort()
    #expect(used[200] >= 5, "the middle one has used \(used[200]) %")
    #expect(used[395] >= 25, "few have used more than \(used[395]) %")
  }

  @Test("One seed, with a trace", .enabled(if: ProcessInfo.processInfo.environment["HAUL_SEED"] != nil))
  func single() throws {
    let text = try #require(ProcessInfo.processInfo.environment["HAUL_SEED"])
    let seed = try #require(UInt64(text))
    let isCoded = ProcessInfo.processInfo.environment["HAUL_CODED"] != nil
    let schedule = isCoded ? Schedule(codedSeed: seed) : Schedule(randomSeed: seed)
    let world = try HaulWorld(schedule)
    world.trace = []
    let outcome = world.run()
    for line in world.trace ?? [] { print(line) }
    print("seed \(seed): \(outcome) after \(world.now) us, \(world.attempts) sessions")
    #expect(world.violations.isEmpty)
    #expect(outcome == .verified || !schedule.mustSucceed)
  }
}

extension Schedule.Incident {
  /// What happens, without its figures.
  fileprivate var word: String { String("\(self)".prefix { $0.isLetter }) }
}
