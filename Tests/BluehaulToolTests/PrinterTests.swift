import Testing

@testable import BluehaulTool

/// The states of a transfer that runs straight through in `chunks` confirmations, `step` apart.
private func transfer(chunks: Int, total: Int, resumedFrom: Int = 0) -> [TransferProgress] {
  func state(_ phase: TransferProgress.Phase, _ confirmed: Int) -> TransferProgress {
    var state = TransferProgress(
      phase: phase, object: "fw.bin", totalBytes: total, confirmedBytes: confirmed, resumedFrom: resumedFrom)
    if phase == .transfer, confirmed > resumedFrom {
      state.bytesPerSecond = 10240
      state.timeRemaining = .milliseconds((total - confirmed) * 1000 / 10240)
    }
    return state
  }
  let data = (0...chunks).map { state(.transfer, resumedFrom + (total - resumedFrom) * $0 / chunks) }
  return [state(.connect, resumedFrom), state(.prepare, resumedFrom)] + data
    + [state(.verify, total), state(.done, total), state(.done, total)]
}

/// The percentages that a text shows, in order.
private func percentages(in text: String) -> [Int] {
  text.split(separator: " %").dropLast().compactMap { piece in
    Int(piece.reversed().prefix { $0.isNumber }.reversed().map(String.init).joined())
  }
}

@Suite struct TextPrinterTests {
  private func print(
    _ states: [TransferProgress], style: TextPrinter.Style, verbosity: Verbosity = .normal,
    step: Duration = .milliseconds(250)
  ) -> (output: MemorySink, errors: MemorySink) {
    let output = MemorySink()
    let errors = MemorySink()
    let time = SettableTime()
    let printer = TextPrinter(
      output: output, errors: errors, style: style, verbosity: verbosity, now: { time.now })
    for state in states {
      printer.show(state)
      time.advance(by: step)
    }
    printer.finish()
    return (output, errors)
  }

  @Test("a progress line says how far from the ceiling it is", arguments: [80, 120, nil])
  func ratio(columns: Int?) {
    let style = columns.map { columns in TextPrinter.Style.terminal(columns: { columns }) } ?? .plain
    var state = TransferProgress(
      phase: .transfer, object: "sensor-hub-1.4.2.bin", totalBytes: 1 << 20, confirmedBytes: 1 << 19)
    state.bytesPerSecond = 123_456
    state.timeRemaining = .seconds(42)
    state.ceilingRatio = 0.9512
    let text = print([state], style: style).output.text
    #expect(text.contains("120.5 KiB/s  0.951 of best  42 s left"))
    if columns != nil { #expect(text.contains("[===")) }
  }

  @Test(
    "the percentage can be trusted, on a terminal and in a pipe",
    arguments: [1, 7, 100, 1000], [40, 80, 200, nil])
  func percent(chunks: Int, columns: Int?) {
    let style = columns.map { columns in TextPrinter.Style.terminal(columns: { columns }) } ?? .plain
    let text = print(transfer(chunks: chunks, total: 102_400), style: style).output.text
    let shown = percentages(in: text)
    #expect(shown.first.map { $0 <= 1 } == true)
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(shown.count { $0 == 100 } == 1)
    #expect(shown.last == 100)
    #expect(text.hasSuffix("\n"))
  }

  @Test(arguments: [80, nil])
  func allBytesConfirmedAreNot100Percent(columns: Int?) {
    let states = transfer(chunks: 100, total: 102_400).filter { $0.phase != .done }
    let style = columns.map { columns in TextPrinter.Style.terminal(columns: { columns }) } ?? .plain
    let shown = percentages(in: print(states, style: style).output.text)
    #expect(shown.max().map { (90...99).contains($0) } == true)
  }

  @Test func aPipeGetsWholeLinesWithoutControlCharacters() {
    let output = print(transfer(chunks: 1000, total: 1 << 20), style: .plain).output
    let controls = output.text.unicodeScalars.filter {
      $0.properties.generalCategory == .control && $0 != "\n"
    }
    #expect(controls.isEmpty)
    #expect(output.text.hasSuffix("\n"))
  }

  @Test func aPipeGetsALineEvery2SecondsOr5Percent() {
    // 1000 states in 250 s: 20 lines for the percentages, at most 125 for the time.
    let slow = print(transfer(chunks: 1000, total: 1 << 20), style: .plain).output.lines
    #expect((100...135).contains(slow.count))
    // The same in 1 s: 5 % steps only.
    let fast = print(transfer(chunks: 1000, total: 1 << 20), style: .plain, step: .milliseconds(1)).output
      .lines
    #expect((20...28).contains(fast.count))
  }

  @Test func nothingMovingPrintsNothing() {
    let still = TransferProgress(phase: .transfer, object: "fw", totalBytes: 1000, confirmedBytes: 20)
    let lines = print(Array(repeating: still, count: 500), style: .plain).output.lines
    #expect(lines.count == 2, "one line and the end of it")
  }

  @Test func aResumedTransferBeginsWhereItStands() {
    let states = transfer(chunks: 10, total: 102_400, resumedFrom: 51_200)
    #expect(percentages(in: print(states, style: .plain).output.text).first == 50)
    #expect(print(states, style: .plain).output.text.contains("50.0 KiB of them sent in this run"))
  }

  @Test func whatTheReceiverLosesDoesNotTurnThePercentageBack() {
    let states = [40, 60, 30, 70].map {
      TransferProgress(phase: .transfer, object: "fw", totalBytes: 100, confirmedBytes: $0)
    }
    let shown = percentages(in: print(states, style: .plain, step: .seconds(3)).output.text)
    #expect(shown == [40, 60, 60, 70])
  }

  @Test func aLineOfATerminalIsRedrawnInPlace() {
    let text = print(transfer(chunks: 100, total: 102_400), style: .terminal(columns: { 80 })).output.text
    let drawn = text.split(separator: "\r\u{1B}[K")
    #expect(drawn.count > 100)
    #expect(drawn.dropLast().allSatisfy { !$0.contains("\n") && $0.count < 80 })
    #expect(
      drawn.contains("fw.bin [========        ] 50 %  50.0 KiB of 100.0 KiB  10.0 KiB/s  5.0 s left"))
  }

