internal import Locking
public import Dispatch
public import Foundation
internal import Radio

/// The peripheral role: publishes services, advertises, answers centrals, and accepts L2CAP channels.
///
/// Commands are accepted while ``state`` is `poweredOn`; others are dropped with a line in the log. When Bluetooth goes off, advertising stops and
/// centrals are gone; below `poweredOff` the services are gone as well.
// Sendable: what changes is in `core`, behind its lock.
open class CBPeripheralManager: CBManager, @unchecked Sendable {
  let core: PeripheralCore

  /// Makes a manager without a delegate, on the main queue.
  public convenience init() { self.init(delegate: nil, queue: nil, options: nil) }

  /// Makes a manager whose delegate is called on `queue`; nil: the main queue.
  public convenience init(delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?) {
    self.init(delegate: delegate, queue: queue, options: nil)
  }

  /// Makes a manager whose delegate is called on `queue`; nil: the main queue.
  public init(
    delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
  ) {
    let settings = ManagerSettings<SavedPeripheral>(queue: queue, options: options)
    core = PeripheralCore(settings)
    super.init(_cb: settings.radio, log: settings.log)
    core.start(for: self, delegate: PeripheralManagerDelegateReference(object: delegate))
  }

  deinit { core.close() }

  /// Told what happens; held weakly.
  open var delegate: (any CBPeripheralManagerDelegate)? {
    get { core.state.withLock { $0.delegate }.object }
    set {
      let reference = PeripheralManagerDelegateReference(object: newValue)
      core.state.withLock { $0.delegate = reference }
    }
  }

  open override var state: CBManagerState { core.state.withLock { $0.adapter } }

  /// Whether this manager advertises.
  open var isAdvertising: Bool { core.state.withLock { $0.isAdvertising } }

  /// Whether this process may share data; the same as ``CBManager/authorization``.
  @available(*, deprecated, message: "Use CBManager.authorization instead")
  open class func authorizationStatus() -> CBPeripheralManagerAuthorizationStatus {
    switch CBManager.authorization {
    case .notDetermined: .notDetermined
    case .restricted: .restricted
    case .denied: .denied
    case .allowedAlways: .authorized
    }
  }

  /// Advertises a local name and service UUIDs; other keys are left out, with a line in the log.
  ///
  /// There are 28 octets for both in the advertisement and 31 more in the scan response; each kind of data costs 2. A name that does not
  /// fit is shortened, services that do not fit are left out, and the log says so.
  open func startAdvertising(_ advertisementData: [String: Any]?) {
    let known = [CBAdvertisementDataLocalNameKey, CBAdvertisementDataServiceUUIDsKey]
    for key in (advertisementData ?? [:]).keys.sorted() where !known.contains(key) {
      log.note("\(key) cannot be advertised and was left out; there are local name and service UUIDs.")
    }
    let request = AdvertisementRequest(advertisementData)
    let budget = request.budget
    if budget.isNameShortened, let name = budget.advertisement.localName {
      log.note("The advertised name is too long and was shortened to \"\(name)\".")
    }
    for uuid in budget.leftOut { log.note("There was no room to advertise the service \(uuid).") }
    command("startAdvertising") { state, client in
      guard state.advertising == .off else {
        core.inbox.post(.advertisingAlready)
        return
      }
      state.advertising = .starting
      state.advertised = request
      core.changed()
      client.startAdvertising(budget.advertisement)
    }
  }

  /// Ends advertising.
  open func stopAdvertising() {
    command("stopAdvertising") { state, client in
      client.stopAdvertising()
      core.stopAdvertising(&state)
      core.changed()
    }
  }

  /// Wishes for a shorter or longer connection interval.
  open func setDesiredConnectionLatency(
    _ latency: CBPeripheralManagerConnectionLatency, for central: CBCentral
  ) {
    let wish: LinkLatency =
      switch latency {
      case .low: .low
      case .medium: .medium
      case .high: .high
      }
    command("setDesiredConnectionLatency") { _, client in client.requestLatency(wish, for: central.peer) }
  }

