internal import DBus
internal import Dispatch
internal import Locking
internal import Radio

/// Is told of what happens to the daemon and its objects; on the host's queue.
protocol BlueZObserver: AnyObject, Sendable {
  /// The adapter's state, at first and at each change. In `poweredOn` the adapter's path is set.
  func adapterStateChanged(_ state: AdapterState)

  /// Something of the daemon's objects has changed; the store has it already. Not called for what goes with the daemon.
  func objectChanged(_ change: ObjectStore.Change)

  /// The daemon says why a link ends; it does so before, or together with, the property.
  func deviceDisconnected(_ path: ObjectPath, _ reason: RadioError)
}

extension BlueZObserver {
  func deviceDisconnected(_ path: ObjectPath, _ reason: RadioError) {}
}

/// bluetoothd as all clients of one adapter share it: one connection to the bus, a copy of the daemon's objects, the adapter.
///
/// Everything in it happens on ``queue``, which is the connection's too. It lives as long as a client or the radio has it.
// All members but `queue` are reached on the queue only, which the entry points check.
final class BlueZHost: @unchecked Sendable {
  let queue = DispatchQueue(label: "BlueZRadio.host")
  private let address: DBusAddress
  let clock: any RadioClock
  private let note: @Sendable (String) -> Void

  private(set) var bus: DBusConnection?
  private(set) var store = ObjectStore()
  private(set) var adapter: AdapterChoice
  private(set) var state = AdapterState.unknown
  private var subscriptions: [DBusSubscription] = []
  private var observers: [Observer] = []
  /// The daemon that the store is of, by its unique name; its objects may still be loading.
  private(set) var owner: String?
  private var isLoaded = false
  private var hasSeenDaemon = false
  private var hasHadAdapter = false
  /// The adapter has just gone, and may be back in a moment.
  private var isSettling = false
  private var settlings = 0
  /// Counts lives of the connection and of the daemon, so that late answers are known as such.
  private var life = 0
  private var attempts = 0

  /// What any thread may ask for.
  struct Snapshot: Sendable, Hashable {
    var state = AdapterState.unknown
    var authorization = RadioAuthorization.allowed
  }

  private let shared = PosixMutex(Snapshot())
  private let lastNumber = PosixMutex<UInt64>(0)

  /// The central role, made for its first client.
  private(set) lazy var central: CentralHost = {
    let central = CentralHost(self)
    add(central)
    return central
  }()
  private(set) lazy var pairing = PairingAgent(self)
  var snapshot: Snapshot { shared.withLock { $0 } }

  private struct Observer {
    weak var object: (any BlueZObserver)?
  }

  init(
    adapter: String?, bus address: DBusAddress, clock: any RadioClock,
    note: @escaping @Sendable (String) -> Void
  ) {
    self.adapter = AdapterChoice(adapter)
    self.address = address
    self.clock = clock
    self.note = note
    queue.async { [weak self] in self?.connect() }
  }

  /// Runs `body` once on the queue, `delay` from now.
  func schedule(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> ScheduledWork {
    clock.schedule(after: delay) { [queue, body = whileAlive(body)] in queue.async(execute: body) }
  }

  /// What belongs to a host does not own it, and the last owner may let go of it on any thread: a block that runs as long as it lives only, and keeps it
  /// alive meanwhile.
  func whileAlive(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    { [weak self] in
      guard let self else { return }
      withExtendedLifetime(self) { body() }
    }
  }

  /// Runs something on the queue.
  func async(_ body: @escaping @Sendable () -> Void) { queue.async(execute: whileAlive(body)) }

  /// Says something to the log that a person should know.
  func log(_ text: String) { note(text) }

  /// A number that no other client has; from any thread.
  func makeNumber() -> UInt64 {
    lastNumber.withLock { number in
      number += 1
      return number
    }
  }

  /// Runs something on the queue, some time from now.
  func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
    _ = schedule(after: max(.zero, delay), body)
  }

  // MARK: Clients

  /// Tells an observer of the state, now if there is one, and of everything from now on; it is held weakly.
  func add(_ observer: any BlueZObserver) {
    dispatchPrecondition(condition: .onQueue(queue))
    observers.removeAll { $0.object == nil }
    observers.append(Observer(object: observer))
    if state != .unknown { observer.adapterStateChanged(state) }
  }