  @Test(arguments: [1, 10, 20, 40, 60, 120])
  func aLineNeverExceedsTheTerminal(columns: Int) {
    for state in transfer(chunks: 100, total: 1 << 30) {
      var state = state
      state.object = "ファームウェア-\u{202E}name\u{1B}[31m that is long, and longer"
      state.objectCount = 12
      let line = ProgressLine.bar(for: state, percent: 7, columns: columns)
      #expect(Printable.width(of: line) <= columns)
      #expect(line.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
    }
  }

  @Test func aReportGoesAboveTheLineThatIsDrawn() {
    let output = MemorySink()
    let errors = MemorySink()
    let printer = TextPrinter(
      output: output, errors: errors, style: .terminal(columns: { 80 }), verbosity: .normal, now: { .zero })
    let state = TransferProgress(phase: .transfer, object: "fw", totalBytes: 1000, confirmedBytes: 20)
    printer.show(state)
    let line = output.text
    printer.show(Report("note", .note, ["link lost"], []))
    #expect(output.text == line + "\r\u{1B}[Klink lost\n" + line)
    printer.show(Report("odd", .warning, ["odd thing"], []))
    #expect(errors.text == "warning: odd thing\n")
    printer.finish()
    #expect(output.text.hasSuffix(line + "\n"))
  }

  @Test(
    arguments: [
      (Verbosity.quiet, ["result"]), (.normal, ["result", "note"]), (.verbose, ["result", "note", "detail"]),
    ])
  func verbosity(verbosity: Verbosity, told: [String]) {
    let output = MemorySink()
    let printer = TextPrinter(
      output: output, errors: MemorySink(), style: .plain, verbosity: verbosity, now: { .zero })
    for (level, name) in [(Report.Level.result, "result"), (.note, "note"), (.detail, "detail")] {
      printer.show(Report("x", level, [name], []))
    }
    for state in transfer(chunks: 3, total: 300) where verbosity == .quiet { printer.show(state) }
    printer.finish()
    #expect(output.text == told.map { $0 + "\n" }.joined())
  }

  @Test func timesOfPhasesAreToldApart() {
    var state = TransferProgress(
      phase: .done, object: "fw", totalBytes: 102_400, confirmedBytes: 102_400,
      averageBytesPerSecond: 10_240, ceilingRatio: 0.97512)
    state.phaseTimes = [
      .connect: .milliseconds(120), .prepare: .seconds(25), .transfer: .seconds(10),
      .verify: .milliseconds(1830),
    ]
    #expect(
      ProgressLine.summary(of: state) == [
        "100 %  100.0 KiB verified at the receiver",
        "transfer 10 s at 10.0 KiB/s (0.975 of the link's ceiling), connect 120 ms, prepare 25 s, verify 1.8 s",
      ])
  }
}

