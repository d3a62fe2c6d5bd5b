internal import DBus
internal import Foundation
internal import Radio

/// Requests: one at a time, their replies in order.
extension LinkSession {
  func ask(
    _ request: Request, _ id: RequestID?, _ client: CentralClient?, _ place: WriteGate.Place? = nil
  ) {
    operations.append(
      Operation(request: request, id: id, client: client, place: takePlace(place, of: request)))
    goOn()
  }

  /// Begins the next operation if it can be.
  func goOn() {
    guard !isOver else { return }
    while isResolved, let operation = operations.next(now: host.clock.now) { start(operation) }
  }

  private func start(_ operation: Operation) {
    guard let place = operation.place else { return begin(operation) }
    holdBack(place) { [weak self] in self?.begin(operation) }
  }

  private func begin(_ operation: Operation) {
    refresh()
    switch operation.request {
    case .probe(let handle): probe(besides: handle)
    case .gatt(let request): start(request, operation)
    }
  }

  private func start(_ request: GATTRequest, _ operation: Operation) {
    switch request {
    case .discoverServices(let wanted):
      let services = database.primaryServices(wanted)
      finish(.success(.services(services)))
      noteServices(services)
    case .discoverIncludedServices(let service, let wanted):
      finish(found(database.includedServices(of: service, wanted).map { .services($0) }))
    case .discoverCharacteristics(let service, let wanted):
      finish(found(database.characteristics(of: service, wanted).map { .characteristics($0) }))
    case .discoverDescriptors(let characteristic):
      finish(found(database.descriptors(of: characteristic).map { .descriptors($0) }))
    case .read(let handle): read(handle)
    case .write(let handle, let value): write(value, handle)
    case .setNotify(let characteristic, let mode):
      setNotify(characteristic, mode, operation)
    case .readRSSI: readRSSI()
    }
  }

  private func found(_ reply: GATTReply?) -> Result<GATTReply, GATTFailure> {
    reply.map { .success($0) } ?? .failure(.att(.invalidHandle))
  }

  /// Ends the running operation and begins the next.
  func finish(_ result: Result<GATTReply, GATTFailure>) {
    guard !isOver, let operation = operations.running else { return }
    operations.finish()
    operation.place.map { gate.pass($0) }
    if let client = operation.client, let id = operation.id, users.contains(where: { $0 === client }) {
      client.post(.completed(id, peer, result))
    }
    // Not from here: what is answered at once would go deeper and deeper.
    host.async { [weak self] in self?.goOn() }
  }

  // MARK: Calls of the daemon

  /// Where an attribute is at the daemon.
  private func place(of handle: AttributeHandle) -> (path: ObjectPath, interface: String)? {
    if let characteristic = database.characteristic(handle) {
      return (characteristic.path, BlueZ.gattCharacteristic)
    }
    return database.descriptor(handle).map { ($0.path, BlueZ.gattDescriptor) }
  }

  /// Calls a method for the running operation. What comes of it is told once: where the daemon is busy, or the link has to be
  /// made secure, the call is made again.
  func perform(
    _ place: (path: ObjectPath, interface: String), _ member: String, _ body: [DBusValue],
    isRequest: Bool = true, completion: @escaping @Sendable (Result<DBusMessage, Verdict>) -> Void
  ) {
    guard !isOver else { return }
    coverage = isRequest ? gate.beginEvidence() : nil
    host.call(place.path, place.interface, member, body, timeLimit: Self.operationLimit) {
      [weak self] result in
      guard let self, !isOver else { return }
      switch result {
      case .success(let reply):
        if isRequest { settleEvidence(isAnswer: true) }
        completion(.success(reply))
      case .failure(let error):
        let verdict = Verdict(error)
        if isRequest { settleEvidence(isAnswer: verdict.isAnswer) }
        retry(verdict, place, member, body, isRequest, completion)
      }
    }
    passOnceWithDaemon()
  }

  func settleEvidence(isAnswer: Bool) {
    let ready = gate.endEvidence(isAnswer ? coverage : nil)
    coverage = nil
    for id in ready { users.first { $0.id == id }?.post(.readyToWrite(peer)) }
  }