  /// Calls a method of bluetoothd; the completion runs once, on the queue, as long as the host lives. Without a bus it fails at once.
  @discardableResult
  func call(
    _ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue] = [],
    timeLimit: Duration? = DBusConnection.defaultTimeLimit,
    completion: @escaping @Sendable (Result<DBusMessage, DBusError>) -> Void
  ) -> DBusCall? {
    dispatchPrecondition(condition: .onQueue(queue))
    let message: DBusMessage
    do {
      message = try .call(
        destination: BlueZ.service, path: path, interface: interface, member: member, body: body)
    } catch {
      async { completion(.failure(error)) }
      return nil
    }
    guard let bus else {
      async {
        completion(
          .failure(
            DBusError(
              kind: .disconnected, name: DBusErrorName.disconnected, message: "there is no system bus")))
      }
      return nil
    }
    return bus.call(message, timeLimit: timeLimit) { [weak self] result in
      guard let self else { return }
      withExtendedLifetime(self) { completion(result) }
    }
  }

  // MARK: The bus

  private func connect() {
    life += 1
    let life = life
    let address = address
    let queue = queue
    Task { [weak self] in
      let result: Result<DBusConnection, DBusError>
      do {
        result = .success(try await DBusConnection.open(address, queue: queue))
      } catch let error as DBusError {
        result = .failure(error)
      } catch {
        result = .failure(
          DBusError(kind: .system, name: DBusErrorName.failed, message: String(describing: error)))
      }
      queue.async { [weak self] in self?.opened(result, life) }
    }
  }

  private func opened(_ result: Result<DBusConnection, DBusError>, _ life: Int) {
    guard life == self.life else { return }
    switch result {
    case .failure(let error):
      if attempts == 0 { note("The system bus cannot be reached: \(error)") }
      refuse(Permission.ofBus(error))
      retry { $0.connect() }
    case .success(let bus):
      attempts = 0
      self.bus = bus
      bus.whenEnded { [weak self] error in self?.busEnded(error, life) }
      follow(bus)
    }
  }

  private func busEnded(_ error: DBusError, _ life: Int) {
    guard life == self.life else { return }
    note("The connection to the system bus has ended: \(error)")
    bus = nil
    subscriptions = []
    lose()
    retry { $0.connect() }
  }

  /// Tries again, at longer and longer intervals of up to half a minute.
  private func retry(_ body: @escaping @Sendable (BlueZHost) -> Void) {
    attempts += 1
    let life = life
    _ = clock.schedule(after: .seconds(min(30, 1 << min(attempts, 5)))) { [weak self, queue] in
      queue.async { [weak self] in
        guard let self, self.life == life else { return }
        body(self)
      }
    }
  }

  // MARK: The daemon

  /// Signals first, then who owns the name, and then the objects: so nothing falls in between.
  private func follow(_ bus: DBusConnection) {
    let rules = [
      MatchRule(sender: BlueZ.service, interface: DBusWellKnown.objectManager),
      MatchRule(
        sender: BlueZ.service, pathNamespace: "/org/bluez", interface: DBusWellKnown.properties,
        member: "PropertiesChanged"),
      // Newer daemons alone send it.
      MatchRule(
        sender: BlueZ.service, pathNamespace: "/org/bluez", interface: BlueZ.device, member: "Disconnected"),
    ]
    let life = life
    for rule in rules {
      subscriptions.append(
        bus.subscribe(
          to: rule, handler: { [weak self] in self?.take($0) },
          completion: { [weak self] in self?.subscribed($0.map { _ in }, life) }))
    }
    subscriptions.append(
      bus.followOwner(
        of: BlueZ.service, handler: { [weak self] in self?.ownerChanged($0, life) },
        completion: { [weak self] in self?.subscribed($0, life) }))
  }

  private func subscribed(_ result: Result<Void, DBusError>, _ life: Int) {
    guard life == self.life, case .failure(let error) = result, error.kind != .disconnected else { return }
    note("The bus does not let this program follow bluetoothd: \(error)")
    refuse(.denied)
  }

  private func ownerChanged(_ owner: String?, _ life: Int) {
    guard life == self.life else { return }
    self.owner = owner
    guard owner != nil else {
      lose()
      if !hasSeenDaemon { startDaemon(life) }
      return
    }
    if isLoaded { lose() }
    hasSeenDaemon = true
    if hasHadAdapter { settle() }
    load()
  }

  /// bluetoothd takes its adapters back before it ends in order, and answers before it has asked the kernel for them when it begins: an adapter
  /// that was there counts as lost only after this time.
  static let settleTime = Duration.seconds(10)

  private func settle() {
    isSettling = true
    settlings += 1
    let number = settlings
    after(Self.settleTime) { [weak self] in
      guard let self, number == settlings, isSettling else { return }
      isSettling = false
      if isLoaded { look() }
    }
  }

  /// Asks the bus to start the daemon, as it does where systemd knows how.
  private func startDaemon(_ life: Int) {
    guard
      let message = try? DBusMessage.call(
        destination: DBusWellKnown.bus, path: DBusWellKnown.busPath, interface: DBusWellKnown.bus,
        member: "StartServiceByName", body: [.string(BlueZ.service), .uint32(0)])
    else { return }
    bus?.call(message) { [weak self] result in
      guard let self, life == self.life, self.owner == nil, case .failure(let error) = result else { return }
      note("bluetoothd does not run, and the bus cannot start it: \(error)")
      refuse(Permission.ofDaemon(error))
    }
  }

  private func load() {
    let owner = owner
    let life = life
    call("/", DBusWellKnown.objectManager, "GetManagedObjects") { [weak self] result in
      guard let self, life == self.life, owner == self.owner else { return }
      loaded(result)
    }
  }

  private func loaded(_ result: Result<DBusMessage, DBusError>) {
    do {
      let reply = try result.get()
      let objects = try reply.read([ObjectPath: [String: [String: DBusVariant]]].self)
      store.load(objects.mapValues { $0.mapValues { $0.mapValues(\.content) } })
      attempts = 0
      isLoaded = true
      look()
    } catch {
      let permission = Permission.ofDaemon(error)
      guard permission == .allowed else {
        note("This user may not talk to bluetoothd: \(error)")
        return refuse(permission)
      }
      note("bluetoothd does not tell its objects: \(error)")
      set(.unsupported)
      retry { $0.load() }
    }
  }

  /// The daemon has gone, and everything with it.
  private func lose() {
    store.clear()
    adapter.forget()
    pairing.reset()
    isLoaded = false
    if state != .unknown || hasSeenDaemon { set(hasSeenDaemon ? .resetting : .unsupported) }
  }

  // MARK: Signals

  private func take(_ message: DBusMessage) {
    // What was sent before the objects were loaded is in them.
    guard isLoaded, message.sender == owner else { return }
    if message.interface == BlueZ.device { return deviceDisconnected(message) }
    let change: ObjectChange?
    do { change = try ObjectChange(message) } catch {
      return note("bluetoothd sent a signal of unexpected form: \(error)")
    }
    guard let change else { return }
    apply(change)
  }

  private func deviceDisconnected(_ message: DBusMessage) {
    guard let path = message.path, let (reason, text) = try? message.read(String.self, String.self) else {
      return
    }
    let error = RadioError(disconnection: reason, text)
    for observer in observers { observer.object?.deviceDisconnected(path, error) }
  }

  /// Asks for an interface's properties, of which the daemon does not tell all changes, and then goes on.
  func refresh(_ path: ObjectPath, _ interface: String, then: @escaping @Sendable () -> Void) {
    let owner = owner
    call(path, DBusWellKnown.properties, "GetAll", [.string(interface)]) { [weak self] result in
      if let self, isLoaded, owner == self.owner, case .success(let reply) = result,
        let values = try? reply.read([String: DBusVariant].self)
      {
        let known = store.properties(interface, of: path) ?? [:]
        let changed = values.mapValues(\.content).filter { known[$0.key] != $0.value }
        let gone = known.keys.filter { values[$0] == nil }
        apply(.properties(path, interface: interface, changed: changed, invalidated: gone))
      }
      then()
    }
  }

  private func apply(_ change: ObjectChange) {
    for change in store.apply(change) {
      if case .removed(let path, BlueZ.adapter, _) = change, path == adapter.path {
        adapter.forget()
        settle()
      }
      look()
      for observer in observers { observer.object?.objectChanged(change) }
    }
  }

  private func look() {
    adapter.update(store)
    let state = adapter.state(store)
    if state == .unsupported {
      set(isSettling ? .resetting : .unsupported)
    } else {
      hasHadAdapter = true
      isSettling = false
      set(state)
    }
  }

  /// There is no adapter, since nobody answers, or since this process may not ask.
  private func refuse(_ permission: RadioAuthorization) {
    set(permission == .allowed ? .unsupported : .unauthorized, permission)
  }

  private func set(_ state: AdapterState, _ authorization: RadioAuthorization = .allowed) {
    shared.withLock { $0 = Snapshot(state: state, authorization: authorization) }
    guard state != self.state else { return }
    self.state = state
    for observer in observers { observer.object?.adapterStateChanged(state) }
  }
}