@Suite struct JSONPrinterTests {
  private func print(_ states: [TransferProgress], step: Duration = .milliseconds(10)) -> [String] {
    let output = MemorySink()
    let time = SettableTime()
    let printer = JSONPrinter(
      output: output, errors: MemorySink(), verbosity: .normal, now: { time.now })
    for state in states {
      printer.show(state)
      time.advance(by: step)
    }
    printer.finish()
    #expect(output.text.hasSuffix("\n"))
    return output.text.split(separator: "\n").map(String.init)
  }

  @Test func progressIsOneObjectALine() {
    var state = TransferProgress(
      phase: .transfer, object: "fw \"1\"\n", totalBytes: 1000, confirmedBytes: 250, resumedFrom: 100,
      bytesPerSecond: 99.6, timeRemaining: .milliseconds(7500))
    state.phaseTimes = [.prepare: .milliseconds(1250)]
    #expect(
      print([state]) == [
        #"{"event":"progress","phase":"transfer","object":"fw \"1\"\n","index":1,"count":1,"total":1000,"#
          + #""confirmed":250,"percent":25,"resumed_from":100,"stream":null,"rate":100.0,"average_rate":null,"#
          + #""time_left":7.5,"ceiling_ratio":null,"phase_times":{"prepare":1.25}}"#
      ])
  }

  @Test func thePercentageFollowsTheSameRules() throws {
    let lines = print(transfer(chunks: 1000, total: 102_400))
    try Documentation.check(lines)
    let shown = lines.compactMap { line in
      line.split(separator: "\"percent\":").last.flatMap { Int($0.prefix { $0.isNumber }) }
    }
    #expect(shown.count == lines.count)
    #expect(shown.first == 0)
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(shown.count { $0 == 100 } == 1)
    #expect(lines.last?.contains(#""phase":"done""#) == true)
    #expect(lines.count < 150, "one line for each percent, phase and half second")
  }

  @Test func aFailureIsAnObjectAndWords() {
    let output = MemorySink()
    let errors = MemorySink()
    let printer = JSONPrinter(output: output, errors: errors, verbosity: .quiet, now: { .zero })
    printer.show(Failure(code: "locked", message: "in use", advice: nil, exitCode: .locked))
    #expect(
      output.text == #"{"event":"error","code":"locked","message":"in use","advice":null,"exit":8}"# + "\n")
    #expect(errors.text == "bluehaul: in use\n")
  }
}

@Suite struct WordingTests {
  @Test(
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_575, "1023.9 KiB"), (1_048_576, "1.0 MiB"),
      (1_610_612_736, "1.5 GiB"), (Int.max, "8589934591.9 GiB"),
    ])
  func sizes(bytes: Int, text: String) { #expect(Amounts.bytes(bytes) == text) }

  @Test(
    arguments: [
      (Duration.milliseconds(0), "0 ms"), (.milliseconds(-5), "0 ms"), (.milliseconds(999), "999 ms"),
      (.milliseconds(9999), "9.9 s"), (.milliseconds(59999), "59 s"), (.seconds(65), "1 min 05 s"),
      (.seconds(7380), "2 h 03 min"), (.seconds(Int64.max), "277777777 h 46 min"),
    ])
  func times(duration: Duration, text: String) { #expect(Amounts.time(duration) == text) }

  @Test(arguments: [(Double.nan, "–"), (.infinity, "–"), (-1, "–"), (0, "0 B/s"), (1536, "1.5 KiB/s")])
  func rates(rate: Double, text: String) { #expect(Amounts.rate(rate) == text) }

  @Test(
    arguments: [
      ("plain", "plain"), ("bell\u{7}", "bell\\u{7}"), ("\u{1B}[2J", "\\u{1B}[2J"), ("a\nb", "a\\u{A}b"),
      ("\u{202E}abc", "\\u{202E}abc"), ("\u{9B}31m", "\\u{9B}31m"), ("naïve – 漢字", "naïve – 漢字"),
      ("a\u{2028}b", "a\\u{2028}b"),
      (String(repeating: "x", count: 300), String(repeating: "x", count: 20) + "…"),
    ])
  func printable(text: String, shown: String) { #expect(Printable.text(text, limit: 20) == shown) }

  @Test(
    arguments: [
      (JSONValue.string("a\"\\\n\u{1B}é🙂"), #""a\"\\\n\u001b\u00e9\ud83d\ude42""#),
      (.number(.nan), "null"), (.number(0.5), "0.5"), (.array([1, true, .null]), "[1,true,null]"),
      (.object([.init("b", 1), .init("a", "x")]), #"{"b":1,"a":"x"}"#),
    ])
  func json(value: JSONValue, text: String) { #expect(value.text == text) }
}
