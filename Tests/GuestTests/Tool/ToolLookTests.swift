import ChildProcess
import Foundation
import RealStack
import Testing

/// What the tool finds on the air and on the host.
@Suite(
  "Looking around with the tool on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct ToolLookTests {
  private func scan(_ bench: ToolBench) throws -> ChildProcess {
    try bench.tool(["scan", "--json", "--radio", "bluez:hci0", "--for", "600s"])
  }

  /// The line of the device, after which the scan is ended.
  private func line(
    of address: String, in scan: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    let line = await scan.line { $0.isEvent("device") && $0.text("address") == address }
    scan.send(signal: SIGINT)
    let found = try #require(line, "\(scan.errors())", sourceLocation: sourceLocation)
    #expect(await scan.ending() == .exit(130), "\(scan.errors())", sourceLocation: sourceLocation)
    return found
  }

  @Test("a scan shows a receiver that comes later, and the next scan shows it again")
  func later() async throws {
    try await ToolBench.use(size: 1) { bench in
      let scan = try scan(bench)
      try await Adapters.waitUntilDiscovering("hci0")
      let receiver = try await bench.receiver()
      let line = try await line(of: ToolBench.address, in: scan)
      #expect(line.text("name") == ToolBench.name && line.contains("B1E00001"), "\(line)")

      // bluetoothd knows it now, and has told everything of it that does not change.
      try await Guest.repeatAdvertising(of: "hci1")
      let again = try await self.line(of: ToolBench.address, in: try self.scan(bench))
      #expect(again.text("name") == ToolBench.name && again.contains("B1E00001"), "\(again)")
      try await Guest.repeatAdvertising(of: "hci1", false)
      await bench.stop(receiver)
    }
  }

  @Test("a scan shows what another program's scan has heard")
  func beside() async throws {
    try await ToolBench.use(size: 1) { bench in
      let other = try scan(bench)
      try await Adapters.waitUntilDiscovering("hci0")
      let receiver = try await bench.receiver()
      _ = await other.line { $0.isEvent("device") }
      // On this air nothing is said twice, and the daemon tells of nothing that stays as it is.
      let line = try await line(of: ToolBench.address, in: try scan(bench))
      #expect(line.text("name") == ToolBench.name, "\(line)")
      await bench.stop(receiver)
    }
  }

  @Test("a scan goes on after bluetoothd was restarted", arguments: Restart.allCases)
  func restarted(_ restart: Restart) async throws {
    try await ToolBench.use(size: 1) { bench in
      let scan = try scan(bench)
      try await Adapters.waitUntilDiscovering("hci0")
      try await restart.happen()
      try await Adapters.waitUntilDiscovering("hci0")
      let receiver = try await bench.receiver()
      _ = try await line(of: ToolBench.address, in: scan)
      await bench.stop(receiver)
    }
  }

  @Test("info and doctor tell what is there")
  func looking() async throws {
    try await ToolBench.use(size: 1) { bench in
      try await Guest.repeatAdvertising(of: "hci1")
      let receiver = try await bench.receiver()
      let info = try bench.tool(["info", ToolBench.address, "--json", "--radio", "bluez:hci0"])
      let (about, code) = await info.finish()
      #expect(code == 0, "\(info.errors())")
      let text = about.joined()
      #expect(text.contains("\"protocols\":[\"haul\"]") && text.contains("B1E00003"), "\(text)")
      #expect((text.number("att_mtu") ?? 0) > 23, "\(text)")
      try await Guest.repeatAdvertising(of: "hci1", false)

      let doctor = try bench.tool(["doctor", "--json"])
      let (findings, health) = await doctor.finish()
      #expect(health == 0, "\(findings)")
      #expect(findings.contains { $0.contains("hci1 (\(ToolBench.address)) is on") }, "\(findings)")
      await bench.stop(receiver)
    }
  }
}
