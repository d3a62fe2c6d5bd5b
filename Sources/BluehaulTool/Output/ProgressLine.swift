/// The wording of progress.
enum ProgressLine {
  /// A line without control characters.
  static func plain(_ progress: TransferProgress, percent: Int) -> String {
    switch progress.phase {
    case .connect, .prepare, .verify: phaseWords(progress)
    case .transfer, .done: (["\(percent) %"] + figures(progress)).joined(separator: "  ")
    }
  }

  /// A line of at most `columns` with a bar that takes what room is left.
  static func bar(for progress: TransferProgress, percent: Int, columns: Int) -> String {
    guard progress.phase == .transfer else {
      return Printable.prefix(of: phaseWords(progress) + " …", columns: max(0, columns))
    }
    let percentage = "\(percent < 10 ? "  " : " ")\(percent) %  "
    let behind = percentage + figures(progress).joined(separator: "  ")
    var modest = progress
    modest.ceilingRatio = nil
    // The bar is as wide as the usual figures leave it, so that it does not change with every digit; the name goes first, then the ratio.
    let title = title(of: progress, limit: max(8, columns / 4)) + " "
    for (name, progress) in [(title, progress), ("", progress), ("", modest)] {
      let behind = percentage + figures(progress).joined(separator: "  ")
      let used = Printable.width(of: name)
      let width = min(30, columns - used - (progress.ceilingRatio == nil ? 56 : 70))
      guard width >= 8, used + 2 + width + behind.count <= columns else { continue }
      let filled = width * percent / 100
      let bar = String(repeating: "=", count: filled) + String(repeating: " ", count: width - filled)
      return "\(name)[\(bar)]\(behind)"
    }
    return Printable.prefix(of: String(behind.drop { $0 == " " }), columns: max(0, columns))
  }

  /// What is said once, at the end: the only place of 100 %.
  static func summary(of progress: TransferProgress) -> [String] {
    var first = ["100 %", Amounts.bytes(progress.totalBytes) + " verified at the receiver"]
    if progress.resumedFrom > 0 {
      first.append("\(Amounts.bytes(progress.totalBytes - progress.resumedFrom)) of them sent in this run")
    }
    if let stream = progress.streamBytes, stream < progress.totalBytes - progress.resumedFrom {
      first.append("as \(Amounts.bytes(stream))")
    }
    var times: [String] = []
    if let moved = progress.phaseTimes[.transfer] {
      var words = "transfer \(Amounts.time(moved))"
      if let average = progress.averageBytesPerSecond { words += " at \(Amounts.rate(average))" }
      if let ratio = progress.ceilingRatio { words += " (\(Amounts.ratio(ratio)) of the link's ceiling)" }
      times.append(words)
    }
    for phase in [TransferProgress.Phase.connect, .prepare, .verify] {
      if let time = progress.phaseTimes[phase] { times.append("\(phase.rawValue) \(Amounts.time(time))") }
    }
    return [first.joined(separator: "  ")] + (times.isEmpty ? [] : [times.joined(separator: ", ")])
  }

  private static func phaseWords(_ progress: TransferProgress) -> String {
    let name = title(of: progress, limit: 60)
    switch progress.phase {
    case .connect: return "connecting for \(name)"
    case .prepare: return "preparing the receiver for \(name)"
    case .transfer: return "sending \(name)"
    case .verify: return "verifying \(Amounts.bytes(progress.totalBytes)) of \(name)"
    case .done: return "done with \(name)"
    }
  }

  private static func figures(_ progress: TransferProgress) -> [String] {
    var figures = ["\(Amounts.bytes(progress.confirmedBytes)) of \(Amounts.bytes(progress.totalBytes))"]
    if let rate = progress.bytesPerSecond { figures.append(Amounts.rate(rate)) }
    if let ratio = progress.ceilingRatio { figures.append("\(Amounts.ratio(ratio)) of best") }
    if let left = progress.timeRemaining { figures.append("\(Amounts.time(left)) left") }
    return figures
  }

  private static func title(of progress: TransferProgress, limit: Int) -> String {
    let place = progress.objectCount > 1 ? " (\(progress.objectIndex)/\(progress.objectCount))" : ""
    return Printable.prefix(of: Printable.text(progress.object), columns: limit) + place
  }
}
