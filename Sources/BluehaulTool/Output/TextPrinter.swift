internal import Locking

/// Prints for people: on a terminal with one line of progress that is redrawn, elsewhere with plain lines.
final class TextPrinter: EventPrinter {
  /// How progress is shown.
  enum Style: Sendable {
    /// One line that is redrawn, as wide as the function tells at that moment.
    case terminal(columns: @Sendable () -> Int)
    /// Whole lines without control characters.
    case plain
  }

  private struct State {
    var meter = PercentMeter()
    var plain = PlainProgress()
    /// The line of progress that stands on the terminal now.
    var drawn: String?
    var lastDrawn: Duration?
    var lastPhase: TransferProgress.Phase?
  }

  /// A terminal line is redrawn at most this often within a phase.
  static let redrawInterval = Duration.milliseconds(100)

  private let output: any OutputSink
  private let errors: any OutputSink
  private let style: Style
  private let verbosity: Verbosity
  private let now: @Sendable () -> Duration
  private let state = PosixMutex(State())

  init(
    output: any OutputSink, errors: any OutputSink, style: Style, verbosity: Verbosity,
    now: @escaping @Sendable () -> Duration
  ) {
    self.output = output
    self.errors = errors
    self.style = style
    self.verbosity = verbosity
    self.now = now
  }

  func show(_ report: Report) {
    guard verbosity.tells(report.level) else { return }
    let sink = report.level == .warning ? errors : output
    let prefix = report.level == .warning ? "warning: " : ""
    state.withLock { state in
      interrupt(&state)
      for line in report.lines { sink.write("\(prefix)\(line)\n") }
      if let drawn = state.drawn { output.write(drawn) }
    }
  }

  func begin() {
    state.withLock { state in
      state.meter = PercentMeter()
      state.plain = PlainProgress()
      state.lastPhase = nil
    }
  }

  func show(_ progress: TransferProgress) {
    guard verbosity != .quiet else { return }
    let time = now()
    state.withLock { state in
      guard let percent = state.meter.percent(of: progress) else { return }
      switch style {
      case .plain:
        for line in state.plain.lines(for: progress, percent: percent, now: time) {
          output.write(line + "\n")
        }
      case .terminal(let columns):
        if progress.phase == .done {
          interrupt(&state)
          state.drawn = nil
          for line in ProgressLine.summary(of: progress) { output.write(line + "\n") }
          return
        }
        let isDue = state.lastDrawn.map { time - $0 >= Self.redrawInterval } ?? true
        guard isDue || progress.phase != state.lastPhase else { return }
        let line = ProgressLine.bar(for: progress, percent: percent, columns: columns() - 1)
        interrupt(&state)
        output.write(line)
        state.drawn = line
        state.lastDrawn = time
        state.lastPhase = progress.phase
      }
    }
  }

  func show(_ failure: Failure) {
    state.withLock { state in
      endLine(&state)
      errors.write(failure.text)
    }
  }

  func finish() { state.withLock { endLine(&$0) } }

  /// Clears the line of progress to make room for another.
  private func interrupt(_ state: inout State) {
    if state.drawn != nil { output.write("\r\u{1B}[K") }
  }

  /// Leaves the line of progress as it stands and goes to the next.
  private func endLine(_ state: inout State) {
    if state.drawn != nil { output.write("\n") }
    state.drawn = nil
  }
}

/// Chooses which states of a transfer become plain lines: each new phase, and within a phase every 2 s or 5 %.
struct PlainProgress {
  static let interval = Duration.seconds(2)
  static let step = 5

  private var lastTime: Duration?
  private var lastPercent = 0
  private var lastPhase: TransferProgress.Phase?
  private var lastObject = 0
  private var lastConfirmed = -1

  mutating func lines(for progress: TransferProgress, percent: Int, now: Duration) -> [String] {
    if progress.phase == .done { return ProgressLine.summary(of: progress) }
    let isNewPhase = progress.phase != lastPhase || progress.objectIndex != lastObject
    let isLater = lastTime.map { now - $0 >= Self.interval } ?? true
    let hasMoved = progress.confirmedBytes != lastConfirmed
    guard isNewPhase || percent - lastPercent >= Self.step || (isLater && hasMoved) else { return [] }
    lastTime = now
    lastPercent = percent
    lastPhase = progress.phase
    lastObject = progress.objectIndex
    lastConfirmed = progress.confirmedBytes
    return [ProgressLine.plain(progress, percent: percent)]
  }
}
