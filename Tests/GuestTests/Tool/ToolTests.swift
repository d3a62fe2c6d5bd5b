import ChildProcess
import Foundation
import RealStack
import Testing

/// The tool on bluetoothd and the kernel: one adapter sends, the other receives.
@Suite(
  "The tool on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct ToolTests {
  init() async throws { try await Guest.repeatAdvertising(of: "hci1") }

  @Test("a file arrives whole and verified", arguments: ["gatt", "l2cap"])
  func push(carrier: String) async throws {
    try await ToolBench.use(size: 200_000) { bench in
      let receiver = try await bench.receiver()
      let push = try bench.push("--via", carrier)
      let (lines, code) = await push.finish()
      #expect(code == 0, "\(push.errors())")
      #expect(lines.contains { $0.isEvent("carrier") && $0.text("via") == carrier })
      #expect(lines.contains { $0.isEvent("verified") })
      #expect(bench.received() == bench.image)
      await bench.stop(receiver)
    }
  }

  @Test("a device is found by its name when it begins to advertise")
  func name() async throws {
    try await ToolBench.use(size: 20_000) { bench in
      let push = try bench.push(to: ToolBench.name, "--timeout", "60s")
      #expect(await push.line { $0.isEvent("searching") } != nil, "\(push.errors())")
      let receiver = try await bench.receiver()
      #expect(await push.finish().code == 0, "\(push.errors())")
      #expect(bench.received() == bench.image)
      await bench.stop(receiver)
    }
  }

  @Test("a device that is not there is said to be missing", arguments: ["nobody", "00:AA:01:7F:00:7F"])
  func missing(device: String) async throws {
    try await ToolBench.use(size: 1) { bench in
      let push = try bench.push(to: device, "--timeout", "3s")
      #expect(await push.finish().code == 4)
      #expect(
        push.errors().contains(device) && push.errors().contains("not found within 3"), "\(push.errors())")
    }
  }

  @Test("a known device that does not take a connection is a lost link within the time limit")
  func silentDevice() async throws {
    try await ToolBench.use(size: 20_000) { bench in
      let receiver = try await bench.receiver()
      let first = try bench.push()
      #expect(await first.finish().code == 0, "\(first.errors())")
      receiver.send(signal: SIGKILL)
      _ = await receiver.ending()
      try await Adapters.waitUntilApart("hci0")
      try await Guest.takeDown("hci1")
      let push = try bench.push("--timeout", "3s", "--attempts", "1", "--restart")
      let (_, code) = await push.finish()
      #expect(code == 7, "\(push.errors())")
      #expect(push.errors().contains("no connection within 3"), "\(push.errors())")
      try await Guest.bringUp("hci1")
      try await Guest.waitUntilPowered()
    }
  }

  @Test("a receiver that is killed leaves no advertisement behind, and two have one each")
  func killedWhileAdvertising() async throws {
    try await ToolBench.use(size: 20_000) { bench in
      let first = try await bench.receiver()
      first.send(signal: SIGKILL)
      _ = await first.ending()
      try await Adapters.waitUntilAdvertising("hci1", 0)
      let second = try await bench.receiver()
      let third = try await bench.receiver(into: "other")
      try await Adapters.waitUntilAdvertising("hci1", 2)
      await bench.stop(third)
      try await Adapters.waitUntilAdvertising("hci1", 1)
      let push = try bench.push()
      #expect(await push.finish().code == 0, "\(push.errors())")
      #expect(bench.received() == bench.image)
      await bench.stop(second)
      try await Adapters.waitUntilAdvertising("hci1", 0)
    }
  }
}
