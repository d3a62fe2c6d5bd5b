import RealStack
import Testing

/// Machines one after the other: each takes all processors of a small host.
@Suite(
  "On a real Bluetooth stack", .serialized,
  .enabled(if: VirtualMachine.obstacle == nil, Comment(rawValue: VirtualMachine.obstacle ?? "")),
  .enabled("the kernel of the virtual machine could not be fetched, for the reason that is printed") {
    await Kernel.isThere.value
  })
enum OnARealStack {}

/// Fetched by the first test that needs it.
private enum Kernel {
  static let isThere = Task {
    do {
      _ = try await KernelCache().filled(note: { print("virtual machine: \($0)") })
      return true
    } catch {
      print("virtual machine: \(error)")
      return false
    }
  }
}

/// Tests that need a Bluetooth stack: here they are started, and what fails there fails here, at its place in the source.
extension OnARealStack {
  @Suite("In the virtual machine", .serialized) struct GuestRunTests {
    @Test("tests pass", arguments: GuestSuites.all)
    func own(_ suites: GuestSuites) async throws { try await run(suites) }

    @Test(
      "tests that take long pass",
      .enabled(if: GuestSuites.isWhole, "REAL_STACK=whole runs them, which takes some ten minutes"),
      arguments: GuestSuites.long)
    func long(_ suites: GuestSuites) async throws { try await run(suites) }

    @Test(
      "tests with bleak pass",
      .enabled(
        if: ForeignSoftware.bleak.obstacle == nil, Comment(rawValue: ForeignSoftware.bleak.obstacle ?? "")),
      arguments: GuestSuites.with(.bleak))
    func bleak(_ suites: GuestSuites) async throws { try await run(suites) }

    @Test(
      "tests with Bumble pass",
      .enabled(
        if: ForeignSoftware.bumble.obstacle == nil, Comment(rawValue: ForeignSoftware.bumble.obstacle ?? "")),
      .enabled(if: GuestSuites.isWhole, "REAL_STACK=whole runs them, which takes two minutes"),
      arguments: GuestSuites.with(.bumble))
    func bumble(_ suites: GuestSuites) async throws { try await run(suites) }

    private func run(_ suites: GuestSuites) async throws {
      var machine = VirtualMachine()
      machine.controllers = suites.controllers
      machine.timeLimit = suites.timeLimit
      let result = try await GuestTestRun(suites.tests, machine: machine).run(note: {
        print("virtual machine: \($0)")
      })
      for failure in result.failures {
        let place = failure.location.map {
          SourceLocation(fileID: $0.fileID, filePath: $0.filePath, line: $0.line, column: $0.column)
        }
        let text = "in the virtual machine: \(failure.test.map { "\($0): " } ?? "")\(failure.text)"
        Issue.record(Comment(rawValue: text), sourceLocation: place ?? #_sourceLocation)
      }
      if !result.failures.isEmpty { print(result.output) }
      for (_, reason) in result.events.skipped.sorted(by: { $0.key < $1.key }) {
        print("➜ \(reason) (in the virtual machine)")
      }
      print("virtual machine, \(suites.name): \(result.events.summary ?? "") \(result.phases)")
    }
  }
}
