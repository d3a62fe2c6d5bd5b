/// Shows what a command has to tell. One printer lives as long as one run of the tool; it may be called from any thread.
protocol EventPrinter: Sendable {
  /// Tells one thing.
  func show(_ report: Report)

  /// Says that what follows is of another transfer, whose percentage begins anew.
  func begin()

  /// Shows where a transfer stands; the printer chooses which of many calls become output.
  func show(_ progress: TransferProgress)

  /// Tells the error that ends the run.
  func show(_ failure: Failure)

  /// Ends a line that is still being redrawn. Called once, last.
  func finish()
}

/// How much is told.
enum Verbosity: Sendable {
  case quiet, normal, verbose

  func tells(_ level: Report.Level) -> Bool {
    switch (level, self) {
    case (.result, _), (.warning, _): true
    case (.note, .quiet): false
    case (.note, _): true
    case (.detail, .verbose): true
    case (.detail, _): false
    }
  }
}
