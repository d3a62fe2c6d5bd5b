import Dispatch
import Foundation
import Locking
import Testing

@testable import BulkTransfer

@Suite("The queue of a receiver's storage", .timeLimit(.minutes(30)))
struct StorageQueueTests {
  /// A storage that takes its time to open an object.
  private final class SlowStorage: ReceiverStorage {
    let flash = SimulatedFlash()
    let hasBegun = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)

    func limits() throws(TransferError) -> StorageLimits { try flash.limits() }

    func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening {
      hasBegun.signal()
      mayEnd.wait()
      return try flash.open(object)
    }
  }

  private static func open(_ number: UInt32, _ name: String) throws -> StorageRequest {
    let object = ReceivedObject(
      sha256: try SHA256Hasher.digest(of: Data(name.utf8)), size: UInt64(name.utf8.count), name: name)
    return StorageRequest(object: number, operation: .open(object, discarding: false))
  }

  @Test("messages are answered while a medium works")
  func slowMedium() throws {
    let queue = DispatchQueue(label: "receiver")
    let storage = SlowStorage()
    let requests = StorageQueue(clock: SystemClock(), queue: queue)
    let isAnswered = DispatchSemaphore(value: 0)
    let request = try Self.open(1, "a")
    queue.async { requests.add(request, by: StorageWorker(storage)) { _ in isAnswered.signal() } }
    storage.hasBegun.wait()
    // What a message needs: its turn on the receiver's queue.
    queue.sync {}
    storage.mayEnd.signal()
    isAnswered.wait()
  }

  @Test("a part is opened after its former user has closed it, and idle is when all is done")
  func order() throws {
    let queue = DispatchQueue(label: "receiver")
    let flash = SimulatedFlash(
      profile: SimulatedFlash.Profile(eraseTime: .milliseconds(5), erasesAtOpen: true))
    let requests = StorageQueue(clock: SystemClock(), queue: queue)
    let isIdle = DispatchSemaphore(value: 0)
    let open = try Self.open(1, "a")
    let results = PosixMutex<[StorageReport.Result]>([])
    queue.async {
      let (former, present) = (StorageWorker(flash), StorageWorker(flash))
      func add(_ request: StorageRequest, by worker: StorageWorker) {
        requests.add(request, by: worker) { report in
          if case .busy = report.result { return }
          results.withLock { $0.append(report.result) }
        }
      }
      add(open, by: former)
      add(StorageRequest(object: 1, operation: .write(Data("a".utf8), at: 0)), by: former)
      add(StorageRequest(object: 1, operation: .close), by: former)
      add(open, by: present)
      requests.whenIdle { isIdle.signal() }
    }
    isIdle.wait()
    #expect(
      results.withLock { $0 } == [.opened(durable: 0), .wrote(through: 1), .opened(durable: 0)])
  }
}