  private func retry(
    _ verdict: Verdict, _ place: (path: ObjectPath, interface: String), _ member: String,
    _ body: [DBusValue], _ isRequest: Bool,
    _ completion: @escaping @Sendable (Result<DBusMessage, Verdict>) -> Void
  ) {
    let again: @Sendable () -> Void = { [weak self] in
      self?.perform(place, member, body, isRequest: isRequest, completion: completion)
    }
    switch verdict {
    // Notifications are not busy for a while, but as long as another program wants them.
    case .busy where !isRequest: completion(.failure(verdict))
    case .busy, .held:
      // What this program held itself is free at once; for others there is less patience.
      let limit: Duration = verdict == .busy ? .seconds(30) : .seconds(3)
      guard let pause = operations.pause(now: host.clock.now, limit: limit) else {
        return completion(.failure(verdict))
      }
      host.after(pause, again)
    case .unpaired where !hasTriedPairing:
      hasTriedPairing = true
      host.pairing.pair(path) { [weak self] isPaired in
        guard let self, !isOver else { return }
        isPaired ? again() : completion(.failure(verdict))
      }
    case .doubtful:
      // The end of a link fails what runs before the daemon tells the end itself.
      host.after(.milliseconds(150)) { [weak self] in
        self?.ifStillUp { completion(.failure(verdict)) }
      }
    case .failed(.radio(let error), _) where error.code == .timeout: fail(error)
    case .unpaired, .failed: completion(.failure(verdict))
    }
  }

  /// Asks the daemon whether the link is up, and goes on only then.
  func ifStillUp(_ body: @escaping @Sendable () -> Void) {
    guard !isOver else { return }
    host.call(path, DBusWellKnown.properties, "Get", [.string(BlueZ.device), .string("Connected")]) {
      [weak self] result in
      guard let self, !isOver, case .success(let reply) = result,
        reply.property == .boolean(true)
      else { return }
      body()
    }
  }

  // MARK: Operations

  private func read(_ handle: AttributeHandle) {
    guard let place = place(of: handle) else { return finish(.failure(.att(.invalidHandle))) }
    subscriptions[handle]?.beginRead()
    perform(place, "ReadValue", [.options([:])]) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let reply):
        guard let bytes = try? reply.read([UInt8].self) else {
          endRead(handle, nil)
          return finish(
            .failure(.radio(RadioError(.other, "bluetoothd answered a read with something else"))))
        }
        endRead(handle, Data(bytes))
        finish(.success(.value(Data(bytes))))
      case .failure(let verdict):
        endRead(handle, nil)
        finish(.failure(verdict.failure))
      }
    }
  }

  /// Attributes have at most 512 octets (Core Vol 3 Part F 3.2.9).
  private static let longestValue = 512

  private func write(_ value: Data, _ handle: AttributeHandle) {
    guard value.count <= Self.longestValue else {
      return finish(.failure(.att(.invalidAttributeValueLength)))
    }
    guard let place = place(of: handle) else { return finish(.failure(.att(.invalidHandle))) }
    gate.hold(handle)
    perform(
      place, "WriteValue", [.bytes([UInt8](value)), .options(["type": .string("request")])]
    ) { [weak self] result in
      guard let self else { return }
      gate.release(handle)
      switch result {
      case .success: finish(.success(.done))
      case .failure(.failed(.att(.requestNotSupported), _)):
        // The daemon's word for a characteristic without that property.
        finish(.failure(.att(.writeNotPermitted)))
      case .failure(let verdict): finish(.failure(verdict.failure))
      }
    }
  }

  private func readRSSI() {
    let facts = DeviceFacts(host.store, path)
    if let rssi = facts?.rssi { return finish(.success(.rssi(rssi))) }
    finish(
      .failure(
        .radio(
          RadioError(
            .notSupported, "bluetoothd tells the strength of a link only while it scans and hears the device")
        )))
  }
}

extension DBusMessage {
  /// The value in the reply to a question for a property.
  var property: DBusValue? {
    guard let variant = try? read(DBusVariant.self) else { return nil }
    return variant.content
  }
}

extension Verdict {
  /// Whether the peer has answered.
  var isAnswer: Bool {
    switch self {
    case .busy, .held: false
    case .unpaired: true
    case .failed(_, let isAnswer), .doubtful(_, let isAnswer): isAnswer
    }
  }

  /// What a client is told.
  var failure: GATTFailure {
    switch self {
    case .busy: .radio(RadioError(.timeout, "another program kept the attribute busy for too long"))
    case .held: .radio(RadioError(.noResources, "another program has acquired this characteristic"))
    case .unpaired(let code): .att(code)
    case .failed(let failure, _), .doubtful(let failure, _): failure
    }
  }
}
