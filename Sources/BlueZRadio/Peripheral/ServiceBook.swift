internal import Radio

/// Which services a client wants, which of them bluetoothd has, and what to ask it for next.
///
/// A value: inputs in, steps out. Each registration is an application at the daemon, with one service as a rule. A service that includes others
/// has to be in one application with them, so these are taken back and registered anew together with it; whatever is taken out of such an application
/// leaves the rest to be registered anew. Registrations go one after the other, so that handles are given in the order in which services were added, and a
/// registration cannot be taken back before it was answered: bluetoothd would never answer it.
struct ServiceBook: Sendable {
  /// Names one registration, so that a service that comes again is another one.
  typealias Ticket = UInt64

  enum Step: Hashable, Sendable {
    case register(Ticket, [LocalService])
    case unregister(Ticket)
    /// The same, where services of it come again in another registration: whoever has subscribed has to do so again.
    case move(Ticket)
    /// nil is success.
    case answer(LocalServiceID, RadioError?)
    /// A service that the daemon had before is not there any more.
    case lost(LocalServiceID, RadioError)
  }

  private struct Entry: Sendable {
    let ticket: Ticket
    /// Those that are included come before those that include them.
    var services: [LocalService]
    /// The service whose answer is due.
    var new: LocalServiceID?
    /// What the registration takes the place of, application by application.
    var former: [[LocalService]] = []
    /// Taken back while the registration runs.
    var unwanted: Set<LocalServiceID> = []

    func has(_ id: LocalServiceID) -> Bool { services.contains { $0.id == id } }
  }

  private var waiting: [Entry] = []
  private var running: Entry?
  private var registered: [Entry] = []
  private var lastTicket: Ticket = 0

  /// Services that the client has and bluetoothd too, or will have.
  private var wanted: [LocalService] {
    (registered + [running].compactMap { $0 } + waiting).flatMap { entry in
      entry.services.filter { !entry.unwanted.contains($0.id) }
    }
  }

  private mutating func entry(_ services: [LocalService], new: LocalServiceID? = nil) -> Entry {
    lastTicket += 1
    return Entry(ticket: lastTicket, services: services, new: new)
  }

  mutating func add(_ service: LocalService) -> [Step] {
    if let text = obstacle(service) {
      return [.answer(service.id, RadioError(.invalidParameters, text))]
    }
    waiting.append(entry([service], new: service.id))
    return next()
  }

  /// Why a service cannot be added.
  private func obstacle(_ service: LocalService) -> String? {
    let wanted = wanted
    guard !wanted.contains(where: { $0.id == service.id }) else {
      return "service \(service.uuid) is already published"
    }
    let ids = Set(service.characteristics.map(\.id))
    guard !wanted.contains(where: { $0.characteristics.contains { ids.contains($0.id) } }) else {
      return "a characteristic of service \(service.uuid) is already published"
    }
    guard Set(service.includedServices).isSubset(of: wanted.map(\.id)) else {
      return Self.missingInclude(service)
    }
    return nil
  }

  private static func missingInclude(_ service: LocalService) -> String {
    "service \(service.uuid) includes one that was not published before it"
  }

  /// The answer to a registration.
  mutating func registered(_ ticket: Ticket, _ result: Result<Void, RadioError>) -> [Step] {
    guard let entry = running, entry.ticket == ticket else { return [] }
    running = nil
    let new = entry.new.flatMap { entry.unwanted.contains($0) ? nil : $0 }
    var steps: [Step] = []
    switch result {
    case .success where entry.unwanted.isEmpty:
      registered.append(
        Entry(ticket: entry.ticket, services: entry.services))
      if let new { steps.append(.answer(new, nil)) }
    case .success:
      steps += takeApart(entry, without: entry.unwanted, new: new)
    case .failure(let error):
      if let new { steps.append(.answer(new, error)) }
      if entry.former.isEmpty, entry.new == nil {
        steps += entry.services.filter { !entry.unwanted.contains($0.id) }.map { .lost($0.id, error) }
      }
      for services in entry.former.reversed() { registerAgain(services, without: entry.unwanted, new: nil) }
    }
    return steps + next()
  }

