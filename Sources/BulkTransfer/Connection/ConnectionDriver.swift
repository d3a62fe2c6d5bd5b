internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// Whoever a ``ConnectionDriver`` works for; called on its queue.
protocol ConnectionClient: AnyObject {
  /// The link, or what was discovered on it, is gone; comes before the state that follows.
  func connectionEnded(_ why: String)
  /// The connection has come to another state.
  func connectionEntered(_ state: ConnectionMachine.State)
  /// The peripheral tells something.
  func connectionTold(_ event: PeripheralEvent)
  /// The device could not be remembered or recalled; the connection goes on without.
  func connectionMemoryFailed(_ error: TransferError)
}

/// Does what a ``ConnectionMachine`` decides: owns the manager, the peripheral, the claim on the device, and a timer.
// Sendable: everything is touched on `queue` only.
final class ConnectionDriver: NSObject, @unchecked Sendable {
  /// What a connection is made with.
  struct Setup: Sendable {
    var target: DeviceTarget
    var services: [ServiceRequirement] = []
    /// Services of which a device advertises one; empty: every device is looked at.
    var advertised: [String] = []
    var configuration = ConnectionConfiguration()
    var memory: KnownDevices?
    var managerOptions: [String: any Sendable] = [:]
  }

  let setup: Setup
  let clock: any TransferClock
  let queue: DispatchQueue
  weak var client: (any ConnectionClient)?

  private(set) var machine: ConnectionMachine
  private(set) var manager: CBCentralManager?
  /// The device that is connected to, or is being connected to.
  private(set) var peripheral: CBPeripheral?
  /// Devices that may come to be connected to. Held: a host need not keep what nobody holds.
  private var candidates: [UUID: CBPeripheral] = [:]
  /// Devices whose link this side has ended, or the attempt to make one, without having been told of that end yet.
  private var ending: Set<UUID> = []
  private var claim: (device: UUID, claim: DeviceClaim)?
  /// What could not be written at once.
  private var unremembered: KnownDevices.Device?
  private var waiting: [ConnectionMachine.Input] = []
  private var timer: QueueTimer?
  private var isHandling = false
  private var isStopped = false
  /// Discoveries of services that are not answered; only the answer to the last one counts.
  var awaitedDiscoveries = 0
  private var hasRestoredScan = false
  private static let mostCandidates = 16

  init(_ setup: Setup, clock: any TransferClock, queue: DispatchQueue) {
    self.setup = setup
    self.clock = clock
    self.queue = queue
    machine = ConnectionMachine(
      target: setup.target, services: setup.services, configuration: setup.configuration)
    super.init()
    timer = QueueTimer(clock: clock, queue: queue) { [weak self] in self?.handle(.deadline) }
  }

  var state: ConnectionMachine.State { machine.state }

  // MARK: From the owner

  /// Wants the connection; the first time, the manager is made.
  func connect() {
    if manager == nil { start() }
    handle(.connect)
  }

  private func start() {
    var known: KnownDevices.Device?
    do throws(TransferError) {
      known = try setup.memory?.device(for: setup.target)
    } catch {
      client?.connectionMemoryFailed(error)
    }
    machine = ConnectionMachine(
      target: setup.target, services: setup.services, configuration: setup.configuration,
      memory: known?.identifier, memoryName: known?.ownName)
    var options: [String: Any] = setup.managerOptions
    options[CBCentralManagerOptionShowPowerAlertKey] = false
    manager = CBCentralManager(delegate: self, queue: queue, options: options)
  }

