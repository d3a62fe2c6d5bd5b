import ChildProcess
import Foundation
import RealStack
import Testing

/// Two devices of one name; needs a third adapter.
@Suite(
  "Twins on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct ToolTwinTests {
  @Test("two devices of one name get nothing until an identifier or an address says which is meant")
  func twins() async throws {
    for adapter in ["hci1", "hci2"] { try await Guest.repeatAdvertising(of: adapter) }
    try await ToolBench.use(size: 20_000) { bench in
      let first = try await bench.receiver(on: "hci1", into: "first")
      let second = try await bench.receiver(on: "hci2", into: "second")
      let scan = try bench.tool(["scan", "--json", "--radio", "bluez:hci0", "--for", "600s"])
      var identifiers: [String: String] = [:]
      while identifiers.count < 2 {
        let line = await scan.line { $0.isEvent("device") && $0.text("name") == ToolBench.name }
        guard let address = line?.text("address"), let identifier = line?.text("identifier") else { break }
        identifiers[address] = identifier
      }
      scan.send(signal: SIGINT)
      _ = await scan.ending()
      #expect(Set(identifiers.keys) == [Guest.address(of: 1), Guest.address(of: 2)])

      let push = try bench.push(to: ToolBench.name)
      #expect(await push.finish().code == 2)
      let said = push.errors()
      #expect(identifiers.values.allSatisfy { said.contains($0) }, "\(said)")
      #expect(bench.received(in: "first") == nil && bench.received(in: "second") == nil)

      let chosen = try bench.push(to: try #require(identifiers[Guest.address(of: 2)]))
      #expect(await chosen.finish().code == 0, "\(chosen.errors())")
      #expect(bench.received(in: "first") == nil && bench.received(in: "second") == bench.image)

      let other = try bench.push(to: Guest.address(of: 1))
      #expect(await other.finish().code == 0, "\(other.errors())")
      #expect(bench.received(in: "first") == bench.image)
      await bench.stop(first)
      await bench.stop(second)
    }
  }
}
