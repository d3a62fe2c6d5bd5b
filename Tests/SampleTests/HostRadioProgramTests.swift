import ChildProcess
import Foundation
import RealStack
import Testing

/// Samples, unchanged, on bluetoothd and a kernel: the central's program on one adapter, the peripherals' on others.
@Suite(
  "Samples on a host's Bluetooth", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct HostRadioProgramTests {
  private let programs = HostRadioPrograms()

  private func killed(_ process: ChildProcess) async {
    process.send(signal: SIGKILL)
    #expect(await process.ending() == .signal(SIGKILL))
  }

  /// Expects the next lines to be these.
  private func expect(
    _ process: ChildProcess, next lines: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    for line in lines {
      let said = await process.line { _ in true }
      #expect(said == line, "\(process.errors())", sourceLocation: sourceLocation)
    }
  }

  @Test func scanWithFilters() async throws {
    var others: [ChildProcess] = []
    for (name, adapter) in [("bench-1", "hci1"), ("spare", "hci2"), ("bench-2", "hci3")] {
      others.append(try await programs.advertise("heart-rate-sensor", [name], on: adapter))
    }
    others.append(try await programs.advertise("answering-peripheral", on: "hci4"))
    let scanner = try await programs.start("scan-with-filters", ["2", "bench-"])
    let lines = try await Guest.repeatingAdvertising(of: ["hci1", "hci2", "hci3", "hci4"]) {
      await scanner.allLines()
    }
    #expect(lines.first == "scanning")
    #expect(
      lines.dropFirst().dropLast().sorted() == [
        "bench-1 offers 180D, connectable", "bench-2 offers 180D, connectable",
      ])
    #expect(lines.last == "found bench-1, bench-2")
    #expect(await scanner.ending() == .exit(0), "\(scanner.errors())")
    for other in others { await killed(other) }
  }

  @Test func heartRate() async throws {
    let sensor = try await programs.advertise("heart-rate-sensor")
    let (monitor, first) = try await programs.start("heart-rate-monitor", hearing: ["hci1"])
    #expect(first == "connected to sensor")
    await SampleTests.expect(
      monitor,
      says: [
        "battery: 87 %",
        "worn at: chest",
        "1: 60 bpm, skin contact, 0 kJ, beats 1000 ms apart",
        "2: 61 bpm, skin contact, beats 999 ms apart",
        "3: 62 bpm, skin contact, 2 kJ, beats 998 ms apart",
        "4: 63 bpm, skin contact, beats 997 ms apart",
        "5: 64 bpm, skin contact, 4 kJ, beats 996 ms apart",
        "disconnected",
      ])
    await SampleTests.expect(sensor, says: ["somebody listens", "nobody listens any more"])
  }

  @Test func readWriteNotify() async throws {
    let notebook = try await programs.advertise("answering-peripheral")
    let (writer, first) = try await programs.start("read-write-notify", hearing: ["hci1"])
    #expect(first == "notifications are on")
    let said = await writer.allLines()
    // A notification and the answer to the write that has caused it may come in either order.
    #expect(
      said.sorted()
        == [
          "disconnected", "read: buy a battery", "read: nothing yet",
          "read: xxxxxxxxxx... (300 octets)", "read: xxxxxxxxxx... (300 octets)", "refused: too long",
          "told: 13 octets", "told: 300 octets", "written", "written",
        ])
    #expect(await writer.ending() == .exit(0), "\(writer.errors())")
    await SampleTests.expect(
      notebook,
      says: [
        "the note has 13 octets now", "the note has 300 octets now",
        "refused a note that is too long", "0 octets were uploaded",
      ])
  }

  @Test func writeFlowControl() async throws {
    let notebook = try await programs.advertise("answering-peripheral")
    let (writer, first) = try await programs.start("write-flow-control", hearing: ["hci1"])
    #expect(first == "uploading 20000 octets")
    await SampleTests.expect(writer, says: ["20000 octets arrived, all of them", "disconnected"])
    await SampleTests.expect(notebook, says: ["20000 octets were uploaded"])
  }

  @Test func channel() async throws {
    let server = try await programs.advertise("l2cap-server")
    let (client, first) = try await programs.start("l2cap-client", hearing: ["hci1"])
    #expect(first == "the channel is open")
    await SampleTests.expect(
      client, says: ["sent 20000 octets", "received 20000 octets, the same", "disconnected"])
    await SampleTests.expect(
      server, says: ["a channel is open", "the channel has ended: 20000 octets came, 0 were not sent back"])
  }

  /// The controllers of the virtual machine give both ends of a link the number that the central counts, and deliver only what has the number that
  /// the peripheral counts. So the sensor that is linked second has a link to somebody else before.
  @Test func severalPeripherals() async throws {
    let left = try await programs.advertise("heart-rate-sensor", ["left"], on: "hci1")
    let listener = try await programs.start("several-peripherals", ["2"])
    try await Guest.repeatingAdvertising(of: ["hci1"]) { await expect(left, next: ["somebody listens"]) }
    try await Guest.link("hci3", to: 2)
    let right = try await programs.advertise("heart-rate-sensor", ["right"], on: "hci2")
    let first = try await Guest.repeatingAdvertising(of: ["hci2"]) { await listener.line { _ in true } }
    #expect(first == "left: 60, 61, 62 bpm", "\(listener.errors())")
    await SampleTests.expect(listener, says: ["right: 60, 61, 62 bpm"])
    await SampleTests.expect(left, says: ["nobody listens any more"])
    await SampleTests.expect(right, says: ["somebody listens", "nobody listens any more"])
  }

  /// The sensor is gone, then comes back: the three ways to it one after the other.
  @Test func reconnect() async throws {
    let file = programs.folder.appending(path: "identifier")
    let first = try await programs.advertise("heart-rate-sensor")
    let follower = try await programs.start("reconnect", [file.path])
    try await Guest.repeatingAdvertising(of: ["hci1"]) {
      await expect(follower, next: ["scanning", "connection 1", "a measurement came"])
    }
    let identifier = try String(contentsOf: file, encoding: .utf8)
    #expect(UUID(uuidString: identifier) != nil)
    // The host's link outlives the program that has served on it.
    await killed(first)
    try await Guest.disconnect("hci1", from: Guest.address(of: 0))
    await expect(follower, next: ["the link was lost", "known by its identifier"])
    // It waits for as long as it takes.
    let second = try await programs.advertise("heart-rate-sensor")
    try await Guest.repeatingAdvertising(of: ["hci1"]) {
      await SampleTests.expect(
        follower,
        says: ["connection 2", "a measurement came", "sensors linked to this host: 1", "disconnected"])
    }
    #expect(try String(contentsOf: file, encoding: .utf8) == identifier)
    await SampleTests.expect(second, says: ["somebody listens", "nobody listens any more"])
    // The next run knows the sensor before that is there again.
    let next = try await programs.start("reconnect", [file.path])
    await expect(next, next: ["known by its identifier"])
    let third = try await programs.advertise("heart-rate-sensor")
    try await Guest.repeatingAdvertising(of: ["hci1"]) {
      await expect(next, next: ["connection 1", "a measurement came"])
    }
    // A program that has no file finds the sensor because the other has a link to it.
    let other = try await programs.start("reconnect")
    await expect(other, next: ["linked to this host already", "connection 1"])
    for process in [other, next, third] { await killed(process) }
  }
}