  /// Passes an input to the machine and does what it wants; may be called from within itself.
  func handle(_ input: ConnectionMachine.Input) {
    guard !isStopped else { return }
    waiting.append(input)
    guard !isHandling else { return }
    isHandling = true
    defer { isHandling = false }
    while !waiting.isEmpty {
      let before = machine.state
      let actions = machine.handle(waiting.removeFirst(), now: clock.now)
      if before.isLinked, !machine.state.isLinked || (before.isUsable && !machine.state.isUsable) {
        client?.connectionEnded(machine.lastLoss)
      }
      for action in actions where !isStopped { perform(action) }
      // What is given up is free for others.
      if !machine.state.isWanted { claim = nil }
      if machine.state != before { client?.connectionEntered(machine.state) }
    }
    if !isStopped { timer?.set(to: machine.deadline) }
  }

  /// Ends everything; nothing is told any more. May be called from within a call of the client.
  func stop() {
    remember(isLastTime: true)
    client = nil
    isStopped = true
    timer?.cancel()
    waiting = []
    // Without a radio there is nothing to end.
    manager.poweredOn?.stopScan()
    if let peripheral {
      peripheral.delegate = nil
      manager.poweredOn?.cancelPeripheralConnection(peripheral)
    }
    peripheral = nil
    candidates = [:]
    manager?.delegate = nil
    manager = nil
    claim = nil
  }

  // MARK: Actions

  private func perform(_ action: ConnectionMachine.Action) {
    switch action {
    case .lookUp(let identifiers): lookUp(identifiers)
    case .scan:
      let services = setup.advertised.map { CBUUID(string: $0) }
      manager?.scanForPeripherals(withServices: services.isEmpty ? nil : services, options: nil)
    case .stopScan: manager?.stopScan()
    case .connect(let id): connect(to: id)
    case .disconnect: disconnect()
    case .discoverServices:
      awaitedDiscoveries += 1
      peripheral?.discoverServices(setup.services.map { CBUUID(string: $0.service) })
    case .discoverCharacteristics(let service): discoverCharacteristics(of: service)
    case .remember(let id):
      unremembered = KnownDevices.Device(
        identifier: id, name: nameToRemember,
        ownName: peripheral?.name == nameToRemember ? nil : peripheral?.name, lastConnected: Date(),
        services: setup.services.map(\.service))
      remember()
    case .forget(let id):
      unremembered = nil
      do throws(TransferError) {
        _ = try setup.memory?.forget { $0.identifier == id }
      } catch {
        client?.connectionMemoryFailed(error)
      }
    }
  }

  private func lookUp(_ identifiers: [UUID]) {
    guard let manager else { return }
    var known: [DeviceSighting] = []
    let services = setup.services.map { CBUUID(string: $0.service) }
    if !services.isEmpty {
      for peripheral in manager.retrieveConnectedPeripherals(withServices: services) {
        known.append(
          DeviceSighting(
            identifier: peripheral.identifier, knownName: peripheral.name, isConnected: true))
        hold(peripheral)
      }
    }
    if !identifiers.isEmpty {
      for peripheral in manager.retrievePeripherals(withIdentifiers: identifiers) {
        known.append(DeviceSighting(identifier: peripheral.identifier, knownName: peripheral.name))
        hold(peripheral)
      }
    }
    handle(.known(known))
  }

  private func hold(_ peripheral: CBPeripheral) {
    guard candidates.count < Self.mostCandidates else { return }
    candidates[peripheral.identifier] = peripheral
  }

  private func connect(to id: UUID) {
    guard let manager else { return }
    let found =
      peripheral?.identifier == id
      ? peripheral : candidates[id] ?? manager.retrievePeripherals(withIdentifiers: [id]).first
    guard let found else { return handle(.lost("the adapter does not know the device any more")) }
    if let memory = setup.memory, claim?.device != id {
      claim = nil
      do throws(TransferError) {
        claim = (id, try memory.claim(id, name: nameOfTarget ?? found.name))
      } catch {
        return handle(.claimRefused(error))
      }
    }
    if peripheral !== found { peripheral?.delegate = nil }
    peripheral = found
    found.delegate = self
    awaitedDiscoveries = 0
    manager.connect(found, options: nil)
  }