  /// Takes services out of an application; the others are registered anew.
  private mutating func takeApart(_ entry: Entry, without ids: Set<LocalServiceID>, new: LocalServiceID?)
    -> [Step]
  {
    let isLast = entry.services.allSatisfy { ids.contains($0.id) }
    registerAgain(entry.services, without: ids, new: new)
    return [isLast ? .unregister(entry.ticket) : .move(entry.ticket)]
  }

  private mutating func registerAgain(
    _ services: [LocalService], without ids: Set<LocalServiceID>, new: LocalServiceID?
  ) {
    var rest = services.filter { !ids.contains($0.id) }
    guard !rest.isEmpty else { return }
    for index in rest.indices { rest[index].includedServices.removeAll { ids.contains($0) } }
    waiting.insert(entry(rest, new: new), at: 0)
  }

  /// Takes a service back; one whose answer has not come gets ``RadioError/Code/cancelled``.
  mutating func remove(_ id: LocalServiceID) -> [Step] {
    if let index = registered.firstIndex(where: { $0.has(id) }) {
      return takeApart(registered.remove(at: index), without: [id], new: nil) + next()
    }
    if let index = waiting.firstIndex(where: { $0.has(id) }) {
      let isNew = waiting[index].new == id
      waiting[index].services.removeAll { $0.id == id }
      if waiting[index].services.isEmpty { waiting.remove(at: index) }
      return isNew ? [.answer(id, Self.takenBack)] : []
    }
    guard let entry = running, entry.has(id), !entry.unwanted.contains(id) else { return [] }
    running?.unwanted.insert(id)
    return entry.new == id ? [.answer(id, Self.takenBack)] : []
  }

  mutating func removeAll() -> [Step] {
    let unanswered = unanswered
    defer {
      registered = []
      waiting = []
      if let entry = running { running?.unwanted = Set(entry.services.map(\.id)) }
    }
    return registered.map { .unregister($0.ticket) } + unanswered.map { .answer($0, Self.takenBack) }
  }

  /// bluetoothd has forgotten everything; who waited for an answer gets one.
  mutating func withdraw() -> [Step] {
    defer {
      waiting = []
      running = nil
      registered = []
    }
    return unanswered.map { .answer($0, .poweredDown) }
  }

  private var unanswered: [LocalServiceID] {
    ([running].compactMap { $0 } + waiting).compactMap { entry in
      entry.new.flatMap { entry.unwanted.contains($0) ? nil : $0 }
    }
  }

  private mutating func next() -> [Step] {
    var steps: [Step] = []
    while running == nil, !waiting.isEmpty {
      var entry = waiting.removeFirst()
      let others = Set(entry.services.flatMap(\.includedServices)).subtracting(entry.services.map(\.id))
      let hosts = registered.filter { host in others.contains { host.has($0) } }
      guard others.allSatisfy({ id in hosts.contains { $0.has(id) } }) else {
        // It was taken back meanwhile, or the daemon did not take it.
        if let new = entry.new, let service = entry.services.first {
          steps.append(.answer(new, RadioError(.invalidParameters, Self.missingInclude(service))))
        }
        continue
      }
      registered.removeAll { host in hosts.contains { $0.ticket == host.ticket } }
      entry.former = hosts.map(\.services)
      entry.services = entry.former.flatMap { $0 } + entry.services
      running = entry
      steps += hosts.map { .move($0.ticket) } + [.register(entry.ticket, entry.services)]
    }
    return steps
  }

  private static let takenBack = RadioError(.cancelled, "the service was removed before it was published")
}

extension RadioError {
  /// The answer to a command that met an adapter which is not on.
  static let poweredDown = RadioError(.notPoweredOn, "Bluetooth is not on")
}
