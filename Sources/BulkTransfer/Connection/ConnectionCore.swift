internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// What a ``DeviceConnection`` keeps on its queue: the driver, and who waits.
// Sendable: everything is touched on the queue only.
final class ConnectionCore: ConnectionClient, @unchecked Sendable {
  typealias Outcome = Result<UUID, TransferError>

  /// One call that waits for the connection. It may be cancelled before it has begun.
  // Sendable: touched on the queue only.
  final class Attempt: @unchecked Sendable {
    fileprivate var isCancelled = false
  }

  let driver: ConnectionDriver
  private let onEvent: @Sendable (PeripheralEvent) -> Void
  private var waiters: [(attempt: Attempt, continuation: CheckedContinuation<Outcome, Never>)] = []
  private var listeners: [UInt64: AsyncStream<ConnectionMachine.State>.Continuation] = [:]
  /// The connection has been ready since it was wanted, and is to live on.
  private var isKept = false
  private var lastListener: UInt64 = 0
  private let clock: any TransferClock

  init(
    _ setup: ConnectionDriver.Setup, clock: any TransferClock, queue: DispatchQueue,
    onEvent: @escaping @Sendable (PeripheralEvent) -> Void
  ) {
    self.onEvent = onEvent
    self.clock = clock
    driver = ConnectionDriver(setup, clock: clock, queue: queue)
    driver.client = self
  }

  func add(_ listener: AsyncStream<ConnectionMachine.State>.Continuation) {
    lastListener += 1
    let number = lastListener
    listeners[number] = listener
    listener.onTermination = { [weak self, clock, queue = driver.queue] _ in
      clock.async(on: queue) { [weak self] in self?.listeners[number] = nil }
    }
    listener.yield(driver.state)
  }

  func connect(_ attempt: Attempt, _ continuation: CheckedContinuation<Outcome, Never>) {
    if attempt.isCancelled { return continuation.resume(returning: .failure(.connectionCancelled)) }
    if case .ready(let id) = driver.state { return continuation.resume(returning: .success(id)) }
    waiters.append((attempt, continuation))
    driver.connect()
  }

  func cancel(_ attempt: Attempt) {
    attempt.isCancelled = true
    guard let place = waiters.firstIndex(where: { $0.attempt === attempt }) else { return }
    waiters.remove(at: place).continuation.resume(returning: .failure(.connectionCancelled))
    guard waiters.isEmpty, !isKept else { return }
    driver.handle(.disconnect)
  }

  func use<Result>(_ body: (CBPeripheral) throws -> Result) -> Swift.Result<Result, any Error> {
    guard driver.state.isUsable, let peripheral = driver.peripheral else {
      return .failure(
        TransferError(
          .disconnected, "there is no link to \(driver.setup.target) at the moment", isRetriable: true))
    }
    return Swift.Result { try body(peripheral) }
  }

  func close() {
    driver.stop()
    tell(.failure(.connectionCancelled))
    for listener in listeners.values { listener.finish() }
    listeners = [:]
  }

  private func tell(_ outcome: Outcome) {
    let waiting = waiters
    waiters = []
    for waiter in waiting { waiter.continuation.resume(returning: outcome) }
  }

  // MARK: ConnectionClient

  func connectionEnded(_ why: String) {}

  func connectionEntered(_ state: ConnectionMachine.State) {
    for listener in listeners.values { listener.yield(state) }
    switch state {
    case .ready(let id):
      isKept = true
      tell(.success(id))
    case .failed(let error):
      isKept = false
      tell(.failure(error))
    case .idle:
      isKept = false
      tell(.failure(.connectionCancelled))
    default: break
    }
  }

  func connectionTold(_ event: PeripheralEvent) { onEvent(event) }

  func connectionMemoryFailed(_ error: TransferError) { onEvent(.notRemembered(error)) }
}

extension TransferError {
  /// The user of a connection has ended the attempt to make it.
  static var connectionCancelled: TransferError {
    TransferError(.cancelled, "the attempt to connect was ended", isRetriable: true)
  }
}
