internal import Locking

/// Prints one JSON object a line. Every object has the member `event`; the rest is documented in docs/cli.md.
final class JSONPrinter: EventPrinter {
  private struct State {
    var meter = PercentMeter()
    var lastPercent = -1
    var lastTime: Duration?
    var lastPhase: TransferProgress.Phase?
    var lastObject = 0
  }

  /// At most this often without a new percent or phase.
  static let interval = Duration.milliseconds(500)

  private let output: any OutputSink
  private let errors: any OutputSink
  private let verbosity: Verbosity
  private let now: @Sendable () -> Duration
  private let state = PosixMutex(State())

  init(
    output: any OutputSink, errors: any OutputSink, verbosity: Verbosity,
    now: @escaping @Sendable () -> Duration
  ) {
    self.output = output
    self.errors = errors
    self.verbosity = verbosity
    self.now = now
  }

  func show(_ report: Report) {
    let level: Report.Level = report.level == .detail ? .note : report.level
    guard verbosity.tells(level) else { return }
    write([JSONValue.Member("event", .string(report.event))] + report.members)
  }

  func begin() { state.withLock { $0 = State() } }

  func show(_ progress: TransferProgress) {
    guard verbosity != .quiet else { return }
    let time = now()
    let percent: Int? = state.withLock { state in
      guard let percent = state.meter.percent(of: progress) else { return nil }
      let isNews =
        percent != state.lastPercent || progress.phase != state.lastPhase
        || progress.objectIndex != state.lastObject
      let isDue = state.lastTime.map { time - $0 >= Self.interval } ?? true
      guard isNews || isDue else { return nil }
      state.lastPercent = percent
      state.lastTime = time
      state.lastPhase = progress.phase
      state.lastObject = progress.objectIndex
      return percent
    }
    if let percent { write(progress.members(percent: percent)) }
  }

  func show(_ failure: Failure) {
    write([
      .init("event", "error"), .init("code", .string(failure.code)),
      .init("message", .string(failure.message)),
      .init("advice", .optional(failure.advice)), .init("exit", .integer(Int(failure.exitCode.rawValue))),
    ])
    errors.write(failure.text)
  }

  func finish() {}

  private func write(_ members: [JSONValue.Member]) { output.write(JSONValue.object(members).text + "\n") }
}

extension TransferProgress {
  /// The members of the `progress` object.
  func members(percent: Int) -> [JSONValue.Member] {
    [
      .init("event", "progress"), .init("phase", .string(phase.rawValue)), .init("object", .string(object)),
      .init("index", .integer(objectIndex)), .init("count", .integer(objectCount)),
      .init("total", .integer(totalBytes)), .init("confirmed", .integer(confirmedBytes)),
      .init("percent", .integer(percent)), .init("resumed_from", .integer(resumedFrom)),
      .init("stream", .optional(streamBytes)),
      .init("rate", .optional(bytesPerSecond?.rounded())),
      .init("average_rate", .optional(averageBytesPerSecond?.rounded())),
      .init("time_left", .optional(timeRemaining)), .init("ceiling_ratio", .optional(ceilingRatio)),
      .init(
        "phase_times",
        .object(
          [Phase.connect, .prepare, .transfer, .verify].compactMap { phase in
            phaseTimes[phase].map { .init(phase.rawValue, .number(Amounts.seconds($0))) }
          })),
    ]
  }
}
