import ChildProcess
import Foundation
import RealStack
import Testing

/// Programs in the background on bluetoothd, killed and started again, as a service manager would.
///
/// A link belongs to the host: it outlives the programs at both its ends.
@Suite(
  "Restoration on a host's Bluetooth", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct HostRadioRestorationTests {
  private let programs = HostRadioPrograms()

  private func killed(_ process: ChildProcess) async {
    process.send(signal: SIGKILL)
    #expect(await process.ending() == .signal(SIGKILL))
  }

  /// Waits for a line.
  private func wait(
    for line: String, of process: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let said = await process.line { $0 == line }
    try #require(said != nil, "\(process.errors())", sourceLocation: sourceLocation)
  }

  /// The numbers of the next values that a logger prints.
  private func counts(_ logger: ChildProcess, _ count: Int) async throws -> [Int] {
    var numbers: [Int] = []
    while numbers.count < count {
      let line = try #require(await logger.line { $0.hasPrefix("count ") }, "\(logger.errors())")
      numbers.append(try #require(Int(line.dropFirst(6))))
    }
    return numbers
  }

  private var files: [String] {
    let state = programs.folder.appending(path: "state/CoreBluetooth").path
    let all = FileManager.default.enumerator(atPath: state)?.compactMap { $0 as? String } ?? []
    return all.filter { $0.hasSuffix(".json") }.sorted()
  }

  @Test func aCentralThatIsKilledGoesOn() async throws {
    let counter = try await programs.advertise("restoring-peripheral")
    var logger = try await programs.start("restoring-central")
    try await Guest.repeatingAdvertising(of: ["hci1"]) {
      try await wait(for: "connected", of: logger)
    }
    #expect(try await counts(logger, 2) == [0, 1])
    var last = 1
    for _ in 1...2 {
      await killed(logger)
      try await wait(for: "unsubscribed", of: counter)
      logger = try await programs.start("restoring-central")
      let restored = await logger.line { _ in true }
      #expect(restored?.hasPrefix("restored ") == true && restored?.hasSuffix(", 1 services known") == true)
      try await wait(for: "connected", of: logger)
      let numbers = try await counts(logger, 2)
      #expect(numbers[0] > last && numbers[1] == numbers[0] + 1)
      last = numbers[1]
    }
    logger.send(signal: SIGUSR1)
    try await wait(for: "forgotten", of: logger)
    #expect(await logger.ending() == .exit(0))
    #expect(files == ["sample-restoring-peripheral/peripheral.counter.json"])
  }

  /// It publishes what it had without being told, and the central finds it on the link that is still there.
  @Test func aPeripheralThatIsKilledGoesOn() async throws {
    var counter = try await programs.advertise("restoring-peripheral")
    let logger = try await programs.start("restoring-central")
    try await Guest.repeatingAdvertising(of: ["hci1"]) {
      try await wait(for: "connected", of: logger)
    }
    #expect(try await counts(logger, 2) == [0, 1])
    for _ in 1...2 {
      await killed(counter)
      counter = try await programs.start("restoring-peripheral", on: "hci1")
      let restored = await counter.line { _ in true }
      #expect(restored?.hasPrefix("restored 1 services, ") == true)
      #expect(restored?.hasSuffix(" advertising true") == true)
      try await wait(for: "advertising", of: counter)
      try await wait(for: "count 0", of: logger)
    }
    counter.send(signal: SIGUSR1)
    #expect(await counter.ending() == .exit(0))
    #expect(files == ["sample-restoring-central/central.logger.json"])
    // What was withdrawn is published anew.
    counter = try await programs.start("restoring-peripheral", on: "hci1")
    #expect(await counter.line { _ in true } == "advertising")
    for process in [counter, logger] { await killed(process) }
  }
}
