import BulkTransfer
import Foundation
import Testing

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct DevicesCommandTests {
    private func known(_ name: String?, _ identifier: UUID = UUID()) -> KnownDevices.Device {
      KnownDevices.Device(
        identifier: identifier, name: name, lastConnected: Date(timeIntervalSince1970: 1_800_000_000),
        services: ["180D"])
    }

    private func store(_ bench: Bench) -> KnownDevices {
      KnownDevices(directory: "\(bench.folder)/state/bluehaul")
    }

    @Test func aPushIsRememberedAndForgottenOnRequest() async throws {
      let bench = try Bench()
      #expect(await bench.run("devices").output == "no device is known\n")
      try Documentation.check(await bench.run("devices", "--json").lines)
      let file = try bench.file("fw.bin", size: 10_000)
      let receiver = await bench.receiver()
      #expect(await bench.run("push", file, "--to", "bench-1").code == .success)
      let list = await bench.run("devices")
      let device = try #require(try store(bench).devices().first)
      #expect(list.lines.count == 1)
      #expect(list.output.hasPrefix("bench-1  \(device.identifier.uuidString)  last connected "))
      try Documentation.check(await bench.run("devices", "--json").lines)
      // The identifier that is shown is one that push takes.
      let other = try bench.file("other.bin", size: 10_000, seed: 3)
      #expect(await bench.run("push", other, "--to", device.identifier.uuidString).code == .success)
      _ = await receiver.stop()

      let forgotten = await bench.run("devices", "forget", "bench-1", "--json")
      #expect(forgotten.code == .success && forgotten.lines.count == 1)
      try Documentation.check(forgotten.lines)
      #expect(await bench.run("devices").output == "no device is known\n")
      #expect(await bench.run("status").output == "nothing is unfinished\n")
    }

    @Test func onlyWhatIsMeantIsForgotten() async throws {
      let bench = try Bench()
      let (one, two, three) = (known("one"), known("two"), known("two"))
      for device in [one, two, three] { try store(bench).remember(device) }
      let unknown = await bench.run("devices", "forget", "three")
      #expect(unknown.code == .usage && unknown.errors.contains("bluehaul devices"))
      #expect(await bench.run("devices", "forget", one.identifier.uuidString.lowercased()).code == .success)
      #expect(try store(bench).devices().count == 2)
      let both = await bench.run("devices", "forget", "two")
      #expect(both.lines.count == 2)
      #expect(try store(bench).devices().isEmpty)
    }

    @Test func namesCannotForgeOutput() async throws {
      let bench = try Bench()
      try store(bench).remember(known("bench\u{1B}[2J\nok"))
      let run = await bench.run("devices")
      #expect(run.output.hasPrefix("bench\\u{1B}[2J\\u{A}ok  "))
      #expect(run.lines.count == 1)
    }

    @Test func aDamagedListIsReportedAndBegunAnew() async throws {
      let bench = try Bench()
      try store(bench).remember(known("one"))
      try Data("{".utf8).write(to: URL(filePath: store(bench).path))
      let list = await bench.run("devices")
      #expect(list.code == .success && list.output == "no device is known\n")
      #expect(list.errors.contains("devices.json"))
      #expect(await bench.run("devices", "forget", "one").code == .localStorage)
      let file = try bench.file("fw.bin", size: 10_000)
      let receiver = await bench.receiver()
      let push = await bench.run("push", file, "--to", "bench-1")
      #expect(push.code == .success)
      #expect(push.errors.contains("devices.json.old"))
      #expect(try store(bench).devices().count == 1)
      #expect(await bench.run("push", file, "--to", "bench-1").errors.isEmpty)
      _ = await receiver.stop()
    }

    @Test func twoDevicesOfOneNameAreNotGuessed() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let first = await bench.receiver()
      let second = await bench.receiver("--into", "\(bench.folder)/second")
      let push = await bench.run("push", file, "--to", "bench-1")
      #expect(push.code == .usage)
      #expect(push.errors.contains("2 devices are called"))
      #expect(push.errors.contains("identifier"))
      let scan = await bench.run("scan", "--json")
      try Documentation.check(scan.lines)
      #expect(scan.lines.count == 2)
      let identifiers = scan.lines.compactMap {
        $0.components(separatedBy: "\"identifier\":\"").dropFirst().first.map { String($0.prefix(36)) }
      }
      for identifier in identifiers {
        #expect(push.errors.contains(identifier))
        #expect(await bench.run("push", file, "--to", identifier).code == .success)
      }
      #expect(try bench.names(in: "in") == ["fw.bin"] && bench.names(in: "second") == ["fw.bin"])
      _ = await first.stop()
      _ = await second.stop()
    }

    @Test func aDeviceInUseIsLeftToItsProcess() async throws {
      let bench = try Bench()
      let file = try bench.file("fw.bin", size: 10_000)
      let receiver = await bench.receiver()
      #expect(await bench.run("push", file, "--to", "bench-1").code == .success)
      let device = try #require(try store(bench).devices().first)
      let other = try bench.file("other.bin", size: 10_000, seed: 3)
      let claim = try store(bench).claim(device.identifier, name: "bench-1")
      let push = await bench.run("push", other, "--to", "bench-1")
      #expect(push.code == .locked)
      #expect(push.errors.contains("works on the device bench-1"))
      #expect(push.errors.contains("\(ProcessInfo.processInfo.processIdentifier)"))
      withExtendedLifetime(claim) {}
      _ = await receiver.stop()
    }
  }
}
