import ChildProcess
import Foundation
import RealStack
import Testing

/// The tool on bluetoothd and the kernel: one adapter sends, the other receives.
@Suite(
  "The tool on bluetoothd", .serialized,
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct ToolTests {
  static let carriers = ["gatt", "l2cap"]

  @Test("a file arrives whole and verified", arguments: carriers)
  func push(carrier: String) async throws {
    let bench = try ToolBench(size: 200_000)
    let receiver = try await bench.receiver()
    let push = try bench.push(via: carrier)
    let lines = await push.allLines()
    #expect(await push.ending() == .exit(0), "\(push.errors())")
    #expect(lines.contains { $0.contains("\"event\":\"carrier\"") && $0.contains("\"\(carrier)\"") })
    #expect(lines.contains { $0.contains("\"event\":\"verified\"") })
    #expect(bench.received == bench.image)
    await bench.stop(receiver)
  }

  @Test("a device is found by its name when it begins to advertise")
  func name() async throws {
    let bench = try ToolBench(size: 20_000)
    let push = try bench.tool([
      "push", "\(bench.folder)/fw.bin", "--json", "--radio", "bluez:hci0", "--to", "bench-1", "--timeout",
      "60s",
    ])
    #expect(await push.line { $0.contains("\"searching\"") } != nil, "\(push.errors())")
    let receiver = try await bench.receiver()
    #expect(await push.code() == 0, "\(push.errors())")
    #expect(bench.received == bench.image)
    await bench.stop(receiver)
  }
}
