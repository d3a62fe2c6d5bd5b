internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// Publishes the haul service and gives each carrier its line.
// Sendable: everything is touched on `queue` only, by Core Bluetooth's callbacks, timers, and the operation's hops.
final class ReceiveDriver: NSObject, @unchecked Sendable {
  typealias Outcome = Result<Void, TransferError>

  /// One peer on one carrier.
  struct Connection {
    let line: ReceiverLine
    let carrier: CarrierOfConnection
  }

  enum CarrierOfConnection {
    case gatt(GATTReceiverCarrier)
    case channel(ChannelReceiverCarrier)
  }

  /// Peers that may be connected at once; one of them is served, and who has said nothing yet makes room for who comes.
  private static let connectionLimit = 16

  let options: ReceiveOptions
  let clock: any TransferClock
  let queue: DispatchQueue
  private let storage: any ReceiverStorage
  private let storageQueue: StorageQueue
  private let managerOptions: [String: any Sendable]
  private let events: EventFeed<ReceiveEvent>

  var manager: CBPeripheralManager?
  var connections: [Connection] = []
  var control: CBMutableCharacteristic?
  var data: CBMutableCharacteristic?
  var publishedPSM: UInt16?

  private var continuation: CheckedContinuation<Outcome, Never>?
  private var radioTimer: QueueTimer?
  private var outcome: Outcome?
  /// Whether the object under way is the last one that its sender has.
  private var isLastObject = false
  /// Whether a sender's last object was verified.
  private var hasServed = false
  private var progressAt: Duration?

  init(
    storage: any ReceiverStorage, options: ReceiveOptions, managerOptions: [String: any Sendable],
    clock: any TransferClock, queue: DispatchQueue, events: EventFeed<ReceiveEvent>
  ) {
    self.storage = storage
    self.options = options
    self.managerOptions = managerOptions
    self.clock = clock
    self.queue = queue
    self.events = events
    storageQueue = StorageQueue(clock: clock, queue: queue)
  }

  // MARK: From the operation

  func start(_ continuation: CheckedContinuation<Outcome, Never>) {
    guard outcome == nil, manager == nil else {
      continuation.resume(
        returning: outcome
          ?? .failure(
            TransferError(.invalidArgument, "a receiver runs once", advice: "make another operation")))
      return
    }
    self.continuation = continuation
    radioTimer = QueueTimer(clock: clock, queue: queue) { [weak self] in self?.radioTimePassed() }
    radioTimer?.set(to: clock.now + options.radioLimit)
    var managerOptions: [String: Any] = managerOptions
    managerOptions[CBPeripheralManagerOptionShowPowerAlertKey] = false
    manager = CBPeripheralManager(delegate: self, queue: queue, options: managerOptions)
  }

  func stop() { finish(.success(())) }

  // MARK: Publishing

  /// The adapter is ready: offers a channel first, because its PSM is part of the service.
  func publish() {
    guard outcome == nil else { return }
    // An adapter that was only switched off has kept what was published: twice, it would lead senders astray.
    withdraw()
    if options.offersChannel {
      manager.poweredOn?.publishL2CAPChannel(withEncryption: false)
    } else {
      publishService(psm: nil)
    }
  }

  func publishService(psm: UInt16?) {
    // The answer to a request of before the adapter went off: once it is on again, all this is asked for anew.
    guard outcome == nil, let manager = manager.poweredOn else { return }
    publishedPSM = psm
    let control = CBMutableCharacteristic(
      type: HaulService.control, properties: [.write, .notify], value: nil, permissions: .writeable)
    let data = CBMutableCharacteristic(
      type: HaulService.data, properties: .writeWithoutResponse, value: nil, permissions: .writeable)
    let service = CBMutableService(type: HaulService.service, primary: true)
    service.characteristics = [control, data]
    if let psm {
      let octets = Data([UInt8(truncatingIfNeeded: psm), UInt8(psm >> 8)])
      service.characteristics?.append(
        CBMutableCharacteristic(
          type: HaulService.psm, properties: .read, value: octets, permissions: .readable))
    }
    self.control = control
    self.data = data
    manager.add(service)
  }

  private func withdraw() {
    let manager = manager.poweredOn
    if let publishedPSM { manager?.unpublishL2CAPChannel(publishedPSM) }
    publishedPSM = nil
    if control != nil { manager?.removeAllServices() }
    control = nil
    data = nil
  }

