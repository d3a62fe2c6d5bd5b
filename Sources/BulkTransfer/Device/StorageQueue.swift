internal import Dispatch

/// The requests of all lines to one storage, carried out one after another in the order in which they came.
///
/// The order between lines matters: a sender that is back offers its object while requests of its former carrier still wait, and the part
/// is free only after those. The storage works on a queue of its own: a slow disk keeps no message waiting, and can be called busy.
// Sendable: everything is touched on `queue` only, but for the worker of the current entry.
final class StorageQueue: @unchecked Sendable {
  // Sendable: the worker is touched on `medium` only, one entry after another, and the rest on `queue` only.
  private struct Entry: @unchecked Sendable {
    let request: StorageRequest
    let worker: StorageWorker
    let answer: (StorageReport) -> Void
  }

  /// A medium that works for longer is announced as busy at once.
  private static let moment = Duration.milliseconds(500)

  private let clock: any TransferClock
  private let queue: DispatchQueue
  private let medium = DispatchQueue(label: "BulkTransfer.storage")
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
    let entry = waiting.removeFirst()
    current = entry
    clock.async(on: medium) { [clock, queue] in
      let (report, busy) = entry.worker.perform(entry.request)
      clock.async(on: queue) { self.carriedOut(report, busy) }
    }
  }

  private func carriedOut(_ report: StorageReport?, _ busy: Duration) {
    guard busy > .zero, let report else { return finish(report) }
    if busy >= Self.moment { current?.answer(StorageReport(object: report.object, result: .busy(busy))) }
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
