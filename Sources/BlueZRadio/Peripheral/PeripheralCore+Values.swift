internal import DBus
internal import Foundation
internal import Locking
internal import Radio

/// Subscriptions, and values for who has subscribed.
///
/// Values leave as `PropertiesChanged` signals to the daemon alone, not through the descriptor of `AcquireNotify`: that one is made for the first
/// subscriber of a characteristic only, so that nobody would tell of the others; and signals keep their order with calls, on which evidence rests
/// (``SendWindow``). So `AcquireNotify` says who subscribes, and is refused.
extension PeripheralCore {
  /// Attributes that every central may be asked for without a pairing, best first: the hash of its database, its maker, model, versions, and features.
  private static let readableTypes: [BluetoothUUID] = [
    0x2B2A, 0x2A29, 0x2A24, 0x2A50, 0x2A26, 0x2A28, 0x2A00, 0x2B3A, 0x2B29,
  ].map { BluetoothUUID(UInt16($0)) }

  /// Longer than the transaction time of ATT (Core Vol 3 Part F 3.3.3), after which the daemon ends the link.
  private static let evidenceLimit = Duration.seconds(35)
  /// A window is taken for sent after that time where a central has nothing that can be read.
  private static let pace = Duration.seconds(1)

  // MARK: Subscriptions

  private func isOfDaemon(_ invocation: DBusInvocation) -> Bool {
    guard invocation.message.sender == host.owner else {
      invocation.fail(
        DBusError(name: DBusErrorName.accessDenied, message: "only bluetoothd may call this"))
      return false
    }
    return true
  }

  func acquireNotify(_ characteristic: LocalCharacteristicID, _ invocation: DBusInvocation) {
    guard isOfDaemon(invocation) else { return }
    do {
      var reader = DBusReader(invocation.message.body)
      let call = try ServerCall(try reader.next())
      let central = try central(of: call)
      announcedStarts[characteristic, default: 0] += 1
      subscribe(central, to: characteristic)
    } catch { host.log("bluetoothd does not say who subscribes: \(error)") }
    invocation.fail(
      DBusError(name: BlueZ.Failure.notSupported, message: "values are sent as changes of the property"))
  }

  func startNotify(_ characteristic: LocalCharacteristicID, _ invocation: DBusInvocation) {
    guard isOfDaemon(invocation) else { return }
    defer { try? invocation.reply() }
    if announcedStarts[characteristic, default: 0] > 0 {
      announcedStarts[characteristic, default: 1] -= 1
      return
    }
    // A daemon that does not say who: there is no doubt where one central alone can have done it.
    let subscribed = shared.withLock { $0.subscriptions.subscribers(of: characteristic) }
    let candidates = connectedDevices.filter { device in
      centrals[device].map { !subscribed.contains($0) } ?? true
    }
    guard candidates.count == 1, let device = candidates.first, let central = try? central(at: device) else {
      return host.log("bluetoothd does not say which of \(candidates.count) centrals has subscribed")
    }
    subscribe(central, to: characteristic)
  }

  private var connectedDevices: [ObjectPath] {
    guard let adapter = host.adapter.path else { return [] }
    return host.store.paths(with: BlueZ.device, within: adapter).filter {
      host.store.property("Connected", BlueZ.device, of: $0) == true
    }
  }

  /// The last subscriber has gone.
  func stopNotify(_ characteristic: LocalCharacteristicID, _ invocation: DBusInvocation) {
    guard isOfDaemon(invocation) else { return }
    defer { try? invocation.reply() }
    endSubscriptions(of: characteristic)
  }

  func endSubscriptions(of characteristic: LocalCharacteristicID) {
    for device in remembered.keys { remembered[device]?.remove(characteristic) }
    let subscribers = shared.withLock { $0.subscriptions.subscribers(of: characteristic) }
    for central in subscribers {
      let leaving = shared.withLock { $0.subscriptions.unsubscribe(central, from: characteristic) }
      for characteristic in leaving.ended { sink(.unsubscribed(central: central, characteristic)) }
      if leaving.isReady { sink(.readyToNotify) }
    }
  }

