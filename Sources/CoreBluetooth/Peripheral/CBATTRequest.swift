public import Foundation
internal import Radio
internal import Locking
internal import Synchronization

/// A read or a write of a central that waits for ``CBPeripheralManager/respond(to:withResult:)``.
// Sendable: `value` is behind a lock, the rest never changes.
open class CBATTRequest: NSObject, @unchecked Sendable {
  private let sender: CBCentral
  private let target: CBCharacteristic
  private let start: Int
  private let octets: PosixMutex<Data?>
  let ticket: RequestTicket

  init(central: CBCentral, characteristic: CBCharacteristic, offset: Int, value: Data?, ticket: RequestTicket)
  {
    sender = central
    target = characteristic
    start = offset
    octets = PosixMutex(value)
    self.ticket = ticket
    super.init()
  }

  /// Who asks.
  open var central: CBCentral { sender }

  /// What is read or written.
  open var characteristic: CBCharacteristic { target }

  /// Where in the value it starts.
  open var offset: Int { start }

  /// The octets to write; for a read nil: set it to the value from ``offset`` on, then respond.
  open var value: Data? {
    get { octets.withLock { $0 } }
    set { octets.withLock { $0 = newValue } }
  }
}

/// The one answer that the radio waits for, shared by the requests of one batch.
///
/// Where the program releases the last request unanswered, nobody can answer any more: the ticket then does, so that the peer does not wait for the
/// end of its transaction time.
final class RequestTicket: Sendable {
  /// What is asked.
  enum Kind: Sendable {
    case read
    case writes(needsResponse: Bool)
  }

  let kind: Kind
  private let id: ServerRequestID
  /// Weak: what a program holds must not keep the services and channels of a manager that is gone.
  private weak let client: (any PeripheralRadio)?
  private let log: CBLogHandler
  private let isAnswered = Atomic<Bool>(false)

  init(_ kind: Kind, id: ServerRequestID, client: any PeripheralRadio, log: CBLogHandler) {
    self.kind = kind
    self.id = id
    self.client = client
    self.log = log
  }

  deinit {
    switch kind {
    case .writes(needsResponse: false): _ = answer(nil, .success)
    case .read, .writes:
      if client != nil, answer(nil, .unlikelyError) {
        log.note("A request of a central was released without a response; it was refused.")
      }
    }
  }

  /// Whether this is a request of the client `other`.
  func isOf(_ other: any PeripheralRadio) -> Bool { client === other }

  /// Answers; false: it was answered before, and nothing happens.
  func answer(_ value: Data?, _ result: CBATTError.Code) -> Bool {
    guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else { return false }
    let failure =
      result == .success ? nil : ATTErrorCode(rawValue: UInt8(truncatingIfNeeded: result.rawValue))
    switch kind {
    case .read: client?.respond(toRead: id, with: failure.map { .failure($0) } ?? .success(value ?? Data()))
    case .writes: client?.respond(toWrites: id, with: failure.map { .failure($0) } ?? .success(()))
    }
    return true
  }
}
