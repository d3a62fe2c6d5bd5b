internal import Locking
internal import CoreFoundation
public import Dispatch
public import Foundation
internal import Radio

/// The central role: finds devices, connects to them, and makes one ``CBPeripheral`` of each.
///
/// Commands are accepted while ``state`` is `poweredOn`; others are dropped with a line in the log. When Bluetooth goes off, all peripherals become
/// disconnected without further callbacks, and scans and pending connections do not come back by themselves.
// Sendable: what changes is in `core`, behind its lock.
open class CBCentralManager: CBManager, @unchecked Sendable {
  let core: CentralCore

  /// Features that a host may have.
  public struct Feature: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Scanning and connecting by extended advertising.
    public static var extendedScanAndConnect: Self { Self(rawValue: 0x01) }
  }

  /// Makes a manager without a delegate, on the main queue.
  public convenience init() { self.init(delegate: nil, queue: nil, options: nil) }

  /// Makes a manager whose delegate is called on `queue`; nil: the main queue.
  public convenience init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?) {
    self.init(delegate: delegate, queue: queue, options: nil)
  }

  /// Makes a manager whose delegate is called on `queue`; nil: the main queue.
  public init(
    delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
  ) {
    let settings = ManagerSettings<SavedCentral>(queue: queue, options: options)
    core = CentralCore(settings)
    super.init(_cb: settings.radio, log: settings.log)
    core.start(for: self, delegate: CentralManagerDelegateReference(object: delegate))
  }

  deinit { core.close() }

  /// Told what happens; held weakly.
  open var delegate: (any CBCentralManagerDelegate)? {
    get { core.state.withLock { $0.delegate }.object }
    set {
      let reference = CentralManagerDelegateReference(object: newValue)
      core.state.withLock { $0.delegate = reference }
    }
  }

  open override var state: CBManagerState { core.state.withLock { $0.adapter } }

  /// Whether a scan is on.
  open var isScanning: Bool { core.state.withLock { $0.isScanning } }

  /// Whether the host has all of `features`.
  open class func supports(_ features: Feature) -> Bool { features.isEmpty }

  /// The devices among `identifiers` that this host knows, or that this manager has an object of.
  open func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [CBPeripheral] {
    if let peripherals = core.retrieve(identifiers.map { PeerID($0) }) { return peripherals }
    report(.notPoweredOn, "retrievePeripherals")
    return []
  }

  /// The devices that this host, by any of its programs, is linked to and that have one of the services.
  ///
  /// To use one, connect to it: until then it counts as disconnected here.
  open func retrieveConnectedPeripherals(withServices serviceUUIDs: [CBUUID]) -> [CBPeripheral] {
    guard !serviceUUIDs.isEmpty else { return [] }
    let services = serviceUUIDs.map(\.value)
    return retrieve("retrieveConnectedPeripherals") { $0.connectedPeers(withServices: services) }
  }

  /// Scans until ``stopScan()``; a second call replaces the first. nil or no services: every device.
  open func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
    let request = ScanRequest(services: serviceUUIDs, options: options)
    report(core.startScan(request), "scanForPeripherals")
  }

  /// Ends the scan.
  open func stopScan() { report(core.stopScan(), "stopScan") }

  /// Connects, now or whenever the device comes into reach; ended by ``cancelPeripheralConnection(_:)`` or by releasing `peripheral`.
  ///
  /// With ``CBConnectPeripheralOptionEnableAutoReconnect`` a link that is lost is made again by itself, as often as that takes, and
  /// the manager holds the peripheral until the connection is cancelled or Bluetooth goes off. That is for delegates with
  /// ``CBCentralManagerDelegate/centralManager(_:didDisconnectPeripheral:timestamp:isReconnecting:error:)``; one that has the older method gets no more than a
  /// disconnection.
  open func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil) {
    core.noteAbsent(options)
    report(core.connect(peripheral, ConnectOptions(options, now: core.clock.now)), "connect")
  }

  /// Ends the link, or a pending connection; either is answered by a disconnection without an error.
  open func cancelPeripheralConnection(_ peripheral: CBPeripheral) {
    report(core.cancel(peripheral), "cancelPeripheralConnection")
  }

  /// Asks to be told of links of this host, whichever of its programs makes them, by
  /// ``CBCentralManagerDelegate/centralManager(_:connectionEventDidOccur:for:)``.
  ///
  /// Told are devices for which any of the options holds; a second call replaces the first, and nil or no options ends it. It may be called in every
  /// state and lasts while Bluetooth is off. The devices are not connected to this manager by that, and it does not hold their objects.
  open func registerForConnectionEvents(options: [CBConnectionEventMatchingOption: Any]? = nil) {
    var services = OptionValue.uuids(options?[.serviceUUIDs])
    if services.count > Self.mostMatchingServices {
      log.misuse(
        self,
        "matches at most \(Self.mostMatchingServices) services; registerForConnectionEvents ignores those beyond"
      )
      services.removeLast(services.count - Self.mostMatchingServices)
    }
    let peers = options?[.peripheralUUIDs] as? [UUID] ?? []
    let filter = LinkFilter(services: services.map(\.value), peers: peers.map { PeerID($0) })
    core.watchLinks(filter == LinkFilter() ? nil : filter)
  }

  private static let mostMatchingServices = 4

  /// When the link ended whose end is being reported.
  var disconnectionTime: CFAbsoluteTime { core.state.withLock { $0.disconnectionTime } }

  private func retrieve(_ command: String, _ list: (any CentralRadio) -> [KnownPeer]) -> [CBPeripheral] {
    if let peripherals = core.retrieve(list) { return peripherals }
    report(.notPoweredOn, command)
    return []
  }

  private func report(_ misuse: CentralCore.Misuse?, _ command: String) {
    if let misuse { core.logMisuse(misuse, of: self, command: command) }
  }
}