  func advertise() {
    guard outcome == nil else { return }
    manager.poweredOn?.startAdvertising([
      CBAdvertisementDataLocalNameKey: options.name,
      CBAdvertisementDataServiceUUIDsKey: [HaulService.service],
    ])
  }

  /// The device can be found.
  func isReady() {
    radioTimer?.cancel()
    emit(.ready(name: options.name, psm: publishedPSM))
  }

  /// The adapter is not usable: all links are gone, everything has to be published again.
  func interrupted(_ why: String, isFinal: Bool) {
    guard outcome == nil else { return }
    remove { _ in true }
    if isFinal {
      finish(.failure(TransferError(.radioUnavailable, why, advice: "choose a radio", remedy: .chooseRadio)))
    } else {
      emit(.interrupted(why))
    }
  }

  private func radioTimePassed() {
    finish(
      .failure(
        TransferError(
          .radioUnavailable, "the adapter was not ready within \(options.radioLimit)", isRetriable: true)))
  }

  // MARK: Connections

  /// Makes the line of a new carrier, in the place of one that nobody uses where there are too many.
  func makeLine(
    peer: UUID, kind: CarrierKind, send: @escaping (Data) -> Void, close: @escaping () -> Void
  ) -> ReceiverLine? {
    guard outcome == nil else { return nil }
    if connections.count >= Self.connectionLimit, let idle = connections.first(where: { !$0.line.isActive }) {
      remove { $0.line === idle.line }
    }
    guard connections.count < Self.connectionLimit else { return nil }
    return ReceiverLine(
      peer: peer, kind: kind, configuration: options.session, storage: storage, storageQueue: storageQueue,
      clock: clock, queue: queue, send: send,
      tell: { [weak self] event in self?.tell(event, peer: peer, kind: kind) }, close: close)
  }

  /// A whole control message of a connection has come.
  func control(_ message: Data, of connection: Connection, refuse: (Data) -> Void) {
    // Who comes while the last requests are carried out is not served any more.
    guard outcome == nil else { return }
    // Whatever begins adds to what waits to be heard, which is never dropped: so it is the senders that have to wait.
    if events.owed > options.unheardLimit, let request = HaulRequest.beginningNumber(message) {
      let refusal = HaulReply.Refusal(
        request: request, code: .inUse, text: "its reports are not being read; it goes on once they are")
      return refuse(HaulReply.refused(refusal).encoded)
    }
    if let request = HaulRequest.helloNumber(message),
      let other = connections.first(where: { $0.line !== connection.line && $0.line.isActive })
    {
      guard other.line.peer == connection.line.peer else {
        let refusal = HaulReply.Refusal(
          request: request, code: .inUse, text: "another sender is being served")
        return refuse(HaulReply.refused(refusal).encoded)
      }
      // The same peer begins anew: what it had before is over.
      other.line.handle(.carrierLost)
    }
    connection.line.control(message)
  }

  /// Carriers are gone, or not to be used any more.
  func remove(_ isGone: (Connection) -> Bool) {
    let gone = connections.filter(isGone)
    connections.removeAll(where: isGone)
    for connection in gone {
      connection.line.handle(.carrierLost)
      // A channel's handler refers to its connection; closing lets go of it.
      if case .channel(let carrier) = connection.carrier { carrier.close() }
    }
  }

  // MARK: Reports and end

  func emit(_ event: ReceiveEvent) { events.yield(event) }

  private func tell(_ event: ReceiverSession.Event, peer: UUID, kind: CarrierKind) {
    if case .progress = event {
      let now = clock.now
      if let progressAt, now - progressAt < options.progressInterval { return }
      progressAt = now
    } else {
      progressAt = nil
    }
    emit(.session(event, peer: peer, carrier: kind))
    switch event {
    case .objectStarted(_, let index, let count, _): isLastObject = index + 1 == count
    case .objectVerified: hasServed = hasServed || isLastObject
    case .sessionEnded where hasServed && options.once: finish(.success(()))
    default: break
    }
  }

  func finish(_ outcome: Outcome) {
    guard self.outcome == nil else { return }
    self.outcome = outcome
    radioTimer?.cancel()
    manager.poweredOn?.stopAdvertising()
    for connection in connections { connection.line.handle(.carrierLost) }
    // What is verified is made durable first; a medium that never answers ends with the process.
    storageQueue.whenIdle { self.end(outcome) }
  }

  private func end(_ outcome: Outcome) {
    remove { _ in true }
    withdraw()
    manager?.delegate = nil
    manager = nil
    events.finish()
    continuation?.resume(returning: outcome)
    continuation = nil
  }
}
