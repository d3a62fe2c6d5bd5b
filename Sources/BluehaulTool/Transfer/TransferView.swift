internal import BulkTransfer
internal import Foundation

/// Turns what a push tells into what is printed. Knows the sizes of all objects, of which the engine reports one at a time.
struct TransferView {
  private let names: [String]
  private let sizes: [Int]
  private let base: String?
  private let insists: Bool
  private let ceiling: @Sendable (CarrierKind) -> Double?
  private var carrier: CarrierKind?
  /// What the receiver held of each object when this run came to it.
  private var heldBefore: [Int: Int] = [:]
  private var last: TransferProgress
  /// How the objects of this run were coded, as far as it was told.
  private var codings: [Int: StreamCoding] = [:]
  /// Whether the end of this link was told.
  private var isLinkLost = false

  /// - Parameters:
  ///   - base: the file that the receiver is thought to hold.
  ///   - insists: whether compression was asked for in so many words.
  ///   - ceiling: bytes per second that the link can carry at best, where that is known.
  init(
    _ manifest: TransferManifest, base: String? = nil, insists: Bool = false,
    ceiling: @escaping @Sendable (CarrierKind) -> Double? = { _ in nil }
  ) {
    self.init(
      manifest.objects.map { ($0.name, Int(clamping: $0.size)) }, base: base, insists: insists,
      ceiling: ceiling)
  }

  /// - Parameter objects: what is sent, with sizes in bytes.
  init(
    _ objects: [(name: String, size: Int)], base: String? = nil, insists: Bool = false,
    ceiling: @escaping @Sendable (CarrierKind) -> Double?
  ) {
    names = objects.map(\.name)
    sizes = objects.map(\.size)
    self.base = base
    self.insists = insists
    self.ceiling = ceiling
    last = TransferProgress(
      phase: .connect, object: names.first ?? "", objectCount: names.count,
      totalBytes: sizes.reduce(0, +), confirmedBytes: 0)
  }

  mutating func show(_ event: PushEvent, on printer: any EventPrinter) {
    switch event {
    case .searching(let target):
      printer.show(.searching(target))
      show(phase: .connect, on: printer)
    case .connecting(let attempt):
      isLinkLost = false
      printer.show(.connecting(attempt: attempt))
      show(phase: .connect, on: printer)
    case .carrier(let kind):
      carrier = kind
      printer.show(.carrier(kind))
    case .channelAbandoned(let why): printer.show(.channelAbandoned(why))
    case .linkLost(let why, let confirmed):
      // A channel and then its link: one loss.
      if !isLinkLost {
        printer.show(.linkLost(why, object: last.object, confirmed: Int(clamping: confirmed)))
      }
      isLinkLost = true
    case .declined(let why): printer.show(.declined(why))
    case .accepted(let index, let name, let durable, let size):
      let durable = Int(clamping: durable)
      if heldBefore[index] == nil { heldBefore[index] = durable }
      if durable > 0 { printer.show(.goingOn(name, from: durable, of: Int(clamping: size))) }
    case .progress(let state):
      // Done is what the whole transfer is, at its end.
      if state.phase != .done { show(state, on: printer) }
    case .deviceNotRemembered(let error): printer.show(.warning(error))
    case .verified(let index, let name, let digest):
      printer.show(.verified(name, size: sizes.indices.contains(index) ? sizes[index] : 0, digest))
    }
  }

  /// The last word of a push that was verified.
  mutating func finish(_ report: PushReport, on printer: any EventPrinter) {
    var progress = progress(report.progress)
    progress.phase = .done
    progress.confirmedBytes = progress.totalBytes
    printer.show(progress)
  }

  private mutating func show(phase: TransferProgress.Phase, on printer: any EventPrinter) {
    last.phase = phase
    last.bytesPerSecond = nil
    last.timeRemaining = nil
    printer.show(last)
  }

  private mutating func show(_ state: ProgressState, on printer: any EventPrinter) {
    let index = state.objectIndex
    if state.phase == .transfer, codings[index] != state.coding {
      let isFirst = codings[index] == nil
      codings[index] = state.coding
      if !isFirst || base != nil || state.coding != .uncoded || state.codingShortfall != nil {
        printer.show(
          .coding(
            state.coding, of: state.objectName, base: base, shortfall: state.codingShortfall,
            insists: insists))
      }
    }
    last = progress(state)
    printer.show(last)
  }

  private func progress(_ state: ProgressState) -> TransferProgress {
    let index = min(max(0, state.objectIndex), sizes.count - 1)
    let before = sizes.prefix(index).reduce(0, +)
    var progress = TransferProgress(
      phase: TransferProgress.Phase(state.phase), object: names[index], objectIndex: index + 1,
      objectCount: names.count, totalBytes: sizes.reduce(0, +),
      confirmedBytes: before + min(Int(clamping: state.confirmedBytes), sizes[index]))
    progress.resumedFrom = heldBefore.values.reduce(0, +)
    progress.streamBytes = Int(clamping: state.streamBytes)
    progress.bytesPerSecond = state.bytesPerSecond
    progress.averageBytesPerSecond = state.averageBytesPerSecond
    if let rate = state.bytesPerSecond, rate > 0, state.phase == .transfer {
      progress.timeRemaining = .seconds(Double(progress.totalBytes - progress.confirmedBytes) / rate)
    }
    if let average = state.averageBytesPerSecond, let best = carrier.flatMap(ceiling), best > 0 {
      progress.ceilingRatio = average / best
    }
    progress.phaseTimes = [
      .connect: state.elapsed.connect, .prepare: state.elapsed.prepare, .transfer: state.elapsed.transfer,
      .verify: state.elapsed.verify,
    ].filter { $0.value >= .milliseconds(1) }
    return progress
  }
}

extension TransferProgress.Phase {
  init(_ phase: ProgressState.Phase) {
    switch phase {
    case .connect: self = .connect
    case .prepare: self = .prepare
    case .transfer: self = .transfer
    case .verify: self = .verify
    case .done: self = .done
    }
  }
}

extension PushOperation {
  /// Runs to the end and prints what happens on the way.
  func run(
    _ view: TransferView, on printer: any EventPrinter
  ) async throws(TransferError) -> PushReport {
    let events = events
    let listener = Task {
      var view = view
      for await event in events { view.show(event, on: printer) }
      return view
    }
    let result: Result<PushReport, TransferError>
    do throws(TransferError) {
      result = .success(try await run())
    } catch {
      result = .failure(error)
    }
    // The events end with the operation; what they tell comes before the last word.
    var last = await listener.value
    let report = try result.get()
    last.finish(report, on: printer)
    return report
  }
}
