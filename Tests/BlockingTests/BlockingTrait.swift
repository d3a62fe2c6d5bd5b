internal import Foundation
internal import Locking
public import Testing

/// For tests that wait by blocking their thread. The few threads that Swift has for tasks stay free for tests that suspend: each piece of such a test runs on
/// a thread of its own, and only so many of them run at a time as the machine has processors.
public struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
  public var isRecursive: Bool { true }

  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    await Turnstile.shared.enter()
    defer { Turnstile.shared.leave() }
    try await withTaskExecutorPreference(OwnThreads.shared) { try await function() }
  }
}

extension Trait where Self == BlockingTrait {
  /// Blocks its thread while it waits.
  public static var blocking: Self { Self() }
}

/// Runs each job on a new thread, so that none waits for a thread that another blocks.
private final class OwnThreads: TaskExecutor {
  static let shared = OwnThreads()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Thread.detachNewThread { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Lets a number of tasks in at a time, first come, first served.
private final class Turnstile: Sendable {
  static let shared = Turnstile(ProcessInfo.processInfo.activeProcessorCount)

  private struct State {
    var room: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: PosixMutex<State>

  init(_ room: Int) { state = PosixMutex(State(room: max(room, 1))) }

  func enter() async {
    await withCheckedContinuation { continuation in
      let isIn = state.withLock { state in
        guard state.room > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.room -= 1
        return true
      }
      if isIn { continuation.resume() }
    }
  }

  func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.room += 1
      return nil
    }
    next?.resume()
  }
}
