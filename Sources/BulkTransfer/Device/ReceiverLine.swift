internal import Dispatch
internal import Foundation

/// One carrier of a receiver: its session, its place in the storage, its timer.
// Sendable: everything is touched on `queue` only.
final class ReceiverLine: @unchecked Sendable {
  /// Who is at the other end.
  let peer: UUID
  let kind: CarrierKind

  private var session: ReceiverSession
  private let storage: any ReceiverStorage
  private let worker: StorageWorker
  private let storageQueue: StorageQueue
  private let clock: any TransferClock
  private let send: (Data) -> Void
  private let tell: (ReceiverSession.Event) -> Void
  private let close: () -> Void
  private var timer: QueueTimer?
  private var isDraining = false

  /// Makes a line.
  ///
  /// - Parameters:
  ///   - send: sends a control message.
  ///   - tell: passes on what people may want to see.
  ///   - close: ends the carrier.
  init(
    peer: UUID, kind: CarrierKind, configuration: ReceiverConfiguration, storage: any ReceiverStorage,
    storageQueue: StorageQueue, clock: any TransferClock, queue: DispatchQueue,
    send: @escaping (Data) -> Void,
    tell: @escaping (ReceiverSession.Event) -> Void, close: @escaping () -> Void
  ) {
    self.peer = peer
    self.kind = kind
    self.storage = storage
    self.storageQueue = storageQueue
    self.clock = clock
    self.send = send
    self.tell = tell
    self.close = close
    worker = StorageWorker(storage)
    session = ReceiverSession(
      configuration: configuration, limits: StorageLimits(largestObject: 0, freeSpace: 0), now: clock.now)
    timer = QueueTimer(clock: clock, queue: queue) { [weak self] in self?.handle(.deadline) }
  }

  /// Whether a sender has a session here.
  var isActive: Bool { session.isActive }

  /// Takes a control message.
  func control(_ message: Data) {
    do throws(TransferError) {
      session.limits = try storage.limits()
    } catch {
      // Nothing can be taken then; the session says so to the sender.
      session.limits = StorageLimits(largestObject: session.limits.largestObject, freeSpace: 0)
    }
    handle(.control(message))
  }

  /// Passes an input to the session and does what it wants; may be called from within itself.
  func handle(_ input: ReceiverSession.Input) {
    session.handle(input, now: clock.now)
    guard !isDraining else { return }
    isDraining = true
    while let action = session.nextAction() { perform(action) }
    isDraining = false
    timer?.set(to: session.nextDeadline)
  }

  private func perform(_ action: ReceiverSession.Action) {
    switch action {
    case .sendControl(let message): send(message)
    case .storage(let request):
      // Held until it is answered: what was verified is made durable also where the carrier is gone.
      storageQueue.add(request, by: worker) { self.handle(.storage($0)) }
    case .event(let event): tell(event)
    case .closeCarrier: close()
    }
  }
}
