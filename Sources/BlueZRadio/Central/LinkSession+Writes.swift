internal import DBus
internal import Foundation
internal import Radio

/// Writes without response: descriptors, calls where there are none, and evidence of what has arrived.
extension LinkSession {
  func carryOut(_ task: WriteGate.Task) {
    guard !isOver else { return }
    switch task {
    case .pump(let handle): pump(handle)
    case .probe(let handle):
      // Any request that is to be answered is evidence.
      if !operations.contains(where: { $0.request.isEvidence }) { ask(.probe(handle), nil, nil) }
    }
  }

  private func pump(_ handle: AttributeHandle) {
    guard !isOver else { return }
    defer { lookAtHeldBack() }
    switch gate.pump(handle) {
    case .done: break
    case .needsSocket: acquireWrites(handle)
    case .call(let value): call(value, handle)
    case .full(let socket): waitForRoom(socket, handle)
    case .broken:
      // Most likely the link has ended, which the daemon is about to tell.
      pumpAgain(handle, after: .seconds(1))
    }
  }

  private func pumpAgain(_ handle: AttributeHandle, after pause: Duration) {
    host.after(pause) { [weak self] in self?.pump(handle) }
  }

  private func waitForRoom(_ socket: AcquiredSocket, _ handle: AttributeHandle) {
    guard writableSources[handle] == nil else { return }
    let source = socket.whenWritable(
      central.monitor,
      host.whileAlive { [weak self] in
        self?.writableSources[handle] = nil
        self?.pump(handle)
      })
    guard let source else { return pumpAgain(handle, after: .milliseconds(50)) }
    writableSources[handle] = source
  }

  // MARK: Descriptors

  /// Asks for the descriptor of a characteristic; `settled` is called once it is there, or known not to be.
  func acquireWrites(
    _ handle: AttributeHandle, attempt: Int = 0, then settled: @escaping @Sendable () -> Void = {}
  ) {
    guard !isOver else { return }
    guard !gate.hasSocket(handle), attempt > 0 || acquiring.insert(handle).inserted else { return settled() }
    guard let characteristic = database.characteristic(handle) else {
      acquiring.remove(handle)
      return settled()
    }
    host.call(characteristic.path, BlueZ.gattCharacteristic, "AcquireWrite", [.options([:])]) {
      [weak self] result in
      guard let self, !isOver else { return }
      switch result {
      case .success(let reply):
        acquiring.remove(handle)
        guard let (descriptor, mtu) = try? reply.read(DBusDescriptor.self, UInt16.self) else {
          return fail(RadioError(.other, "bluetoothd gave no descriptor for writes"))
        }
        setMTU(mtu)
        gate.setSocket(AcquiredSocket(descriptor.owner), of: handle)
        settled()
      case .failure(let error): acquisitionFailed(handle, Verdict(error), attempt, settled)
      }
    }
  }

  private func acquisitionFailed(
    _ handle: AttributeHandle, _ verdict: Verdict, _ attempt: Int, _ settled: @escaping @Sendable () -> Void
  ) {
    switch verdict {
    case .busy, .held, .doubtful(.radio, _):
      // It may be this program's own from before, whose end the daemon has yet to see.
      guard attempt < 8 else { break }
      return host.after(.milliseconds(10 << attempt)) { [weak self] in
        self?.acquireWrites(handle, attempt: attempt + 1, then: settled)
      }
    default: break
    }
    acquiring.remove(handle)
    gate.setSocket(nil, usesCalls: true, of: handle)
    settled()
  }

  // MARK: Calls

  /// Sends one value by a call, one at a time.
  private func call(_ value: Data, _ handle: AttributeHandle, attempt: Int = 0) {
    guard !isOver else { return }
    guard let characteristic = database.characteristic(handle) else {
      return called(handle)
    }
    host.call(
      characteristic.path, BlueZ.gattCharacteristic, "WriteValue",
      [.bytes([UInt8](value)), .options(["type": .string("command")])]
    ) { [weak self] result in
      guard let self, !isOver else { return }
      guard case .failure(let error) = result else { return called(handle) }
      let verdict = Verdict(error)
      switch verdict {
      case .busy, .held:
        guard attempt < 10 else { break }
        return host.after(.milliseconds(5 << attempt)) { [weak self] in
          self?.call(value, handle, attempt: attempt + 1)
        }
      default: break
      }
      // It was accepted, so it must not be lost in silence while the link goes on.
      host.after(.milliseconds(150)) { [weak self] in
        self?.ifStillUp { [weak self] in
          self?.fail(RadioError(.other, "a write without response cannot be sent: \(error)"))
        }
      }
    }
  }

  private func called(_ handle: AttributeHandle) {
    gate.called(handle)
    lookAtHeldBack()
  }

  // MARK: Evidence

  /// Reads what is cheapest to read; nobody wants the value.
  func probe(besides handle: AttributeHandle) {
    let places = database.probes(besides: handle)
    guard !places.isEmpty else { return finish(.success(.done)) }
    let place = places[failedProbes % places.count]
    perform(place, "ReadValue", [.options([:])]) { [weak self] result in
      guard let self else { return }
      if case .failure(let verdict) = result, !verdict.isAnswer {
        failedProbes += 1
        guard failedProbes < 50 else {
          return fail(RadioError(.timeout, "nothing can be read that shows how far the peer has come"))
        }
      } else if case .success = result {
        failedProbes = failedProbes % places.count
      }
      finish(.success(.done))
    }
  }
}

extension LinkSession.Request {
  /// Whether its reply comes from the peer.
  var isEvidence: Bool {
    switch self {
    case .probe, .gatt(.read), .gatt(.write): true
    case .gatt: false
    }
  }
}
