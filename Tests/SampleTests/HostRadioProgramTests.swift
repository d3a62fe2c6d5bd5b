import ChildProcess
import Foundation
import RealStack
import Testing

/// Samples, unchanged, on bluetoothd and a kernel: the central's program on one adapter, the peripheral's on the other.
///
/// The heart-rate pair is left out: timers of Foundation's run loops do not fire in the emulated machine, on any radio.
@Suite(
  "Samples on a host's Bluetooth", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct HostRadioProgramTests {
  /// Starts the peripheral's program, and the central's once the other advertises; returns the first line of the latter as well.
  ///
  /// The controllers of the virtual machine tell a scanner of each advertiser once, perhaps before it listens: until the programs have met,
  /// advertising is therefore switched off and on again, each second and behind everybody's back.
  private func start(
    central: String, peripheral: String
  ) async throws -> (central: ChildProcess, first: String?, peripheral: ChildProcess) {
    let second = try ChildProcess(peripheral, [], environment: ["COREBLUETOOTH_RADIO": "bluez:hci1"])
    #expect(await second.line { _ in true } == "advertising", "\(second.errors())")
    let first = try ChildProcess(central, [], environment: ["COREBLUETOOTH_RADIO": "bluez:hci0"])
    let repeating = Task {
      while !Task.isCancelled {
        for isOn in ["00", "01"] {
          // LE Set Advertising Enable (Core Vol 4 Part E 7.8.9).
          let command = try ChildProcess("/usr/bin/hcitool", ["-i", "hci1", "cmd", "0x08", "0x000a", isOn])
          _ = await command.ending()
        }
        try await Task.sleep(for: .seconds(1))
      }
    }
    let line = await first.line { _ in true }
    repeating.cancel()
    _ = await repeating.result
    return (first, line, second)
  }

  /// The lines of both to their ends, which must be success.
  private func outputs(
    central: String, peripheral: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (central: [String], peripheral: [String]) {
    let programs = try await start(central: central, peripheral: peripheral)
    let said = await (programs.central.allLines(), programs.peripheral.allLines())
    let endings = await (programs.central.ending(), programs.peripheral.ending())
    #expect(endings.0 == .exit(0), "\(programs.central.errors())", sourceLocation: sourceLocation)
    #expect(endings.1 == .exit(0), "\(programs.peripheral.errors())", sourceLocation: sourceLocation)
    return ([programs.first].compactMap { $0 } + said.0, said.1)
  }

  @Test func readWriteNotify() async throws {
    let said = try await outputs(
      central: "sample-read-write-notify", peripheral: "sample-answering-peripheral")
    // A notification and the answer to the write that has caused it may come in either order.
    #expect(
      said.central.sorted()
        == [
          "disconnected", "notifications are on", "read: buy a battery", "read: nothing yet",
          "read: xxxxxxxxxx... (300 octets)", "read: xxxxxxxxxx... (300 octets)", "refused: too long",
          "told: 13 octets", "told: 300 octets", "written", "written",
        ])
    #expect(
      said.peripheral == [
        "the note has 13 octets now", "the note has 300 octets now",
        "refused a note that is too long", "0 octets were uploaded",
      ])
  }

  @Test func channel() async throws {
    let said = try await outputs(central: "sample-l2cap-client", peripheral: "sample-l2cap-server")
    #expect(
      said.central == [
        "the channel is open", "sent 20000 octets", "received 20000 octets, the same", "disconnected",
      ])
    #expect(
      said.peripheral == [
        "a channel is open", "the channel has ended: 20000 octets came, 0 were not sent back",
      ])
  }
}
