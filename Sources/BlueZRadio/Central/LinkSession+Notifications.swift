internal import DBus
internal import Foundation
internal import Radio
internal import Readiness

/// Who gets the values that a characteristic pushes, and how they come.
struct Subscription: Sendable {
  enum Source: Sendable {
    /// A descriptor: one datagram is one value.
    case socket(AcquiredSocket, ReadinessSource)
    /// Changes of the property `Value`.
    case signals
  }

  let path: ObjectPath
  var users: [UInt64] = []
  /// Nil while the daemon is asked.
  var source: Source?
  /// Values that have come while a read runs, which makes the daemon tell its result as a change, too.
  private(set) var held: [Data]?

  init(_ path: ObjectPath) { self.path = path }

  mutating func beginRead() { if case .signals? = source { held = [] } }

  /// The read is over: returns values that were pushed, without the one that it has caused.
  mutating func endRead(_ value: Data?) -> [Data] {
    var values = held ?? []
    held = nil
    if let value, let last = values.lastIndex(of: value) { values.remove(at: last) }
    return values
  }

  /// Returns false where the value is to be passed on now.
  mutating func hold(_ value: Data) -> Bool {
    guard held != nil else { return false }
    held?.append(value)
    return true
  }
}

/// Notifications and indications.
extension LinkSession {
  func setNotify(_ characteristic: RemoteCharacteristic, _ mode: NotifyMode, _ operation: Operation) {
    let handle = characteristic.handle
    guard let client = operation.client, let known = database.characteristic(handle) else {
      return finish(.failure(.att(.invalidHandle)))
    }
    guard mode != .none else {
      unsubscribe(client, from: handle)
      return waitForSilence(known.path, attempt: 0)
    }
    guard !known.properties.isDisjoint(with: [.notify, .indicate]) else {
      return finish(.failure(.att(.requestNotSupported)))
    }
    let isNew = subscriptions[handle] == nil
    subscriptions[handle, default: Subscription(known.path)].add(client.id)
    guard isNew else { return finish(.success(.done)) }
    // The daemon has descriptors for notifications only, and prefers these where a characteristic can do both.
    if known.properties.contains(.notify) { acquireNotifications(known) } else { startNotifying(known) }
  }

