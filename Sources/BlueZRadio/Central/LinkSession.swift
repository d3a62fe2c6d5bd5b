internal import DBus
internal import Dispatch
internal import Foundation
internal import Radio
internal import Readiness

/// One link while it is up: requests, subscriptions, writes and the peer's attributes, for all clients that use it.
///
/// Everything happens on the host's queue; only its gate is reached from elsewhere.
final class LinkSession: @unchecked Sendable {
  /// What a client asks for, and what the session asks by itself.
  enum Request: Sendable, Hashable {
    case gatt(GATTRequest)
    /// A read whose answer nobody wants but as evidence of what has arrived.
    case probe(AttributeHandle)
  }

  struct Operation: Sendable {
    let request: Request
    /// Nil for the session's own.
    let id: RequestID?
    let client: CentralClient?
    /// Where it comes among writes without response; nil for what keeps no order with them.
    let place: WriteGate.Place?
  }

  unowned let central: CentralHost
  private weak var link: CentralLink?
  let peer: PeerID
  let path: ObjectPath
  let gate: WriteGate
  private(set) var users: [CentralClient] = []
  private(set) var isOver = false
  private(set) var isResolved = false
  /// The daemon has resolved the services, and is asked for what belongs to them.
  private var isResolving = false
  /// Services that the peer has advertised, and those that clients have asked for.
  private(set) var knownServices: Set<BluetoothUUID>
  private(set) var database = RemoteDatabase()
  private var isDatabaseOld = true
  var operations = AttributeQueue<Operation>()
  var subscriptions: [AttributeHandle: Subscription] = [:]
  var acquiring: Set<AttributeHandle> = []
  var writableSources: [AttributeHandle: ReadinessSource] = [:]
  /// The running operation, while it waits for values that were accepted before it.
  var heldBack: HeldBack?
  /// What the reply to the running operation will prove.
  var coverage: WriteBudget.Amount?
  /// Probes that have given no evidence.
  var failedProbes = 0
  /// Whether pairing was tried over this link.
  var hasTriedPairing = false
  var channels: [ClientChannel] = []
  /// Channels that are being opened.
  var attempts: [ChannelRequest: L2CAPAttempt] = [:]

  /// bluetoothd waits 30 s for a peer's response and then ends the link (Core Vol 3 Part F 3.3.3).
  static let operationLimit = Duration.seconds(40)

  init(_ central: CentralHost, _ link: CentralLink, _ path: ObjectPath) {
    self.central = central
    self.link = link
    self.path = path
    peer = link.peer
    knownServices = Set(DeviceFacts(central.host.store, path)?.services ?? [])
    let relay = TaskRelay()
    gate = WriteGate { relay.ask($0) }
    relay.set(self, central.host)
  }

  var host: BlueZHost { central.host }

  // MARK: Clients

  func join(_ client: CentralClient) { users.append(client) }

  func leave(_ client: CentralClient) {
    users.removeAll { $0 === client }
    for operation in operations.remove(where: { $0.client === client }) {
      operation.place.map { gate.pass($0) }
    }
    // A request that would have been evidence may have been among them.
    if !operations.contains(where: { $0.request.isEvidence }) { settleEvidence(isAnswer: false) }
    gate.forget(client.id)
    endChannels(of: client)
    for handle in Array(subscriptions.keys) { unsubscribe(client, from: handle) }
  }

  /// Posts to all users.
  func post(_ event: CentralEvent) { for user in users { user.post(event) } }

  // MARK: Life

  func begin() { deviceChanged() }

  func deviceChanged() {
    guard !isOver else { return }
    isDatabaseOld = true
    guard DeviceFacts(host.store, path)?.areServicesResolved == true else {
      isResolved = false
      isResolving = false
      return
    }
    guard !isResolved, !isResolving else { return }
    isResolving = true
    settle { [weak self] in
      guard let self, isResolving else { return }
      refresh()
      learnMTU { [weak self] in
        guard let self, !isOver, isResolving else { return }
        isResolving = false
        isResolved = true
        goOn()
      }
    }
  }

  /// Goes on once everything was told that the daemon knows now: it tells of objects after the property that says that they are there,
  /// but sends no reply before what it has to tell.
  private func settle(_ body: @escaping @Sendable () -> Void) {
    host.call(path, DBusWellKnown.properties, "Get", [.string(BlueZ.device), .string("Connected")]) {
      [weak self] _ in
      if self?.isOver == false { body() }
    }
  }

