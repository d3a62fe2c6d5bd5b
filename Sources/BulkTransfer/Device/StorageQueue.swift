internal import Dispatch

/// The requests of all lines to one storage, carried out one after another in the order in which they came.
///
/// The order between lines matters: a sender that is back offers its object while requests of its former carrier still wait, and the part
/// is free only after those. Each request has a turn of its own on the queue, so that messages are answered between them.
// Sendable: everything is touched on `queue` only.
final class StorageQueue: @unchecked Sendable {
  private struct Entry {
    let request: StorageRequest
    let worker: StorageWorker
    let answer: (StorageReport) -> Void
  }

  /// A medium that works for longer is announced as busy at once.
  private static let moment = Duration.milliseconds(500)

  private let clock: any TransferClock
  private let queue: DispatchQueue
  private var waiting: [Entry] = []
  private var current: Entry?
  private var mediumTimer: TransferTimer?
  private var idleBlock: (() -> Void)?

  /// Makes a queue of requests that lives on `queue`.
  init(clock: any TransferClock, queue: DispatchQueue) {
    self.clock = clock
    self.queue = queue
  }

  /// Adds a request; `answer` is called for each report of it.
  func add(_ request: StorageRequest, by worker: StorageWorker, answer: @escaping (StorageReport) -> Void) {
    waiting.append(Entry(request: request, worker: worker, answer: answer))
    goOn()
  }

  /// Calls `block` once nothing waits any more, and not before whoever calls this has returned.
  func whenIdle(_ block: @escaping () -> Void) {
    idleBlock = block
    clock.async(on: queue) { self.goOn() }
  }

  private func goOn() {
    guard current == nil else { return }
    guard !waiting.isEmpty else {
      let block = idleBlock
      idleBlock = nil
      block?()
      return
    }
    current = waiting.removeFirst()
    clock.async(on: queue) { self.carryOut() }
  }

  private func carryOut() {
    guard let entry = current else { return }
    let (report, busy) = entry.worker.perform(entry.request)
    guard busy > .zero, let report else { return finish(report) }
    if busy >= Self.moment { entry.answer(StorageReport(object: report.object, result: .busy(busy))) }
    mediumTimer = clock.schedule(after: busy) { [clock, queue] in
      clock.async(on: queue) { self.finish(report) }
    }
  }

  private func finish(_ report: StorageReport?) {
    let entry = current
    current = nil
    mediumTimer = nil
    if let report { entry?.answer(report) }
    goOn()
  }
}
