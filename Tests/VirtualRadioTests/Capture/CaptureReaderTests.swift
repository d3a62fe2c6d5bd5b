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
    BTSnoopTests.writeSample(writer)
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
