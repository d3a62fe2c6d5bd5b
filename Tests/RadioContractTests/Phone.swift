import Dispatch
import Locking
import Foundation
import Radio
import Testing

/// A central that remembers every event and can be asked in the style of a script.
final class Phone: Sendable {
  let world: any RadioWorld
  let radio: any Radio
  private let queue: DispatchQueue
  private let events = PosixMutex<[CentralEvent]>([])
  private let client: PosixMutex<(any CentralRadio)?>
  private let inbox: EventInbox<CentralEvent>
  private let lastRequest = PosixMutex<UInt64>(0)
  private let reaction = PosixMutex(Reaction())

  // A closure must not stand in a mutex by itself: each access through the generic would wrap it once more.
  private struct Reaction {
    var body: (@Sendable (CentralEvent, any CentralRadio) -> Void)?
  }

  static let patience = Duration.seconds(120)

  init(_ world: any RadioWorld, name: String = "phone") {
    self.world = world
    radio = world.makeRadio(name)
    let queue = DispatchQueue(label: name)
    self.queue = queue
    client = PosixMutex(nil)
    let relay = Relay<CentralEvent>()
    inbox = EventInbox(queue: queue, clock: radio.clock) { relay.handle($0) }
    relay.set { [weak self] in self?.take($0) }
    client.withLock { [inbox] in $0 = radio.makeCentral { inbox.post($0) } }
    // Commands are ignored before.
    _ = world.wait(within: Self.patience) { client.withLock { $0?.adapterState == .poweredOn } }
  }

  deinit { inbox.close() }

  /// The radio's client.
  var central: any CentralRadio {
    get throws { try #require(client.withLock { $0 }) }
  }

  /// Lets go of the radio's client.
  func release() { client.withLock { $0 = nil } }

  /// Everything that has happened, oldest first.
  var log: [CentralEvent] { events.withLock { $0 } }

  /// Does something on the phone's queue at each event.
  func react(_ body: @escaping @Sendable (CentralEvent, any CentralRadio) -> Void) {
    reaction.withLock { $0.body = body }
  }

  private func take(_ event: CentralEvent) {
    events.withLock { $0.append(event) }
    if let react = reaction.withLock({ $0.body }), let client = client.withLock({ $0 }) {
      react(event, client)
    }
    world.noteProgress()
  }

  // MARK: Script

  /// Waits until the log has what `find` looks for.
  @discardableResult
  func expect<Found: Sendable>(
    _ what: String, after start: Int = 0, within limit: Duration = patience,
    sourceLocation: SourceLocation = #_sourceLocation, _ find: (CentralEvent) -> Found?
  ) throws -> Found {
    _ = world.wait(within: limit) { log.dropFirst(start).contains { find($0) != nil } }
    let found = log.dropFirst(start).compactMap { find($0) }.first
    return try #require(
      found, "\(what) did not happen; the log is \(summary)", sourceLocation: sourceLocation)
  }

  private var summary: String { log.map(\.kind).joined(separator: ", ") }

  /// Scans until a device that offers `service` is seen.
  func find(_ service: BluetoothUUID) throws -> PeerID {
    try central.startScan(ScanFilter(services: [service]))
    defer { try? central.stopScan() }
    return try expect("sighting") { event in
      if case .discovered(let sighting) = event { sighting.peer } else { nil }
    }
  }

  /// Connects and waits for the link.
  func connect(_ peer: PeerID) throws {
    let start = log.count
    try central.connect(peer)
    try expect("connected", after: start) { event in
      if case .connected(peer, _) = event { true } else { nil }
    }
  }

  /// Sends a request without waiting.
  func send(_ request: GATTRequest, to peer: PeerID) throws -> RequestID {
    let id = RequestID(
      lastRequest.withLock {
        $0 += 1
        return $0
      })
    try central.request(request, of: peer, id: id)
    return id
  }

  /// Waits for the answer to a request.
  func answer(
    _ id: RequestID, within limit: Duration = patience, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Result<GATTReply, GATTFailure> {
    try expect("answer to \(id.rawValue)", within: limit, sourceLocation: sourceLocation) { event in
      if case .completed(id, _, let result) = event { result } else { nil }
    }
  }

  /// Sends a request and waits for a good answer.
  @discardableResult
  func ask(
    _ request: GATTRequest, of peer: PeerID, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> GATTReply {
    try answer(send(request, to: peer), sourceLocation: sourceLocation).get()
  }

  func write(_ value: Data, to handle: AttributeHandle, of peer: PeerID) throws -> Result<
    GATTReply, GATTFailure
  > {
    try answer(send(.write(handle, value), to: peer))
  }

  func read(_ handle: AttributeHandle, of peer: PeerID) throws -> Data {
    guard case .value(let value) = try ask(.read(handle), of: peer) else { throw Unexpected() }
    return value
  }

  /// Opens a channel and waits for it.
  func open(_ psm: PSM, of peer: PeerID) throws -> any RadioChannel {
    let id = RequestID(
      lastRequest.withLock {
        $0 += 1
        return $0
      })
    try central.openChannel(psm: psm, of: peer, id: id)
    guard case .channel(let channel) = try answer(id).get() else { throw Unexpected() }
    return channel
  }

  /// Finds a characteristic by discovery.
  func discover(_ service: BluetoothUUID, _ characteristic: BluetoothUUID, of peer: PeerID) throws
    -> RemoteCharacteristic
  {
    guard case .services(let services) = try ask(.discoverServices([service]), of: peer) else {
      throw Unexpected()
    }
    let found = try #require(services.first { $0.uuid == service })
    guard case .characteristics(let all) = try ask(.discoverCharacteristics(of: found, nil), of: peer) else {
      throw Unexpected()
    }
    return try #require(all.first { $0.uuid == characteristic })
  }

  /// Waits for the end of a link or of the wish for one, and returns why.
  func expectDisconnection(
    of peer: PeerID, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RadioError? {
    let end = try expect("disconnection", sourceLocation: sourceLocation) { event in
      if case .disconnected(peer, let error, _) = event {
        Result<RadioError?, Never>.success(error)
      } else {
        nil
      }
    }
    return end.get()
  }

  /// Values of all notifications and indications.
  var notifiedValues: [Data] {
    log.compactMap { if case .notified(_, _, let value) = $0 { value } else { nil } }
  }

  /// Waits until the MTU exchange is over and returns the ATT MTU.
  func settledMTU(of peer: PeerID) throws -> Int {
    let radio = try central
    _ = world.wait(within: Self.patience) { (radio.attMTU(of: peer) ?? 0) > 23 }
    return try #require(radio.attMTU(of: peer))
  }
}

/// An answer of another kind than the request's.
struct Unexpected: Error {}

/// Passes events to a handler that is known later.
final class Relay<Event: Sendable>: Sendable {
  // A closure must not stand in a mutex by itself: each access through the generic would wrap it once more.
  private struct State {
    var handler: (@Sendable (Event) -> Void)?
  }

  private let state = PosixMutex(State())

  func set(_ new: @escaping @Sendable (Event) -> Void) { state.withLock { $0.handler = new } }

  func handle(_ event: Event) { state.withLock { $0.handler }?(event) }
}

extension CentralEvent {
  /// The name of the event's case.
  var kind: String { String(String(describing: self).prefix { $0 != "(" }) }
}
