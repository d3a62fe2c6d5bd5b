import ChildProcess
import Foundation
import RealStack
import TestSupport
import Testing

/// A central made with bleak, which goes through bluetoothd's D-Bus interface on hci0, against our peripherals on hci1.
@Suite(
  "bleak as the central", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct BleakTests {
  /// Properties, long values, the order of writes, refusals and subscriptions are what another's central takes them for.
  @Test("reads, writes with and without response and notifications of a sample")
  func notebook() async throws {
    let notebook = try ChildProcess(
      "sample-answering-peripheral", environment: ["COREBLUETOOTH_RADIO": "bluez:hci1"], endsWithParent: true)
    #expect(await notebook.line { _ in true } == "advertising", "\(notebook.errors())")
    let central = try ChildProcess(peer: "bleak_notebook.py", .bleak, ["hci0"])
    let found = try await Guest.repeatingAdvertising(of: ["hci1"]) { await central.line { _ in true } }
    #expect(found == "found", "\(central.errors())")
    let said = await central.allLines()
    #expect(
      said == [
        "connected",
        "a001: read, write",
        "a002: notify",
        "a003: read, write-without-response",
        "read: nothing yet",
        "told: 13 octets",
        "read: buy a battery",
        "told: 300 octets",
        "read: xxxxxxxxxx... (300 octets)",
        "refused",
        "uploaded: 20000 octets, all of them",
        "disconnected",
      ])
    #expect(await central.ending() == .exit(0), "\(central.errors())")
    #expect(
      await notebook.allLines() == [
        "the note has 13 octets now", "the note has 300 octets now", "refused a note that is too long",
        "20000 octets were uploaded",
      ])
    #expect(await notebook.ending() == .exit(0), "\(notebook.errors())")
  }

  /// The receiver of the tool speaks what docs/protocol.md says: this sender was written from that page. What is lost on the way is found.
  @Test(
    "a file is sent to the tool by a sender of the haul protocol that is not ours", arguments: [nil, 9_000])
  func haul(losing octet: Int?) async throws {
    let folder = TemporaryFolder()
    let image = Data((0..<30_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 7) })
    let file = try folder.write(image, "fw.bin")
    let receiver = try ChildProcess(
      "bluehaul",
      [
        "receive", "--json", "--radio", "bluez:hci1", "--name", "bench-1", "--into", folder.path("in"),
      ], environment: ["XDG_STATE_HOME": folder.path("state")], endsWithParent: true)
    #expect(await receiver.line { $0.contains("\"ready\"") } != nil, "\(receiver.errors())")
    let sender = try ChildProcess(
      peer: "bleak_haul.py", .bleak, ["hci0", file] + (octet.map { ["\($0)"] } ?? []))
    let first = try await Guest.repeatingAdvertising(of: ["hci1"]) { await sender.line { _ in true } }
    #expect(first == "connected", "\(sender.errors())")
    let said = await sender.allLines()
    #expect(
      said == ["welcome, version 1", "accepted from 0 on"]
        + (octet == nil ? [] : ["lost, for reason 1"]) + ["verified", "disconnected"])
    #expect(await sender.ending() == .exit(0), "\(sender.errors())")
    #expect(folder.contents("in/fw.bin") == image)
    receiver.send(signal: SIGINT)
    #expect(await receiver.ending() == .exit(130), "\(receiver.errors())")
  }
}
