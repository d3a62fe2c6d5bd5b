import ChildProcess
import Foundation
import Locking
import TestSupport
import Testing

@testable import VirtualRadio

@Suite("btsnoop capture") struct BTSnoopTests {
  /// A folder of its own that is gone afterwards.
  private func withFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let folder = TemporaryFolder()
    return try withExtendedLifetime(folder) { try body(URL(filePath: folder.path)) }
  }

  private struct Record: Equatable {
    var flags: UInt32
    var microseconds: Int64
    var packet: [UInt8]
  }

  private func records(_ file: URL) throws -> [Record] {
    let bytes = [UInt8](try Data(contentsOf: file))
    #expect(Array(bytes.prefix(16)) == Array("btsnoop\0".utf8) + [0, 0, 0, 1, 0, 0, 0x03, 0xEA])
    func number(_ offset: Int, _ count: Int) -> UInt64 {
      bytes[offset..<offset + count].reduce(0) { $0 << 8 | UInt64($1) }
    }
    var records: [Record] = []
    var offset = 16
    while offset + 24 <= bytes.count {
      let length = Int(number(offset, 4))
      #expect(number(offset + 4, 4) == UInt64(length))
      #expect(number(offset + 12, 4) == 0)
      records.append(
        Record(
          flags: UInt32(number(offset + 8, 4)),
          microseconds: Int64(number(offset + 16, 8)) - 0x00DC_DDB3_0F2F_8000,
          packet: Array(bytes[offset + 24..<offset + 24 + length])))
      offset += 24 + length
    }
    #expect(offset == bytes.count)
    return records
  }

  private static let address: [UInt8] = [0x01, 0x02, 0x03, 0x04, 0x05, 0xC6]

  /// Write command (handle 0x0025), exchange MTU both ways, notification, all in L2CAP frames on the attribute channel.
  static func writeSample(_ writer: BTSnoopWriter) {
    writer.linkMade(
      handle: 0x40, peerAddress: Self.address,
      parameters: LinkParameters(connectionInterval: .milliseconds(30), supervisionTimeout: .seconds(2)),
      at: .seconds(1))
    writer.frame([3, 0, 4, 0, 0x02, 0x05, 0x02], handle: 0x40, from: .central, at: .milliseconds(1001))
    writer.frame([3, 0, 4, 0, 0x03, 0x05, 0x02], handle: 0x40, from: .peripheral, at: .milliseconds(1031))
    let value = [UInt8](repeating: 0xAB, count: 500)
    writer.frame(
      [0xF7, 0x01, 4, 0, 0x52, 0x25, 0x00] + value, handle: 0x40, from: .central, at: .milliseconds(1061))
    writer.frame(
      [5, 0, 4, 0, 0x1B, 0x27, 0x00, 1, 2], handle: 0x40, from: .peripheral, at: .milliseconds(1091))
    writer.linkEnded(handle: 0x40, .supervisionTimeout, at: .seconds(4))
  }

  @Test("records hold events and fragmented ACL packets with direction and time")
  func contents() throws {
    try withFolder { folder in
      let file = folder.appendingPathComponent("a.btsnoop")
      let writer = try BTSnoopWriter(path: file.path, epoch: 1_700_000_000)
      Self.writeSample(writer)
      writer.close()
      let records = try records(file)
      #expect(records.map(\.flags) == [3, 0, 1, 0, 0, 0, 1, 3])
      #expect(
        records.map { $0.microseconds - 1_700_000_000_000_000 }
          == [1_000_000, 1_001_000, 1_031_000, 1_061_000, 1_061_000, 1_061_000, 1_091_000, 4_000_000])
      #expect(
        records.first?.packet == [
          0x04, 0x3E, 19, 0x01, 0, 0x40, 0, 0, 1, 1, 2, 3, 4, 5, 0xC6, 24, 0, 0, 0, 200, 0, 0,
        ])
      #expect(records[1].packet == [0x02, 0x40, 0x00, 7, 0, 3, 0, 4, 0, 0x02, 0x05, 0x02])
      #expect(records[2].packet == [0x02, 0x40, 0x20, 7, 0, 3, 0, 4, 0, 0x03, 0x05, 0x02])
      #expect(records[3].packet.prefix(5) == [0x02, 0x40, 0x00, 251, 0])
      #expect(records[4].packet.prefix(5) == [0x02, 0x40, 0x10, 251, 0])
      #expect(records[5].packet.prefix(5) == [0x02, 0x40, 0x10, 5, 0])
      #expect(records.last?.packet == [0x04, 0x05, 4, 0, 0x40, 0, 0x08])
    }
  }

  @Test("what waits in memory is bounded, and flushing writes it")
  func buffering() throws {
    try withFolder { folder in
      let file = folder.appendingPathComponent("b.btsnoop")
      let writer = try BTSnoopWriter(path: file.path)
      func size() throws -> Int { try Data(contentsOf: file).count }
      #expect(try size() == 16)
      let frame = [UInt8](repeating: 1, count: 251)
      for index in 1...1000 {
        writer.frame(frame, handle: 1, from: .central, at: .zero)
        #expect(try index * (24 + 5 + 251) + 16 - size() < 65536 + 280)
      }
      writer.flush()
      #expect(try size() == 16 + 1000 * 280)
    }
  }

  @Test("a second of recorded time is never far behind")
  func flushesWithTime() throws {
    try withFolder { folder in
      let file = folder.appendingPathComponent("c.btsnoop")
      let writer = try BTSnoopWriter(path: file.path)
      writer.frame([1, 2, 3, 4], handle: 1, from: .central, at: .milliseconds(10))
      writer.frame([1, 2, 3, 4], handle: 1, from: .central, at: .milliseconds(1010))
      #expect(try records(file).count == 2)
    }
  }

  @Test("a file that cannot be made is refused with its name and the reason")
  func cannotOpen() {
    let error = #expect(throws: BTSnoopWriter.Failure.self) {
      try BTSnoopWriter(path: "/nowhere/at/all.btsnoop")
    }
    #expect(
      error?.description
        == "cannot write the capture /nowhere/at/all.btsnoop: No such file or directory")
  }

  @Test("a file that is no capture is left as it is; a capture is begun anew")
  func otherFiles() throws {
    try withFolder { folder in
      let image = folder.appendingPathComponent("fw.bin")
      let bytes = Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) })
      try bytes.write(to: image)
      let error = #expect(throws: BTSnoopWriter.Failure.self) { try BTSnoopWriter(path: image.path) }
      #expect(error?.description.contains("is no capture") == true)
      #expect(try Data(contentsOf: image) == bytes)
      let capture = folder.appendingPathComponent("link.btsnoop")
      for _ in 1...2 {
        let writer = try BTSnoopWriter(path: capture.path)
        writer.frame([1, 2, 3, 4], handle: 1, from: .central, at: .zero)
        writer.close()
        #expect(try records(capture).count == 1)
      }
    }
  }

  @Test("a full disk is told once")
  func writeError() throws {
    // The header is written by init, so /dev/full fails there.
    let error = #expect(throws: BTSnoopWriter.Failure.self) { try BTSnoopWriter(path: "/dev/full") }
    #expect(error?.errorNumber == ENOSPC)
  }

  @Test("a FIFO that nobody reads is refused instead of waited for")
  func fifoWithoutReader() throws {
    try withFolder { folder in
      let fifo = folder.appendingPathComponent("fifo").path
      try #require(unsafe mkfifo(fifo, 0o600) == 0)
      let error = #expect(throws: BTSnoopWriter.Failure.self) { try BTSnoopWriter(path: fifo) }
      #expect(error?.errorNumber == ENXIO && error?.description.contains("nobody reads it") == true)
    }
  }

  @Test("a FIFO is written while its reader takes something, and given up where that ends")
  func fifoWithReader() throws {
    try withFolder { folder in
      let fifo = folder.appendingPathComponent("fifo").path
      try #require(unsafe mkfifo(fifo, 0o600) == 0)
      let reader = unsafe open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
      try #require(reader >= 0)
      let failures = PosixMutex([BTSnoopWriter.Failure]())
      let writer = try BTSnoopWriter(path: fifo) { failure in failures.withLock { $0.append(failure) } }
      defer { close(reader) }
      let header = try FileHandle(fileDescriptor: reader).read(upToCount: 16)
      #expect(header?.prefix(8) == Data("btsnoop\0".utf8))
      // More than a pipe holds.
      let frame = [UInt8](repeating: 1, count: 251)
      for _ in 0..<1000 { writer.frame(frame, handle: 1, from: .central, at: .zero) }
      writer.close()
      #expect(failures.withLock { $0.map(\.errorNumber) } == [EAGAIN])
    }
  }

  /// Asks tshark for one line a packet.
  private func tshark(_ file: URL, _ fields: [String]) async throws -> [[String]] {
    let process = try ChildProcess(
      Self.tsharkPath,
      ["-n", "-r", file.path, "-T", "fields", "-E", "separator=|"] + fields.flatMap { ["-e", $0] })
    let lines = await process.allLines()
    #expect(await process.ending() == .exit(0), "\(process.errors())")
    return lines.map { $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init) }
  }

  private static let tsharkPath = "/usr/bin/tshark"

  @Test(
    "tshark decodes the link's events and the attribute protocol",
    .enabled(if: FileManager.default.isExecutableFile(atPath: Self.tsharkPath), "tshark is not installed"))
  func tsharkDecodes() async throws {
    let folder = TemporaryFolder()
    let file = URL(filePath: folder.path("d.btsnoop"))
    let writer = try BTSnoopWriter(path: file.path)
    Self.writeSample(writer)
    writer.close()
    let lines = try await tshark(
      file,
      ["bthci_evt.le_meta_subevent", "bthci_evt.code", "btatt.opcode", "btatt.handle", "btatt.value"])
    #expect(lines.count == 8)
    #expect(lines.first.map { Array($0.prefix(2)) } == ["0x01", "0x3e"])
    #expect(lines.last.map { $0[1] } == "0x05")
    let attributes = lines.filter { !$0[2].isEmpty }
    #expect(attributes.map { $0[2] } == ["0x02", "0x03", "0x52", "0x1b"])
    #expect(attributes.map { $0[3] } == ["", "", "0x0025", "0x0027"])
    #expect(attributes[2][4].replacing(":", with: "") == String(repeating: "ab", count: 500))
  }
}