  func subscribe(_ central: PeerID, to characteristic: LocalCharacteristicID) {
    guard published[characteristic] != nil,
      shared.withLock({ $0.subscriptions.subscribe(central, to: characteristic) })
    else { return }
    sink(.subscribed(central: central, characteristic))
  }

  /// A subscriber has confirmed an indication.
  func confirm(_ characteristic: LocalCharacteristicID, _ invocation: DBusInvocation) {
    guard isOfDaemon(invocation) else { return }
    try? invocation.reply()
    if shared.withLock({ $0.subscriptions.confirm(characteristic) }) { sink(.readyToNotify) }
  }

  // MARK: Values

  /// From any thread.
  func notify(_ value: Data, _ characteristic: LocalCharacteristicID, _ wanted: [PeerID]?) -> Bool {
    let value = value.prefix(ApplicationTree.longestValue)
    // Handed to the queue under the lock, so that values leave in the order in which they were taken.
    return shared.withLock { shared in
      let sending = shared.subscriptions.take(
        value.count, of: characteristic, isIndicated: shared.indicated.contains(characteristic), to: wanted)
      switch sending {
      case .nowhere: return true
      case .full: return false
      case .onlySomeWanted:
        host.queue.async { [self] in notePartialValue(characteristic) }
        return true
      case .toAll(let subscribers):
        host.queue.async { [self] in send(value, characteristic, subscribers) }
        return true
      }
    }
  }

  private func notePartialValue(_ characteristic: LocalCharacteristicID) {
    guard !hasNotedPartialValue else { return }
    hasNotedPartialValue = true
    host.log(
      "A value for some of the subscribers of a characteristic was not sent: bluetoothd sends to all of them or to none."
    )
  }

  private func send(
    _ value: Data, _ characteristic: LocalCharacteristicID, _ subscribers: Set<PeerID>
  ) {
    if let path = published[characteristic]?.path, let bus = host.bus, let owner = host.owner,
      let signal = try? DBusMessage.signal(
        path: path, interface: DBusWellKnown.properties, member: "PropertiesChanged",
        body: [
          .string(BlueZ.gattCharacteristic), .options(["Value": .bytes(Array(value))]),
          .array(of: .string, []),
        ], destination: owner)
    {
      bus.send(signal) { _ in }
    }
    shared.withLock { $0.subscriptions.send(value.count, to: subscribers) }
    for central in subscribers { lookForEvidence(central) }
  }

  private func lookForEvidence(_ central: PeerID) {
    guard let probe = shared.withLock({ $0.subscriptions.beginProbe(of: central) }) else { return }
    guard let attribute = readableAttribute(of: central) else { return confirmLater(probe, central) }
    host.call(
      attribute, BlueZ.gattCharacteristic, "ReadValue", [.options([:])], timeLimit: Self.evidenceLimit
    ) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success: confirmed(probe, central)
      case .failure:
        unreadable.insert(attribute)
        confirmLater(probe, central)
      }
    }
  }

  private func confirmLater(_ probe: Subscriptions.Probe, _ central: PeerID) {
    _ = host.schedule(after: Self.pace) { [weak self] in self?.confirmed(probe, central) }
  }

  private func confirmed(_ probe: Subscriptions.Probe, _ central: PeerID) {
    if shared.withLock({ $0.subscriptions.endProbe(probe, of: central) }) { sink(.readyToNotify) }
    lookForEvidence(central)
  }

  /// An attribute of a central that can be read, as far as the daemon has found any.
  private func readableAttribute(of central: PeerID) -> ObjectPath? {
    guard let device = centrals.first(where: { $0.value == central })?.key else { return nil }
    let store = host.store
    var found: [String: ObjectPath] = [:]
    for path in store.paths(with: BlueZ.gattCharacteristic, within: device) where !unreadable.contains(path) {
      guard
        let flags = store.property("Flags", BlueZ.gattCharacteristic, of: path, as: [String].self),
        flags.contains("read"),
        let uuid = store.property("UUID", BlueZ.gattCharacteristic, of: path, as: String.self)
      else { continue }
      found[uuid.lowercased()] = path
    }
    return Self.readableTypes.lazy.compactMap { found[$0.longText] }.first
  }
}
