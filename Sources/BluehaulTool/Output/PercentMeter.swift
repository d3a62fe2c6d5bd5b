/// Turns confirmed bytes into a percentage that can be trusted: it never goes back, and it is 100 only once everything was verified.
struct PercentMeter {
  private var highest = 0
  private(set) var isDone = false

  /// The percentage to show; nil once 100 was given.
  mutating func percent(of progress: TransferProgress) -> Int? {
    if isDone { return nil }
    if progress.phase == .done {
      isDone = true
      return 100
    }
    guard progress.totalBytes > 0 else { return highest }
    let confirmed = min(max(0, progress.confirmedBytes), progress.totalBytes)
    let (high, low) = confirmed.multipliedFullWidth(by: 100)
    let percent = progress.totalBytes.dividingFullWidth((high, low)).quotient
    highest = max(highest, min(99, percent))
    return highest
  }
}
