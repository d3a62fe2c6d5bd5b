internal import Foundation
internal import Locking

/// Runs tests of this package in the virtual machine, and says what of it has failed.
package struct GuestTestRun: Sendable {
  /// Suites or tests, as `Target.Suite` or `Target.Suite/test`; each of them has to run at least one test.
  package let tests: [String]
  package var machine: VirtualMachine

  package init(_ tests: [String], machine: VirtualMachine = VirtualMachine()) {
    self.tests = tests
    self.machine = machine
  }

  package struct Result: Sendable {
    package let events: GuestTestEvents
    /// All that is wrong; empty is success.
    package let failures: [GuestTestEvents.Issue]
    /// The end of what the tests have printed.
    package let output: String
    package let phases: [VirtualMachine.Phase]
  }

  /// Boots once. Throws where the machine did not come to run anything.
  package func run(note: @escaping @Sendable (String) -> Void = { _ in }) async throws -> Result {
    var machine = machine
    let folder = FileManager.default.temporaryDirectory.appending(path: "bluehaul-guest-tests.\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    if machine.outputFolder == nil { machine.outputFolder = folder.appending(path: "out") }
    guard let out = machine.outputFolder else { throw CocoaError(.fileNoSuchFile) }
    let file = "events-\(UUID()).jsonl"
    let command = GuestTestBundle().command(filters: tests.map(Self.filter), events: "/out/\(file)")

    let output = Tail()
    let outcome: Swift.Result<VirtualMachine.Report, VirtualMachine.Failure>
    do {
      outcome = .success(try await machine.run(command, note: note) { _, data in output.append(data) })
    } catch let failure as VirtualMachine.Failure where failure.isAfterBoot {
      outcome = .failure(failure)
    }
    let events = GuestTestEvents((try? Data(contentsOf: out.appending(path: file))) ?? Data())
    try? FileManager.default.removeItem(at: out.appending(path: file))
    return Result(
      events: events, failures: failures(outcome, events), output: output.text,
      phases: (try? outcome.get())?.phases ?? [])
  }

  /// What a run comes to, besides the issues of its tests: nothing that was asked for may be missing.
  package func failures(
    _ outcome: Swift.Result<VirtualMachine.Report, VirtualMachine.Failure>, _ events: GuestTestEvents
  ) -> [GuestTestEvents.Issue] {
    var failures = events.issues
    func fail(_ text: String) { failures.append(GuestTestEvents.Issue(test: nil, text: text, location: nil)) }
    switch outcome {
    case .failure(let failure): fail("\(failure)")
    case .success(let report):
      if report.status != 0, failures.isEmpty || !events.isComplete {
        fail("the tests ended with status \(report.status)")
      }
      if !events.isComplete { fail("the tests ended before they were done") }
    }
    for test in events.unfinished.sorted() { fail("\(test) has not ended") }
    for test in tests where !events.ended.contains(where: { Self.matches($0, test) }) {
      let skipped = events.skipped.values.sorted().joined(separator: " ")
      fail("no test of \(test) has run" + (skipped.isEmpty ? "" : ": \(skipped)"))
    }
    return failures
  }

  private static func matches(_ name: String, _ test: String) -> Bool {
    name == test || name.hasPrefix(test + "/") || name.hasPrefix(test + "(") || name.hasPrefix(test + ".")
  }

  /// The same as a regular expression of `--filter`.
  private static func filter(_ test: String) -> String {
    "^\(NSRegularExpression.escapedPattern(for: test))([/(.]|$)"
  }
}

extension VirtualMachine.Failure {
  var isAfterBoot: Bool {
    switch self {
    case .timeLimit, .ended: true
    case .unsupported, .kernel, .boot: false
    }
  }
}

/// Keeps the end of what is written.
private final class Tail: Sendable {
  private let kept = PosixMutex(Data())
  private static let limit = 256 * 1024

  func append(_ data: Data) {
    kept.withLock { kept in
      kept += data
      if kept.count > 2 * Self.limit { kept = Data(kept.suffix(Self.limit)) }
    }
  }

  var text: String { String(decoding: kept.withLock { $0 }.suffix(Self.limit), as: UTF8.self) }
}
