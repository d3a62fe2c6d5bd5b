import ChildProcess
import Foundation
import Testing

/// Samples as processes that meet in a folder, to their last line.
@Suite(.timeLimit(.minutes(30))) struct SampleProgramTests {
  private let air = SampleAir()

  private func killed(_ process: ChildProcess) async {
    process.send(signal: SIGKILL)
    let ending = await process.ending()
    #expect(ending == .signal(SIGKILL))
  }

  @Test func scanWithFilters() async throws {
    var others: [ChildProcess] = []
    for name in ["bench-1", "spare", "bench-2"] {
      others.append(try await air.advertise("heart-rate-sensor", [name], adapter: name))
    }
    others.append(try await air.advertise("answering-peripheral"))
    let scanner = try await air.start("scan-with-filters", ["2", "bench-"])
    let lines = await scanner.allLines()
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
    let sensor = try await air.advertise("heart-rate-sensor")
    let monitor = try await air.start("heart-rate-monitor")
    await expect(
      monitor,
      says: [
        "connected to sensor",
        "battery: 87 %",
        "worn at: chest",
        "1: 60 bpm, skin contact, 0 kJ, beats 1000 ms apart",
        "2: 61 bpm, skin contact, beats 999 ms apart",
        "3: 62 bpm, skin contact, 2 kJ, beats 998 ms apart",
        "4: 63 bpm, skin contact, beats 997 ms apart",
        "5: 64 bpm, skin contact, 4 kJ, beats 996 ms apart",
        "disconnected",
      ])
    await expect(sensor, says: ["somebody listens", "nobody listens any more"])
  }

  @Test func readWriteNotify() async throws {
    let notebook = try await air.advertise("answering-peripheral")
    let writer = try await air.start("read-write-notify")
    await expect(
      writer,
      says: [
        "notifications are on",
        "read: nothing yet",
        "written",
        "told: 13 octets",
        "read: buy a battery",
        "written",
        "told: 300 octets",
        "read: xxxxxxxxxx... (300 octets)",
        "refused: too long",
        "read: xxxxxxxxxx... (300 octets)",
        "disconnected",
      ])
    await expect(
      notebook,
      says: [
        "the note has 13 octets now", "the note has 300 octets now", "refused a note that is too long",
        "0 octets were uploaded",
      ])
  }

  @Test func writeFlowControl() async throws {
    let notebook = try await air.advertise("answering-peripheral")
    let uploader = try await air.start("write-flow-control")
    await expect(
      uploader, says: ["uploading 20000 octets", "20000 octets arrived, all of them", "disconnected"])
    await expect(notebook, says: ["20000 octets were uploaded"])
  }

  @Test func channel() async throws {
    let server = try await air.advertise("l2cap-server")
    let client = try await air.start("l2cap-client")
    await expect(
      client,
      says: [
        "the channel is open", "sent 20000 octets", "received 20000 octets, the same", "disconnected",
      ])
    await expect(
      server, says: ["a channel is open", "the channel has ended: 20000 octets came, 0 were not sent back"])
  }

  @Test func severalPeripherals() async throws {
    var sensors: [ChildProcess] = []
    for name in ["left", "right", "third"] {
      sensors.append(try await air.advertise("heart-rate-sensor", [name], adapter: name))
    }
    let listener = try await air.start("several-peripherals", ["3"])
    await expect(
      listener, says: ["left: 60, 61, 62 bpm", "right: 60, 61, 62 bpm", "third: 60, 61, 62 bpm"])
    for sensor in sensors { await expect(sensor, says: ["somebody listens", "nobody listens any more"]) }
  }

  @Test func reconnect() async throws {
    let file = air.folder.appending(path: "identifier")
    let first = try await air.advertise("heart-rate-sensor")
    let follower = try await air.start("reconnect", [file.path])
    var lines: [String] = []
    _ = await follower.line { line in
      lines.append(line)
      return line == "a measurement came"
    }
    #expect(lines == ["scanning", "connection 1", "a measurement came"])
    let identifier = try String(contentsOf: file, encoding: .utf8)
    #expect(UUID(uuidString: identifier) != nil)
    await killed(first)
    #expect(await follower.line { _ in true } == "the link was lost")
    #expect(await follower.line { _ in true } == "known by its identifier")
    // It waits for as long as it takes.
    let second = try await air.advertise("heart-rate-sensor")
    await expect(
      follower,
      says: ["connection 2", "a measurement came", "sensors linked to this host: 1", "disconnected"])
    #expect(try String(contentsOf: file, encoding: .utf8) == identifier)
    await expect(second, says: ["somebody listens", "nobody listens any more"])
    // The next run knows the sensor before that is there again.
    let next = try await air.start("reconnect", [file.path])
    #expect(await next.line { _ in true } == "known by its identifier")
    let third = try await air.advertise("heart-rate-sensor")
    #expect(await next.line { _ in true } == "connection 1")
    // The sensor first: it ends by itself when nobody listens any more.
    for process in [third, next] { await killed(process) }
  }

  @Test(
    "a program says when there is no radio",
    arguments: [
      "answering-peripheral", "heart-rate-monitor", "heart-rate-sensor", "l2cap-client", "l2cap-server",
      "read-write-notify", "reconnect", "scan-with-filters", "several-peripherals", "write-flow-control",
    ])
  func withoutARadio(sample: String) async throws {
    let process = try ChildProcess("sample-\(sample)", environment: ["COREBLUETOOTH_RADIO": "none"])
    #expect(await process.allLines() == ["Bluetooth cannot be used here"])
    #expect(await process.ending() == .exit(1))
    #expect(process.errors().contains("COREBLUETOOTH_RADIO"))
  }
}
