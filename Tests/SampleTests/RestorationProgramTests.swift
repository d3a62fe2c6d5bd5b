import ChildProcess
import Foundation
import Testing

/// Programs in the background that are killed and started again, as a service manager would.
@Suite(.timeLimit(.minutes(30))) struct RestorationProgramTests {
  /// A program that keeps its state in the air's folder, under a name of its own.
  private func start(_ sample: String, in air: SampleAir, adapter: String) async throws -> ChildProcess {
    try await air.start(
      sample, adapter: adapter, environment: ["XDG_STATE_HOME": air.folder.appending(path: "state").path])
  }

  private func counter(in air: SampleAir) async throws -> ChildProcess {
    try await start("restoring-peripheral", in: air, adapter: "counter")
  }

  private func logger(in air: SampleAir) async throws -> ChildProcess {
    try await start("restoring-central", in: air, adapter: "logger")
  }

  /// Expects the next lines to be these.
  private func expect(
    _ process: ChildProcess, next lines: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    for line in lines {
      let said = await process.line { _ in true }
      #expect(said == line, "\(process.errors())", sourceLocation: sourceLocation)
    }
  }

  /// Waits for a line.
  private func wait(
    for line: String, of process: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let said = await process.line { $0 == line }
    try #require(said != nil, "\(process.errors())", sourceLocation: sourceLocation)
  }

  private func killed(_ process: ChildProcess) async {
    process.send(signal: SIGKILL)
    #expect(await process.ending() == .signal(SIGKILL))
  }

  private func files(in air: SampleAir) -> [String] {
    let state = air.folder.appending(path: "state/CoreBluetooth").path
    let all = FileManager.default.enumerator(atPath: state)?.compactMap { $0 as? String } ?? []
    return all.filter { $0.hasSuffix(".json") }.sorted()
  }

  /// Values are numbered, so the ones of the second link go on where the counter stands.
  @Test func aCentralThatIsKilledWhileItIsSubscribedGoesOn() async throws {
    let air = SampleAir()
    let counter = try await counter(in: air)
    try await wait(for: "advertising", of: counter)
    var logger = try await logger(in: air)
    await expect(logger, next: ["scanning", "connected", "subscribed", "count 0", "count 1"])
    for _ in 1...2 {
      await killed(logger)
      try await wait(for: "unsubscribed", of: counter)
      logger = try await self.logger(in: air)
      await expect(logger, next: ["restored counter, 1 services known", "connected"])
      let counts = await [logger.line { _ in true }, logger.line { _ in true }]
      let numbers = counts.compactMap { $0?.split(separator: " ").last.flatMap { Int($0) } }
      try #require(numbers.count == 2, "\(counts)")
      #expect(numbers[1] == numbers[0] + 1)
      #expect(numbers[0] > 1)
    }
    logger.send(signal: SIGUSR1)
    try await wait(for: "forgotten", of: logger)
    #expect(await logger.ending() == .exit(0))
    #expect(files(in: air) == ["sample-restoring-peripheral/peripheral.counter.json"])
  }

  /// The connection is pending, since nobody advertises yet when the logger comes back.
  @Test func aCentralThatIsKilledWhileItIsWaitingGoesOn() async throws {
    let air = SampleAir()
    var counter = try await counter(in: air)
    try await wait(for: "advertising", of: counter)
    var logger = try await logger(in: air)
    try await wait(for: "subscribed", of: logger)
    await killed(counter)
    try await wait(for: "the link was lost", of: logger)
    for _ in 1...2 {
      await killed(logger)
      logger = try await self.logger(in: air)
      // With its services or without: whether the end of the link is saved by now is a matter of luck.
      let restored = await logger.line { $0.hasPrefix("restored") }
      #expect(restored?.hasPrefix("restored counter, ") == true, "\(logger.errors())")
    }
    // The counter comes back as it was, without being told to publish anything.
    counter = try await self.counter(in: air)
    let restored = await counter.line { _ in true }
    #expect(restored?.hasPrefix("restored 1 services, ") == true)
    #expect(restored?.hasSuffix(" advertising true") == true)
    try await wait(for: "advertising", of: counter)
    await expect(logger, next: ["connected"])
    try await wait(for: "subscribed", of: counter)
    let count = await logger.line { $0.hasPrefix("count ") }
    #expect(count != nil)
  }

  @Test func aPeripheralThatIsKilledAgainAndAgainIsFoundEachTime() async throws {
    let air = SampleAir()
    var counter = try await counter(in: air)
    try await wait(for: "advertising", of: counter)
    let logger = try await logger(in: air)
    try await wait(for: "subscribed", of: logger)
    for _ in 1...3 {
      await killed(counter)
      counter = try await self.counter(in: air)
      try await wait(for: "the link was lost", of: logger)
      try await wait(for: "subscribed", of: logger)
      try await wait(for: "count 0", of: logger)
    }
    counter.send(signal: SIGUSR1)
    #expect(await counter.ending() == .exit(0))
    #expect(files(in: air) == ["sample-restoring-central/central.logger.json"])
    // What was withdrawn is published anew.
    counter = try await self.counter(in: air)
    await expect(counter, next: ["advertising"])
  }
}