  /// Publishes a service; included services must have been added before.
  open func add(_ service: CBMutableService) {
    var refusal: LocalDatabase.Refusal?
    var isDouble = false
    command("add") { state, client in
      do throws(LocalDatabase.Refusal) {
        let local = try state.database.add(service)
        isDouble = core.hasRestored(service.uuid, state)
        state.published[local.id] = PeripheralCore.Published(service, local)
        core.changed()
        client.addService(local)
      } catch {
        refusal = error
        core.inbox.post(.addFailed(service, error.code))
      }
    }
    if let refusal { log.misuse(self, "\(refusal.words); the service \(service.uuid) was not added") }
    if isDouble {
      log.note(
        "The service \(service.uuid) was restored and is there already; now there are two of that type.")
    }
  }

  /// Withdraws a service.
  open func remove(_ service: CBMutableService) {
    command("remove") { state, client in
      guard let id = state.database.id(of: service) else { return }
      state.database.remove(id)
      state.published[id] = nil
      core.changed()
      client.removeService(id)
    }
  }

  /// Withdraws all services.
  open func removeAllServices() {
    command("removeAllServices") { state, client in
      state.database.removeAll()
      state.published = [:]
      core.changed()
      client.removeAllServices()
    }
  }

  /// Answers a read with its ``CBATTRequest/value``, or a batch of writes, given its first request, as a whole. Once each.
  open func respond(to request: CBATTRequest, withResult result: CBATTError.Code) {
    guard let client = core.client, request.ticket.isOf(client) else {
      log.misuse(self, "got a response to a request of another manager; it was dropped")
      return
    }
    guard !request.ticket.answer(request.value, result) else { return }
    log.misuse(self, "answers each request once; a second response was dropped")
  }

  /// Notifies or indicates `value` to the subscribed centrals, or to those of them in `centrals`.
  ///
  /// Returns false where the queue is full: nothing was sent then, and
  /// ``CBPeripheralManagerDelegate/peripheralManagerIsReady(toUpdateSubscribers:)`` comes when there is room again. A value that is longer than a
  /// central's ``CBCentral/maximumUpdateValueLength`` is cut for it.
  open func updateValue(
    _ value: Data, for characteristic: CBMutableCharacteristic, onSubscribedCentrals centrals: [CBCentral]?
  ) -> Bool {
    let target = core.state.withLock { state -> (any PeripheralRadio, LocalCharacteristicID)?? in
      guard state.adapter == .poweredOn, let client = state.client else { return nil }
      return .some(state.database.id(of: characteristic).map { (client, $0) })
    }
    switch target {
    case .none:
      logNotPoweredOn("updateValue")
      return false
    case .some(.none):
      log.misuse(self, "has not added the characteristic \(characteristic.uuid); the update was dropped")
      return false
    case .some(.some(let (client, id))): return client.notify(value, of: id, to: centrals?.map(\.peer))
    }
  }

  /// Accepts L2CAP channels on a PSM that the system chooses.
  open func publishL2CAPChannel(withEncryption encryptionRequired: Bool) {
    command("publishL2CAPChannel") { _, client in
      client.publishChannel(requiresEncryption: encryptionRequired)
    }
  }

  /// Stops accepting channels on a PSM and ends its open ones.
  open func unpublishL2CAPChannel(_ PSM: CBL2CAPPSM) {
    command("unpublishL2CAPChannel") { _, client in client.unpublishChannel(PSM) }
  }

  /// Runs a command with the lock held, where commands are accepted.
  private func command(_ name: String, _ body: (inout PeripheralCore.State, any PeripheralRadio) -> Void) {
    let isAccepted = core.state.withLock { state in
      guard state.adapter == .poweredOn, let client = state.client else { return false }
      body(&state, client)
      return true
    }
    if !isAccepted { logNotPoweredOn(name) }
  }

  private func logNotPoweredOn(_ command: String) {
    log.misuse(self, "accepts this command only while it is powered on; \(command) was dropped")
  }
}
