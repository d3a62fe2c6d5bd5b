import BulkTransfer
import Testing

@testable import BluehaulTool

@Suite struct ToolTests {
  @Test func wrongUsageIsTwoLinesAndExitCode2() async {
    let run = await ToolRun("hepl")
    #expect(run.code == .usage)
    #expect(run.output == "")
    #expect(
      run.errors == """
        bluehaul: "hepl" is no command of bluehaul; did you mean help?
        see bluehaul --help

        """)
  }

  @Test func noCommandIsWrongUsage() async {
    let run = await ToolRun()
    #expect(run.code == .usage)
    #expect(run.errors.hasPrefix("bluehaul: bluehaul needs a command: "))
  }

  @Test func wrongUsageInJSONIsAnObjectToo() async throws {
    let run = await ToolRun("help", "nonsense", "--json")
    #expect(run.code == .usage)
    #expect(
      run.output == #"{"event":"error","code":"usage","message":"there is no help on \"nonsense\"","#
        + #""advice":"see bluehaul --help","exit":2}"# + "\n")
    #expect(run.errors == "bluehaul: there is no help on \"nonsense\"\nsee bluehaul --help\n")
    try Documentation.check(run.lines)
  }

  @Test func versionIsOneLine() async {
    let run = await ToolRun("--version")
    #expect(run.code == .success)
    #expect(run.output == "bluehaul \(Bluehaul.version)\n")
  }

  @Test(arguments: [
    ["--help"], ["help"], ["help", "help"], ["help", "--help"], ["help", "exit-codes"],
    ["help", "link"], ["help", "fault"],
  ])
  func helpGoesToStandardOutput(arguments: [String]) async {
    let run = await ToolRun(arguments)
    #expect(run.code == .success)
    #expect(run.output.hasSuffix("\n"))
    #expect(run.errors == "")
  }

  @Test func helpOnACommandIsTheSameBothWays() async {
    for path in CommandPath.all where path.commands.count > 1 {
      let names = path.commands.dropFirst().map(\.name)
      let asTopic = await ToolRun(["help"] + names)
      let asOption = await ToolRun(names + ["--help"])
      #expect(asTopic.output == asOption.output)
      #expect(asTopic.code == .success && asOption.code == .success)
    }
  }

  @Test(
    "every kind of failure has its exit code",
    arguments: [
      (TransferError.Code.unusableFile, Int32(3)), (.malformedFile, 3), (.invalidArgument, 2), (.storage, 9),
      (.diskFull, 9), (.damagedState, 9), (.locked, 8), (.radioUnavailable, 4), (.deviceNotFound, 4),
      (.disconnected, 7), (.timedOut, 7), (.unsupportedDevice, 5), (.refused, 5), (.protocolViolation, 5),
      (.verificationFailed, 6), (.cancelled, 130), (.objectTooLarge, 5), (.nameNotAcceptable, 5),
      (.nameTaken, 5), (.deviceStorage, 5),
    ] as [(TransferError.Code, Int32)])
  func exitCodes(code: TransferError.Code, exit: Int32) {
    let failure = Failure(TransferError(code, "something \u{1B}[2Jhappened", advice: "do\nthat"))
    #expect(failure.exitCode.rawValue == exit)
    #expect(failure.code == code.rawValue)
    #expect(failure.text == "bluehaul: something \\u{1B}[2Jhappened\ndo\\u{A}that\n")
    #expect(ExitCode.table.contains { $0.code == failure.exitCode })
  }

  @Test(
    arguments: [
      (.takeAsItIs, "--raw"), (.chooseRadio, "--radio RADIO"), (.chooseCarrier, "--via auto"),
      (AddressRange(start: 0x10, end: 0x20).map { .chooseAddresses($0) }, "--range 0x10-0x1F"), (nil, nil),
    ] as [(TransferError.Remedy?, String?)])
  func adviceNamesTheOptionThatDoesIt(remedy: TransferError.Remedy?, option: String?) {
    let failure = Failure(TransferError(.unusableFile, "x is odd", advice: "do that", remedy: remedy))
    #expect(failure.advice == "do that" + (option.map { " (\($0))" } ?? ""))
    let silent = Failure(TransferError(.unusableFile, "x is odd", remedy: remedy))
    #expect(silent.advice == nil)
  }

  @Test func anUnknownErrorIsAFaultOfTheProgram() {
    struct Odd: Error {}
    #expect(Failure(Odd()).exitCode == .internalError)
    #expect(Failure(CancellationError()).exitCode == .interrupted)
  }

  @Test func theFirstInterruptCancelsAndTheSecondExits() async {
    await confirmation("exit") { exited in
      let interrupts = Interrupts(exit: { exited() })
      let task = Task { try await Task.sleep(for: .seconds(3600)) }
      interrupts.onFirst { task.cancel() }
      #expect(!interrupts.happened)
      interrupts.raise()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(interrupts.happened)
      interrupts.raise()
    }
  }

  @Test func anInterruptBeforeTheHandlerIsNotLost() async {
    let interrupts = Interrupts(exit: {})
    interrupts.raise()
    await confirmation { called in interrupts.onFirst { called() } }
  }
}
