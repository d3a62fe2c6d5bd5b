import ChildProcess
import Foundation
import RealStack
import Testing

/// What interrupts a push in its first part, and how it goes on: each way ends with a file that is verified, and begins again where the receiver stood.
@Suite(
  "Interruptions of a push on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct ToolInterruptionTests {
  private static let size = 100_000
  private static let carriers = ["gatt", "l2cap"]

  init() async throws {
    try await Guest.repeatAdvertising(of: "hci1")
    try await Guest.keepDaemon()
  }

  /// A receiver with little memory, so that a push does not run ahead of what is confirmed.
  private func receiver(_ bench: ToolBench) async throws -> ChildProcess {
    try await bench.receiver("--buffer", "4KiB")
  }

  private func push(_ bench: ToolBench, via carrier: String) throws -> ChildProcess {
    try bench.push("--via", carrier, "--timeout", "60s")
  }

  /// The rest of a push that goes on by itself: it has lost its link, and goes on with all that was confirmed before.
  private func expectGoesOn(
    _ push: ChildProcess, _ bench: ToolBench, beyond confirmed: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let (lines, code) = await push.finish()
    let story = Comment(rawValue: (lines + [push.errors()]).joined(separator: "\n"))
    #expect(code == 0, story, sourceLocation: sourceLocation)
    let lost = lines.first { $0.isEvent("link_lost") }?.number("confirmed") ?? Self.size
    #expect(lost >= confirmed && lost < Self.size, story, sourceLocation: sourceLocation)
    expectResumed(lines, bench, beyond: lost, story, sourceLocation: sourceLocation)
  }

  private func expectResumed(
    _ lines: [String], _ bench: ToolBench, beyond confirmed: Int, _ story: Comment,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let from = lines.last { $0.isEvent("resumed") }?.number("from") ?? 0
    #expect(from >= confirmed && from < Self.size, story, sourceLocation: sourceLocation)
    #expect(lines.contains { $0.isEvent("verified") }, story, sourceLocation: sourceLocation)
    #expect(bench.received() == bench.image, story, sourceLocation: sourceLocation)
  }

  // MARK: What a push outlives

  enum Interruption: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case linkDropped, daemonRestarted, receiverAdapterOffAndOn, senderAdapterOffAndOn
    var testDescription: String { rawValue }

    func happen() async throws {
      switch self {
      case .linkDropped: try await Guest.disconnect("hci1", from: Guest.address(of: 0))
      case .daemonRestarted: try await Guest.restartDaemon()
      case .receiverAdapterOffAndOn: try await offAndOn("hci1")
      case .senderAdapterOffAndOn: try await offAndOn("hci0")
      }
    }

    /// bluetoothd 5.66 may end of that, where a receiver on another adapter of its own has just got something; its successor switches on what is off.
    private func offAndOn(_ adapter: String) async throws {
      do {
        try await Guest.setPowered(adapter, false)
        try await Guest.setPowered(adapter, true)
      } catch {}
      try await Guest.waitUntilPowered()
    }
  }

  @Test("a push goes on by itself", arguments: Interruption.allCases, carriers)
  func goesOn(_ interruption: Interruption, carrier: String) async throws {
    try await ToolBench.use(size: Self.size) { bench in
      let receiver = try await receiver(bench)
      let push = try push(bench, via: carrier)
      let confirmed = try await push.confirmed(percent: 15)
      // It does not get done meanwhile, however slow the machine is.
      push.send(signal: SIGSTOP)
      try await interruption.happen()
      push.send(signal: SIGCONT)
      await expectGoesOn(push, bench, beyond: confirmed)
      await bench.stop(receiver)
    }
  }

  @Test("a receiver that is killed and started again takes the rest", arguments: carriers)
  func killedReceiver(carrier: String) async throws {
    try await ToolBench.use(size: Self.size) { bench in
      let killed = try await receiver(bench)
      let push = try push(bench, via: carrier)
      let confirmed = try await push.confirmed(percent: 15)
      killed.send(signal: SIGKILL)
      #expect(await killed.ending() == .signal(SIGKILL))
      #expect(bench.received() == nil)
      let receiver = try await receiver(bench)
      await expectGoesOn(push, bench, beyond: confirmed)
      await bench.stop(receiver)
    }
  }

  // MARK: What ends a push

  @Test("after a sender was killed, resume goes on where the receiver stands", arguments: carriers)
  func killedSender(carrier: String) async throws {
    try await ToolBench.use(size: Self.size) { bench in
      let receiver = try await receiver(bench)
      let push = try push(bench, via: carrier)
      let confirmed = try await push.confirmed(percent: 15)
      push.send(signal: SIGKILL)
      #expect(await push.ending() == .signal(SIGKILL))
      #expect(bench.received() == nil)
      try await expectResumes(bench, via: carrier, beyond: confirmed)
      await bench.stop(receiver)
    }
  }

  @Test(
    "a device that falls silent is a clear error, and once it is back resume goes on", arguments: carriers)
  func silence(carrier: String) async throws {
    try await ToolBench.use(size: Self.size) { bench in
      let receiver = try await receiver(bench)
      let push = try bench.push("--via", carrier, "--timeout", "5s", "--attempts", "1")
      let confirmed = try await push.confirmed(percent: 15)
      push.send(signal: SIGSTOP)
      try await Guest.takeDown("hci1")
      push.send(signal: SIGCONT)
      let (lines, code) = await push.finish()
      let error = lines.last { $0.isEvent("error") }
      #expect(code == 7 && error?.number("exit") == 7, "\(lines)")
      #expect(push.errors().contains("go on with: bluehaul resume"), "\(push.errors())")
      #expect(bench.received() == nil)

      try await Guest.bringUp("hci1")
      try await receiver.isReady()
      // What a supervision timeout does on a real air: the other side has heard of nothing.
      try? await Guest.disconnect("hci0", from: ToolBench.address)
      try await expectResumes(bench, via: carrier, beyond: confirmed)
      await bench.stop(receiver)
    }
  }

  private func expectResumes(
    _ bench: ToolBench, via carrier: String, beyond confirmed: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let resume = try bench.resume("--via", carrier, "--timeout", "60s")
    let (lines, code) = await resume.finish()
    let story = Comment(rawValue: (lines + [resume.errors()]).joined(separator: "\n"))
    #expect(code == 0, story, sourceLocation: sourceLocation)
    expectResumed(lines, bench, beyond: confirmed, story, sourceLocation: sourceLocation)
  }

  // MARK: bluetoothd restarted while nothing is sent

  @Test("a receiver that advertises survives a restart of bluetoothd", arguments: Restart.allCases)
  func restartedWhileAdvertising(_ restart: Restart) async throws {
    try await ToolBench.use(size: 20_000) { bench in
      let receiver = try await bench.receiver()
      try await restart.happen()
      try await receiver.isReady()
      let push = try bench.push()
      #expect(await push.finish().code == 0, "\(push.errors())")
      #expect(bench.received() == bench.image)
      await bench.stop(receiver)
    }
  }

  @Test("a push that looks for its device survives a restart of bluetoothd", arguments: Restart.allCases)
  func restartedWhileScanning(_ restart: Restart) async throws {
    try await ToolBench.use(size: 20_000) { bench in
      let push = try bench.push(to: ToolBench.name, "--timeout", "60s")
      try await Adapters.waitUntilDiscovering("hci0")
      try await restart.happen()
      let receiver = try await bench.receiver()
      #expect(await push.finish().code == 0, "\(push.errors())")
      #expect(bench.received() == bench.image)
      await bench.stop(receiver)
    }
  }
}
