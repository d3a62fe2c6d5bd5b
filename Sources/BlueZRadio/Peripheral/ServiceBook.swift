internal import Radio

/// Which services a client wants, which of them bluetoothd has, and what to ask it for next.
///
/// A value: inputs in, steps out. Registrations go one after the other, so that handles are given in the order in which services were added. A
/// registration cannot be taken back before it was answered: bluetoothd would never answer it.
struct ServiceBook: Sendable {
  /// Names one registration, so that a service that comes again is another one.
  typealias Ticket = UInt64

  enum Step: Hashable, Sendable {
    case register(Ticket, LocalService)
    case unregister(Ticket)
    /// nil is success.
    case answer(LocalServiceID, RadioError?)
  }

  private struct Entry: Sendable {
    let ticket: Ticket
    let service: LocalService
    /// Taken back while its registration runs.
    var isUnwanted = false
  }

  private var waiting: [Entry] = []
  private var running: Entry?
  private var registered: [Entry] = []
  private var lastTicket: Ticket = 0

  /// Services that the client has and bluetoothd too, or will have.
  private var wanted: [LocalService] {
    (registered + [running].compactMap { $0 } + waiting).filter { !$0.isUnwanted }.map(\.service)
  }

  mutating func add(_ service: LocalService) -> [Step] {
    guard !wanted.contains(where: { $0.id == service.id }) else {
      return [
        .answer(
          service.id, RadioError(.invalidParameters, "service \(service.uuid) is already published"))
      ]
    }
    let ids = Set(service.characteristics.map(\.id))
    guard !wanted.contains(where: { $0.characteristics.contains { ids.contains($0.id) } }) else {
      return [
        .answer(
          service.id,
          RadioError(.invalidParameters, "a characteristic of service \(service.uuid) is already published"))
      ]
    }
    lastTicket += 1
    waiting.append(Entry(ticket: lastTicket, service: service))
    return next()
  }

  /// The answer to a registration.
  mutating func registered(_ ticket: Ticket, _ result: Result<Void, RadioError>) -> [Step] {
    guard let entry = running, entry.ticket == ticket else { return [] }
    running = nil
    var steps: [Step] = []
    switch result {
    case .success where entry.isUnwanted: steps.append(.unregister(ticket))
    case .success:
      registered.append(entry)
      steps.append(.answer(entry.service.id, nil))
    case .failure(let error):
      if !entry.isUnwanted { steps.append(.answer(entry.service.id, error)) }
    }
    return steps + next()
  }

  /// Takes a service back; one whose answer has not come gets ``RadioError/Code/cancelled``.
  mutating func remove(_ id: LocalServiceID) -> [Step] {
    if let index = registered.firstIndex(where: { $0.service.id == id }) {
      return [.unregister(registered.remove(at: index).ticket)]
    }
    if let index = waiting.firstIndex(where: { $0.service.id == id }) {
      waiting.remove(at: index)
      return [.answer(id, Self.takenBack)]
    }
    guard running?.service.id == id, running?.isUnwanted == false else { return [] }
    running?.isUnwanted = true
    return [.answer(id, Self.takenBack)]
  }

  mutating func removeAll() -> [Step] { wanted.map(\.id).flatMap { remove($0) } }

  /// bluetoothd has forgotten everything; who waited for an answer gets one.
  mutating func withdraw() -> [Step] {
    let unanswered = ([running].compactMap { $0 } + waiting).filter { !$0.isUnwanted }
    waiting = []
    running = nil
    registered = []
    return unanswered.map { .answer($0.service.id, .poweredDown) }
  }

  private mutating func next() -> [Step] {
    guard running == nil, !waiting.isEmpty else { return [] }
    let entry = waiting.removeFirst()
    running = entry
    return [.register(entry.ticket, entry.service)]
  }

  private static let takenBack = RadioError(.cancelled, "the service was removed before it was published")
}

extension RadioError {
  /// The answer to a command that met an adapter which is not on.
  static let poweredDown = RadioError(.notPoweredOn, "Bluetooth is not on")
}
