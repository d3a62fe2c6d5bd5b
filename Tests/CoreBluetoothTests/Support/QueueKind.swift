import Testing
import Dispatch

/// The queues that a manager may be given.
enum QueueKind: CaseIterable, Sendable, CustomTestStringConvertible {
  case main, serial, concurrent

  var testDescription: String { "\(self) queue" }
}

/// A manager's queue, and how a test waits until everything that was put on it has run.
struct TestQueue: Sendable {
  private static let key = DispatchSpecificKey<Bool>()

  let queue: DispatchQueue
  let kind: QueueKind

  init(_ kind: QueueKind) {
    self.kind = kind
    switch kind {
    case .main: queue = .main
    case .serial: queue = DispatchQueue(label: "manager")
    case .concurrent: queue = DispatchQueue(label: "manager", attributes: .concurrent)
    }
    queue.setSpecific(key: Self.key, value: true)
  }

  /// What a program would give to a manager.
  var argument: DispatchQueue? { kind == .main ? nil : queue }

  /// Whether the caller runs on a queue of this kind.
  static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

  /// Returns after what was put on the queue before has run, and what that has put there.
  func drain() async {
    for _ in 0..<4 {
      await withCheckedContinuation { continuation in
        queue.async(flags: .barrier) { continuation.resume() }
      }
    }
  }
}
