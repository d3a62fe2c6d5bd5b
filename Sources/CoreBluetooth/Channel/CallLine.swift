internal import Locking
internal import Radio

/// Calls that wait at one direction of a channel: answered one after the other, in the order in which they were made.
///
/// From an answer until its call has returned, an activity of the clock is held.
final class CallLine<Request: Sendable, Answer: Sendable>: Sendable {
  private typealias Continuation = CheckedContinuation<Answer, any Error>

  private struct Call: Sendable {
    let id: UInt64
    var request: Request
    let continuation: Continuation
  }

  private struct State: Sendable {
    var calls: [Call] = []
    var lastID: UInt64 = 0
  }

  private let state = PosixMutex(State())
  private let clock: any RadioClock
  private let attempt: @Sendable (inout Request) -> Result<Answer, any Error>?
  private let whenGivenUp: @Sendable (Request) -> Void

  /// Makes a line whose first call is tried by `attempt` until that has an answer.
  ///
  /// `attempt` may change the request, to remember how far it came. `whenGivenUp` is told of a request that was cancelled. Both are called one at a time.
  init(
    clock: any RadioClock, attempt: @escaping @Sendable (inout Request) -> Result<Answer, any Error>?,
    whenGivenUp: @escaping @Sendable (Request) -> Void = { _ in }
  ) {
    self.clock = clock
    self.attempt = attempt
    self.whenGivenUp = whenGivenUp
  }

  /// How many calls wait.
  var count: Int { state.withLock { $0.calls.count } }

  /// Waits for an answer, behind the calls that were made before.
  func call(_ request: Request) async throws -> Answer {
    try Task.checkCancellation()
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    defer { clock.endActivity() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock { $0.calls.append(Call(id: id, request: request, continuation: continuation)) }
        advance()
        // A cancellation that came before the call was in line has not found it.
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  /// Answers the calls that can be answered now.
  func advance() {
    while let (continuation, answer) = nextAnswer() { resume(continuation, answer) }
  }

  private func nextAnswer() -> (Continuation, Result<Answer, any Error>)? {
    state.withLock { state in
      guard !state.calls.isEmpty, let answer = attempt(&state.calls[0].request) else { return nil }
      return (state.calls.removeFirst().continuation, answer)
    }
  }

  private func cancel(_ id: UInt64) {
    let call = state.withLock { state -> Call? in
      guard let i = state.calls.firstIndex(where: { $0.id == id }) else { return nil }
      whenGivenUp(state.calls[i].request)
      return state.calls.remove(at: i)
    }
    guard let call else { return }
    resume(call.continuation, .failure(CancellationError()))
    // Those behind it may have waited for it alone.
    advance()
  }

  private func resume(_ continuation: Continuation, _ answer: Result<Answer, any Error>) {
    clock.beginActivity()
    continuation.resume(with: answer)
  }
}