  /// Ends the link, or the attempt to make one. That end is told later, perhaps when the next attempt is under way, and is no news then.
  private func disconnect() {
    guard let peripheral, peripheral.state != .disconnected else { return }
    ending.insert(peripheral.identifier)
    manager?.cancelPeripheralConnection(peripheral)
  }

  private func discoverCharacteristics(of service: String) {
    guard let requirement = setup.services.first(where: { $0.service == service }),
      let found = self.service(service)
    else { return }
    let wanted = requirement.characteristics + requirement.optionalCharacteristics
    peripheral?.discoverCharacteristics(wanted.map { CBUUID(string: $0) }, for: found)
  }

  /// A required characteristic, once it was discovered.
  func characteristic(_ uuid: CBUUID) -> CBCharacteristic? {
    for requirement in setup.services {
      if let found = service(requirement.service)?.characteristics?.first(where: { $0.uuid == uuid }) {
        return found
      }
    }
    return nil
  }

  /// A required service, once it was discovered.
  func service(_ uuid: String) -> CBService? {
    let uuid = CBUUID(string: uuid)
    return peripheral?.services?.first { $0.uuid == uuid }
  }

  private var nameOfTarget: String? { if case .name(let name) = setup.target { name } else { nil } }
  private var nameToRemember: String? { nameOfTarget ?? peripheral?.name }

  private func remember(isLastTime: Bool = false) {
    guard let device = unremembered, let memory = setup.memory else { return }
    do throws(TransferError) {
      unremembered = nil
      if let damage = try memory.remember(device) { client?.connectionMemoryFailed(damage) }
    } catch  where error.code == .locked && !isLastTime {
      // Another process is writing its own device down; this one's turn comes at the end.
      unremembered = device
    } catch {
      client?.connectionMemoryFailed(error)
    }
  }

  // MARK: From Core Bluetooth

  /// Whether the end of a connection is one that this side has not asked for.
  private func isNews(of peripheral: CBPeripheral) -> Bool {
    if ending.remove(peripheral.identifier) != nil { return false }
    return peripheral === self.peripheral
  }

  private func lostRadio(_ why: String, isFinal: Bool) {
    let wasWaiting = state == .waitingForRadio
    handle(.radioUnavailable(why, isFinal: isFinal))
    // There were no links yet, and what was restored waits on.
    if wasWaiting { return }
    // Links end without a word of their own, and the objects may be void afterwards.
    ending = []
    candidates = [:]
    peripheral?.delegate = nil
    peripheral = nil
  }
}

extension ConnectionDriver: CBCentralManagerDelegate {
  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    if let why = central.state.unusable {
      lostRadio(why.words, isFinal: why.isFinal)
    } else {
      // A search of the former run is none of this one.
      if hasRestoredScan { central.stopScan() }
      hasRestoredScan = false
      handle(.radioReady)
    }
  }

  func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
    let restored = dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? []
    hasRestoredScan = dict[CBCentralManagerRestoredStateScanServicesKey] != nil || central.isScanning
    handle(
      .restored(
        restored.map {
          DeviceSighting(
            identifier: $0.identifier, knownName: $0.name, isConnected: $0.state == .connected)
        }))
    // What nobody holds, the system gives up.
    for peripheral in restored where peripheral.identifier == machine.device { hold(peripheral) }
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    let sighting = DeviceSighting(peripheral, advertisementData, RSSI)
    guard machine.device == sighting.identifier || setup.target.matches(sighting) else { return }
    hold(peripheral)
    handle(.sighted(sighting))
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    guard peripheral === self.peripheral else { return }
    ending.remove(peripheral.identifier)
    candidates = [:]
    handle(.connected(name: peripheral.name))
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard isNews(of: peripheral) else { return }
    handle(.lost(error?.localizedDescription ?? "the connection failed"))
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard isNews(of: peripheral) else { return }
    handle(.lost(error?.localizedDescription ?? "the connection was ended"))
  }
}
