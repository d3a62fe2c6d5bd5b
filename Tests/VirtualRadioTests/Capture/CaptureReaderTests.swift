import ChildProcess
import Foundation
import TestSupport
import Testing

@testable import VirtualRadio

/// What programs of others make of a capture.
@Suite("Readers of captures", .timeLimit(.minutes(10))) struct CaptureReaderTests {
  private static let btmon = "/usr/bin/btmon"

  @Test(
    "btmon decodes a link from its beginning to its end, and what ATT carries",
    .enabled(if: FileManager.default.isExecutableFile(atPath: Self.btmon), "btmon is not installed"))
  func monitor() async throws {
    let folder = TemporaryFolder()
    let path = folder.path("link.btsnoop")
    let writer = try BTSnoopWriter(path: path)
    writer.linkMade(
      handle: 0x40, peerAddress: [0x01, 0x02, 0x03, 0x04, 0x05, 0xC6],
      parameters: LinkParameters(connectionInterval: .milliseconds(30), supervisionTimeout: .seconds(2)),
      at: .seconds(1))
    writer.frame([3, 0, 4, 0, 0x02, 0x05, 0x02], handle: 0x40, from: .central, at: .milliseconds(1001))
    writer.frame([3, 0, 4, 0, 0x03, 0x05, 0x02], handle: 0x40, from: .peripheral, at: .milliseconds(1031))
    writer.frame(
      [0xF7, 0x01, 4, 0, 0x52, 0x25, 0x00] + [UInt8](repeating: 0xAB, count: 500), handle: 0x40,
      from: .central, at: .milliseconds(1061))
    writer.frame(
      [5, 0, 4, 0, 0x1B, 0x27, 0x00, 1, 2], handle: 0x40, from: .peripheral, at: .milliseconds(1091))
    writer.linkEnded(handle: 0x40, .supervisionTimeout, at: .seconds(4))
    writer.close()

    let process = try ChildProcess(Self.btmon, ["-r", path])
    let lines = await process.allLines().map { $0.trimmingCharacters(in: .whitespaces) }
    #expect(await process.ending() == .exit(0), "\(process.errors())")
    let told = [
      "LE Connection Complete (0x01)", "Connection interval: 30.00 msec (0x0018)",
      "ATT: Exchange MTU Request (0x02) len 2", "ATT: Exchange MTU Response (0x03) len 2",
      "ATT: Write Command (0x52) len 502", "ATT: Handle Value Notification (0x1b) len 4",
      "Reason: Connection Timeout (0x08)",
    ]
    let found = told.compactMap { line in lines.firstIndex { $0.hasPrefix(line) } }
    #expect(found.count == told.count && found == found.sorted(), "\(lines)")
  }
}