  private func acquireNotifications(_ characteristic: RemoteDatabase.Characteristic) {
    let handle = characteristic.handle
    perform(
      (characteristic.path, BlueZ.gattCharacteristic), "AcquireNotify", [.options([:])], isRequest: false
    ) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let reply):
        guard let (descriptor, mtu) = try? reply.read(DBusDescriptor.self, UInt16.self) else {
          return failedToSubscribe(handle, .radio(RadioError(.other, "bluetoothd gave no descriptor")))
        }
        setMTU(mtu)
        listen(AcquiredSocket(descriptor.owner), handle)
        finish(.success(.done))
      // Busy: another program has called `StartNotify`, which one more may do.
      case .failure(.failed(.att(.requestNotSupported), false)), .failure(.held), .failure(.busy),
        .failure(.doubtful(.att(.invalidHandle), _)):
        startNotifying(characteristic)
      case .failure(let verdict): failedToSubscribe(handle, verdict.failure)
      }
    }
  }

  private func startNotifying(_ characteristic: RemoteDatabase.Characteristic) {
    let handle = characteristic.handle
    subscriptions[handle]?.source = .signals
    perform((characteristic.path, BlueZ.gattCharacteristic), "StartNotify", [], isRequest: false) {
      [weak self] result in
      guard let self else { return }
      switch result {
      case .success: finish(.success(.done))
      case .failure(.doubtful(.radio(let error), _)) where error.message.contains("Already notifying"):
        finish(.success(.done))
      case .failure(.held), .failure(.busy):
        failedToSubscribe(
          handle,
          .radio(RadioError(.noResources, "notifications are already in use by another program")))
      case .failure(let verdict): failedToSubscribe(handle, verdict.failure)
      }
    }
  }

  private func failedToSubscribe(_ handle: AttributeHandle, _ failure: GATTFailure) {
    subscriptions[handle] = nil
    finish(.failure(failure))
  }

  // MARK: Values

  private func listen(_ socket: AcquiredSocket, _ handle: AttributeHandle) {
    let source = socket.whenReadable(
      central.monitor, host.whileAlive { [weak self] in self?.receive(socket, handle) })
    guard let source else {
      return fail(RadioError(.noResources, "no descriptor is left for notifications"))
    }
    guard subscriptions[handle] != nil else { return source.cancel() }
    subscriptions[handle]?.source = .socket(socket, source)
  }

  private func receive(_ socket: AcquiredSocket, _ handle: AttributeHandle) {
    guard !isOver, case .socket(let current, let source)? = subscriptions[handle]?.source, current === socket
    else { return }
    // Others on the queue get their turn.
    for _ in 0..<64 {
      switch socket.receive() {
      case .value(let value): pass(value, handle)
      case .nothing: return
      case .ended:
        source.cancel()
        return listeningEnded(handle)
      }
    }
  }

  /// The daemon has closed the descriptor: with the link or the characteristic, which it is about to tell, or else there must be another way.
  private func listeningEnded(_ handle: AttributeHandle) {
    guard let path = subscriptions[handle]?.path else { return }
    subscriptions[handle]?.source = .signals
    host.after(.milliseconds(500)) { [weak self] in
      self?.ifStillUp { [weak self] in
        guard self?.isListening(to: path, handle) == true else { return }
        self?.host.call(path, BlueZ.gattCharacteristic, "StartNotify") { [weak self] result in
          guard let self, isListening(to: path, handle), case .failure(let error) = result else { return }
          fail(RadioError(.other, "bluetoothd has ended notifications: \(error)"))
        }
      }
    }
  }

  /// Whether a subscription gets its values as changes of the property.
  private func isListening(to path: ObjectPath, _ handle: AttributeHandle) -> Bool {
    guard let subscription = subscriptions[handle], subscription.path == path,
      case .signals? = subscription.source
    else { return false }
    return true
  }

  /// The characteristic has gone, and its subscription with it; one that comes in its place has to be subscribed to anew.
  func characteristicRemoved(_ path: ObjectPath) {
    for (handle, subscription) in subscriptions where subscription.path == path {
      if case .socket(_, let source)? = subscription.source { source.cancel() }
      subscriptions[handle] = nil
    }
  }

  func valueChanged(_ path: ObjectPath) {
    guard let handle = subscriptions.first(where: { $0.value.path == path })?.key,
      case .signals? = subscriptions[handle]?.source
    else { return }
    let bytes = host.store.property("Value", BlueZ.gattCharacteristic, of: path, as: [UInt8].self) ?? []
    let value = Data(bytes)
    if subscriptions[handle]?.hold(value) == false { pass(value, handle) }
  }

  func endRead(_ handle: AttributeHandle, _ value: Data?) {
    for value in subscriptions[handle]?.endRead(value) ?? [] { pass(value, handle) }
  }

  private func pass(_ value: Data, _ handle: AttributeHandle) {
    for id in subscriptions[handle]?.users ?? [] {
      users.first { $0.id == id }?.post(.notified(peer, handle, value))
    }
  }

  // MARK: End

  /// Takes a client away, and gives the notifications back where it was the last.
  func unsubscribe(_ client: CentralClient, from handle: AttributeHandle) {
    guard var subscription = subscriptions[handle] else { return }
    subscription.users.removeAll { $0 == client.id }
    subscriptions[handle] = subscription.users.isEmpty ? nil : subscription
    if subscription.users.isEmpty { release(subscription) }
  }

  func release(_ subscription: Subscription) {
    switch subscription.source {
    case .socket(_, let source): source.cancel()
    case .signals:
      // Else the daemon would subscribe again at the next link by itself.
      host.call(subscription.path, BlueZ.gattCharacteristic, "StopNotify") { _ in }
    case nil: break
    }
  }

  /// Waits until the daemon has noticed that nobody listens any more.
  private func waitForSilence(_ path: ObjectPath, attempt: Int) {
    guard !isOver else { return }
    guard !subscriptions.values.contains(where: { $0.path == path }), attempt < 40 else {
      return finish(.success(.done))
    }
    host.call(
      path, DBusWellKnown.properties, "Get", [.string(BlueZ.gattCharacteristic), .string("Notifying")]
    ) { [weak self] result in
      guard let self, !isOver else { return }
      guard case .success(let reply) = result,
        reply.property == .boolean(true)
      else { return finish(.success(.done)) }
      host.after(.milliseconds(10)) { [weak self] in self?.waitForSilence(path, attempt: attempt + 1) }
    }
  }
}

extension Subscription {
  mutating func add(_ client: UInt64) { if !users.contains(client) { users.append(client) } }
}
