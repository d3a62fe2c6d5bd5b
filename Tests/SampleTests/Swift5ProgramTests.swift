import ChildProcess
import Testing

/// A program in Swift 5 mode, without any setting of this package: what was written for Apple's framework runs as it is.
@Suite(.timeLimit(.minutes(30))) struct Swift5ProgramTests {
  @Test func runsAsItIs() async throws {
    let air = SampleAir()
    let device = try await air.start(program: "swift5-program", ["device"], adapter: "notebook")
    #expect(await device.line { _ in true } == "advertising")
    let phone = try await air.start(program: "swift5-program", ["phone"], adapter: "phone")
    await expect(
      phone,
      says: [
        "Bluetooth is on, authorized: true",
        "found notebook with 1 service",
        "written",
        "the note is: milk",
        "refused: too long",
        "3000 octets came back, the same",
        "left notebook, which is known: true",
        "callbacks were counted: true",
      ])
    await expect(device, says: ["1 follows the note", "nobody follows the note"])
  }

  @Test(arguments: [
    ("phone", "Bluetooth is unsupported, authorized: true"), ("device", "Bluetooth is unsupported"),
  ])
  func saysThatThereIsNoRadio(role: String, line: String) async throws {
    let process = try ChildProcess("swift5-program", [role], environment: ["COREBLUETOOTH_RADIO": "none"])
    #expect(await process.allLines() == [line])
    #expect(await process.ending() == .exit(1))
  }
}
