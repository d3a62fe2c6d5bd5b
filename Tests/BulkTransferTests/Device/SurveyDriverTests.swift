import Dispatch
import Foundation
import Locking
import Testing

@testable import BulkTransfer

@Suite("A survey", .timeLimit(.minutes(30)))
struct SurveyDriverTests {
  private let queue = DispatchQueue(label: "survey")

  private func driver() -> SurveyDriver {
    SurveyDriver(UUID(), stepLimit: .seconds(10), clock: SystemClock(), queue: queue)
  }

  /// Begins, and says what it has come to once the queue has run dry.
  private func begin(_ driver: SurveyDriver) -> [TransferError.Code?] {
    let outcomes = PosixMutex([SurveyDriver.Outcome]())
    driver.begin({ outcome in outcomes.withLock { $0.append(outcome) } }) { _ in }
    queue.sync {}
    return outcomes.withLock { outcomes in
      outcomes.map { outcome -> TransferError.Code? in
        if case .failure(let error) = outcome { error.code } else { nil }
      }
    }
  }

  @Test("what has ended before it begins does not begin: the task was cancelled, or the link is gone")
  func endedBefore() {
    let cancelled = driver()
    cancelled.cancel()
    #expect(begin(cancelled) == [.cancelled])
    let cut = driver()
    cut.linkEnded()
    cut.cancel()
    #expect(begin(cut) == [.disconnected], "the first reason counts")
  }

  @Test("the first end counts, and is told once")
  func endsOnce() {
    let driver = driver()
    let outcomes = PosixMutex([SurveyDriver.Outcome]())
    driver.begin({ outcome in outcomes.withLock { $0.append(outcome) } }) { _ in }
    queue.sync {}
    #expect(outcomes.withLock { $0.isEmpty })
    driver.cancel()
    driver.linkEnded()
    driver.cancel()
    queue.sync {}
    #expect(outcomes.withLock { $0.count } == 1)
    guard case .failure(let error)? = outcomes.withLock({ $0.first }) else {
      Issue.record("it did not end")
      return
    }
    #expect(error.code == .cancelled)
  }
}