  /// The link is over: nothing of it is posted any more but the ends of its channels.
  func end(_ error: RadioError?) {
    guard !isOver else { return }
    isOver = true
    gate.close()
    endHoldingBack()
    writableSources = [:]
    for subscription in subscriptions.values { release(subscription) }
    subscriptions = [:]
    operations.remove { _ in true }
    endChannels(error)
    users = []
  }

  /// Ends the link, as it cannot be used as it should.
  func fail(_ error: RadioError) {
    guard !isOver else { return }
    host.log("The link to \(path) is given up: \(error)")
    link?.fail(error)
  }

  // MARK: Attributes

  func attributesChanged(_ change: ObjectStore.Change) {
    guard !isOver else { return }
    switch change {
    case .changed(let path, BlueZ.gattCharacteristic, let names):
      if names.contains("Value") { valueChanged(path) }
      if names.contains("MTU"),
        let mtu = host.store.property("MTU", BlueZ.gattCharacteristic, of: path, as: UInt16.self)
      {
        setMTU(mtu)
      }
      if names.contains("Flags") { isDatabaseOld = true }
    case .added(let path, BlueZ.gattService), .removed(let path, BlueZ.gattService, _):
      isDatabaseOld = true
      guard isResolved, let start = RemoteDatabase.service(of: path, device: self.path)?.start else { return }
      let old = database.services.first { $0.path == path }?.remote.handles
      settle { [weak self] in
        guard let self else { return }
        refresh()
        let now = database.services.first { $0.path == path }?.remote.handles
        post(.servicesChanged(peer, [old ?? now ?? start...start]))
      }
    case .removed(let path, BlueZ.gattCharacteristic, _):
      isDatabaseOld = true
      characteristicRemoved(path)
    case .added, .removed: isDatabaseOld = true
    case .changed: break
    }
  }

  /// Takes the daemon's objects anew where they have changed.
  func refresh() {
    guard isDatabaseOld else { return }
    isDatabaseOld = false
    database = RemoteDatabase(host.store, device: path)
    gate.setWritable(
      Set(database.characteristics.filter { $0.properties.contains(.writeWithoutResponse) }.map(\.handle)))
  }

  /// Clients have asked for services: those that are there are known now.
  func noteServices(_ services: [RemoteService]) {
    let new = Set(services.map(\.uuid))
    guard !new.isSubset(of: knownServices) else { return }
    knownServices.formUnion(new)
    central.noteLink(path)
  }

  // MARK: ATT MTU

  /// bluetoothd 5.66 as a server drops commands with more than 510 octets, so that is what an MTU of 517 is good for.
  static let largestMTU: UInt16 = 513

  func setMTU(_ mtu: UInt16) {
    let mtu = Int(max(23, min(mtu, Self.largestMTU)))
    guard !isOver, gate.setMTU(mtu) else { return }
    post(.mtuChanged(peer, mtu))
  }

  /// Before any request goes on, so that who has found a device's services knows how much fits into a packet.
  ///
  /// The daemon's objects of a device outlive its links. Between two links they have no such property, and no signal tells that it is
  /// back, or that it has changed: so the copy says nothing about it.
  private func learnMTU(then goOn: @escaping @Sendable () -> Void) {
    guard let characteristic = database.characteristics.first else { return goOn() }
    host.call(
      characteristic.path, DBusWellKnown.properties, "Get",
      [.string(BlueZ.gattCharacteristic), .string("MTU")]
    ) { [weak self] result in
      guard let self, !isOver else { return }
      if case .success(let reply) = result, case .uint16(let mtu)? = reply.property {
        setMTU(mtu)
        return goOn()
      }
      // Daemons before 5.62 tell it together with a descriptor only.
      guard
        let first = database.characteristics.first(where: { $0.properties.contains(.writeWithoutResponse) })
      else { return goOn() }
      acquireWrites(first.handle, then: goOn)
    }
  }
}

/// Hands the gate's tasks to its session, which is made after it.
private final class TaskRelay: @unchecked Sendable {
  // Set once before the gate is shared.
  private weak var session: LinkSession?
  private weak var host: BlueZHost?

  func set(_ session: LinkSession, _ host: BlueZHost) {
    self.session = session
    self.host = host
  }

  func ask(_ task: WriteGate.Task) { host?.async { [weak session] in session?.carryOut(task) } }
}
