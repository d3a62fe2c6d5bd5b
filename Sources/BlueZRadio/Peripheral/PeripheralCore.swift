internal import DBus
internal import Foundation
internal import Locking
internal import Radio

/// What a client of the peripheral role has at bluetoothd: applications, an advertisement, links of centrals.
// All members but `host`, `sink`, `root` and `shared` are reached on the host's queue only.
final class PeripheralCore: BlueZObserver, @unchecked Sendable {
  /// What any thread may ask for.
  struct Shared {
    var state = AdapterState.unknown
    var subscriptions = Subscriptions()
    /// Characteristics whose values are confirmed one by one.
    var indicated: Set<LocalCharacteristicID> = []
  }

  let host: BlueZHost
  let sink: @Sendable (PeripheralEvent) -> Void
  /// Below it is everything that this client exports.
  let root: ObjectPath
  let shared = PosixMutex(Shared())

  // Services
  var book = ServiceBook()
  var applications: [ServiceBook.Ticket: Application] = [:]
  var published: [LocalCharacteristicID: ApplicationTree.Characteristic] = [:]

  // Links and requests
  /// Centrals that have done something, by their objects; an identifier holds for the life of a link.
  var centrals: [ObjectPath: PeerID] = [:]
  /// Subscriptions of bonded centrals outlive their links (Core Vol 3 Part G 3.3.3.3), and bluetoothd does not tell of them again.
  var remembered: [ObjectPath: Set<LocalCharacteristicID>] = [:]
  var requests = RequestTable()
  /// `StartNotify` follows where an `AcquireNotify` was refused, and says nothing new then.
  var announcedStarts: [LocalCharacteristicID: Int] = [:]
  /// Attributes of centrals that could not be read.
  var unreadable: Set<ObjectPath> = []
  var hasNotedPartialValue = false

  // Advertising
  var advertising = AdvertisingState()
  var advertisementExports: [UInt64: DBusExport] = [:]

  // Channels
  let sockets: any L2CAPSockets
  var listeners: [PSM: L2CAPListener] = [:]

  init(
    _ host: BlueZHost, sockets: any L2CAPSockets, sink: @escaping @Sendable (PeripheralEvent) -> Void
  ) {
    self.host = host
    self.sockets = sockets
    self.sink = sink
    root = ObjectPath.root.child("BlueZRadio").child("peripheral\(host.makeNumber())")
  }

  func start() { host.add(self) }

  /// The client was released: takes everything back.
  func end() {
    removeAllServices()
    stopAdvertising()
    closeChannels()
    for central in centrals.keys { linkEnded(central) }
    requests.failAll()
  }

  var isOn: Bool { shared.withLock { $0.state == .poweredOn } }

  // MARK: The daemon

  func adapterStateChanged(_ state: AdapterState) {
    let wasOn = isOn
    shared.withLock { shared in
      shared.state = state
      if state != .poweredOn { shared.subscriptions.endAll() }
    }
    if wasOn, state != .poweredOn {
      // Links are gone with the power, which the state says.
      for device in centrals.keys { remember(device) }
      centrals = [:]
      requests.failAll()
    }
    sink(.adapterStateChanged(state))
    switch state {
    case .poweredOn: resumeAdvertising()
    case .poweredOff: break
    case .unknown, .resetting, .unsupported, .unauthorized: withdraw()
    }
  }

  /// The daemon has dropped everything, or nothing of it can be reached.
  private func withdraw() {
    carryOut(book.withdraw())
    applications = [:]
    published = [:]
    remembered = [:]
    announcedStarts = [:]
    shared.withLock { $0.indicated = [] }
    withdrawAdvertisement()
    closeChannels()
  }

  func objectChanged(_ change: ObjectStore.Change) {
    switch change {
    case .changed(let path, BlueZ.device, let names) where names.contains("Connected"):
      if host.store.property("Connected", BlueZ.device, of: path) == true {
        linkBegan(path)
      } else {
        linkEnded(path)
      }
    case .removed(let path, BlueZ.device, _):
      linkEnded(path)
      remembered[path] = nil
    case .added(let path, BlueZ.gattCharacteristic): mtuChanged(path)
    case .changed(let path, BlueZ.gattCharacteristic, let names) where names.contains("MTU"):
      mtuChanged(path)
    default: break
    }
  }

  // MARK: Links

  /// The central that a call is for, which has a link therefore.
  func central(of call: ServerCall) throws(DBusError) -> PeerID {
    let peer = try central(at: call.device)
    shared.withLock { $0.subscriptions.touch(peer, mtu: call.mtu) }
    return peer
  }

  func central(at device: ObjectPath) throws(DBusError) -> PeerID {
    if let peer = centrals[device] { return peer }
    guard let adapter = host.adapter.path, device.isWithin(adapter),
      let address = DeviceAddress(of: device, in: host.store)
    else { throw DBusError(name: DBusErrorName.failed, message: "there is no device at \(device)") }
    centrals[device] = address.peer
    return address.peer
  }

  /// A bonded central comes back, and with it what it had subscribed to.
  private func linkBegan(_ device: ObjectPath) {
    guard let characteristics = remembered.removeValue(forKey: device), isOn,
      let peer = try? central(at: device)
    else { return }
    for characteristic in characteristics.sorted(by: { $0.rawValue < $1.rawValue }) {
      subscribe(peer, to: characteristic)
    }
  }

  private func linkEnded(_ device: ObjectPath) {
    remember(device)
    guard let peer = centrals.removeValue(forKey: device) else { return }
    unreadable = unreadable.filter { !$0.isWithin(device) }
    requests.failAll(of: device)
    let leaving = shared.withLock { $0.subscriptions.endLink(peer) }
    for characteristic in leaving.ended { sink(.unsubscribed(central: peer, characteristic)) }
    if leaving.isReady { sink(.readyToNotify) }
  }

  private func remember(_ device: ObjectPath) {
    guard let peer = centrals[device], host.store.isBonded(device) else { return }
    let subscribed = shared.withLock { shared in
      Set(published.keys.filter { shared.subscriptions.subscribers(of: $0).contains(peer) })
    }
    if !subscribed.isEmpty { remembered[device] = subscribed }
  }

  /// What bluetoothd finds at a central, it shows with the ATT MTU of the link.
  private func mtuChanged(_ attribute: ObjectPath) {
    guard let mtu = host.store.property("MTU", BlueZ.gattCharacteristic, of: attribute, as: UInt16.self),
      let peer = centrals.first(where: { attribute.isWithin($0.key) })?.value
    else { return }
    shared.withLock { $0.subscriptions.touch(peer, mtu: Int(mtu)) }
  }
}

extension DeviceAddress {
  /// The address of a device that the daemon knows.
  init?(of device: ObjectPath, in store: ObjectStore) {
    guard let text = store.property("Address", BlueZ.device, of: device, as: String.self) else { return nil }
    let kind = store.property("AddressType", BlueZ.device, of: device, as: String.self)
    self.init(text, kind: kind == "random" ? .random : .public)
  }
}

extension ObjectStore {
  /// Whether the daemon keeps keys of a device; older daemons only tell that it is paired.
  func isBonded(_ device: ObjectPath) -> Bool {
    (property("Bonded", BlueZ.device, of: device) ?? property("Paired", BlueZ.device, of: device)) == true
  }
}
