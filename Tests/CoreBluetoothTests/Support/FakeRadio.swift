import Locking
import Foundation
import Radio

/// A radio that does what a test says: it records commands, and posts the events that the test, or a script, gives it.
final class FakeRadio: Radio {
  struct Clients: Sendable {
    weak var central: FakeCentral?
    weak var peripheral: FakePeripheral?
  }

  let name = "fake"
  let clock: any RadioClock
  let counts = FakeClock()
  private let clients = PosixMutex(Clients())
  private let first: AdapterState?

  /// - Parameter first: the state that each client is told at once; nil: none.
  init(first: AdapterState? = .poweredOn) {
    clock = counts
    self.first = first
  }

  /// The last client of the central role, as long as somebody holds it.
  var central: FakeCentral? { clients.withLock { $0.central } }

  /// The last client of the peripheral role, as long as somebody holds it.
  var peripheral: FakePeripheral? { clients.withLock { $0.peripheral } }

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    let central = FakeCentral(sink: sink)
    clients.withLock { $0.central = central }
    if let first { central.set(first) }
    return central
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    let peripheral = FakePeripheral(sink: sink)
    clients.withLock { $0.peripheral = peripheral }
    if let first { peripheral.set(first) }
    return peripheral
  }
}

/// The central role of a ``FakeRadio``.
final class FakeCentral: CentralRadio {
  enum Command: Equatable, Sendable {
    case startScan(ScanFilter)
    case stopScan
    case watchLinks(LinkFilter?)
    case connect(PeerID)
    case cancel(PeerID)
    case request(GATTRequest, RequestID)
    case write(Data, AttributeHandle)
    case openChannel(PSM, RequestID)
  }

  typealias Script = @Sendable (FakeCentral, Command) -> Void

  private struct State: Sendable {
    var adapter = AdapterState.unknown
    var commands: [Command] = []
    var script: Script?
    var mtu: Int? = 185
    var room = Int.max
    var known: [KnownPeer] = []
    var connected: [KnownPeer] = []
  }

  private let state = PosixMutex(State())
  private let sink: @Sendable (CentralEvent) -> Void

  init(sink: @escaping @Sendable (CentralEvent) -> Void) { self.sink = sink }

  var commands: [Command] { state.withLock { $0.commands } }

  /// Removes and returns what was recorded.
  func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  /// Runs inside each command, after it was recorded.
  func setScript(_ script: Script?) { state.withLock { $0.script = script } }

  func post(_ event: CentralEvent) { sink(event) }

  /// Changes the adapter's state.
  func set(_ adapter: AdapterState) {
    state.withLock { $0.adapter = adapter }
    sink(.adapterStateChanged(adapter))
  }

  func setMTU(_ mtu: Int?) { state.withLock { $0.mtu = mtu } }

  /// How many more writes without response are taken.
  func setRoom(_ room: Int) { state.withLock { $0.room = room } }

  /// Makes room for that many writes without response more.
  func addRoom(_ room: Int) { state.withLock { $0.room += room } }

  func setKnown(_ known: [KnownPeer], connected: [KnownPeer] = []) {
    state.withLock {
      $0.known = known
      $0.connected = connected
    }
  }

  private func record(_ command: Command) {
    let script = state.withLock {
      $0.commands.append(command)
      return $0.script
    }
    script?(self, command)
  }

  // MARK: CentralRadio

  var adapterState: AdapterState { state.withLock { $0.adapter } }
  func startScan(_ filter: ScanFilter) { record(.startScan(filter)) }
  func stopScan() { record(.stopScan) }
  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] {
    state.withLock { $0.known.filter { ids.contains($0.id) } }
  }
  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] {
    state.withLock { $0.connected }
  }
  func watchLinks(_ filter: LinkFilter?) { record(.watchLinks(filter)) }
  func connect(_ peer: PeerID) { record(.connect(peer)) }
  func cancelConnection(_ peer: PeerID) { record(.cancel(peer)) }
  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) { record(.request(request, id)) }
  func attMTU(of peer: PeerID) -> Int? { state.withLock { $0.mtu } }
  func canWriteWithoutResponse(to peer: PeerID) -> Bool { state.withLock { $0.room > 0 } }

  func writeWithoutResponse(_ value: Data, to characteristic: AttributeHandle, of peer: PeerID)
    -> WriteOutcome
  {
    let outcome = state.withLock { state -> WriteOutcome in
      guard let mtu = state.mtu else { return .notConnected }
      let limit = min(mtu - 3, 512)
      guard value.count <= limit else { return .tooLong(limit: limit) }
      guard state.room > 0 else { return .notReady }
      state.room -= 1
      return .accepted
    }
    if outcome == .accepted { record(.write(value, characteristic)) }
    return outcome
  }

  func openChannel(psm: PSM, of peer: PeerID, id: RequestID) { record(.openChannel(psm, id)) }
}

/// The peripheral role of a ``FakeRadio``.
final class FakePeripheral: PeripheralRadio {
  enum Command: Equatable, Sendable {
    case add(LocalService)
    case remove(LocalServiceID)
    case removeAll
    case startAdvertising(Advertisement)
    case stopAdvertising
    case respondRead(ServerRequestID, Data)
    case refuseRead(ServerRequestID, ATTErrorCode)
    case respondWrites(ServerRequestID, ATTErrorCode?)
    case notify(Data, LocalCharacteristicID, [PeerID]?)
    case publish(Bool)
    case unpublish(PSM)
    case latency(LinkLatency, PeerID)
  }

  typealias Script = @Sendable (FakePeripheral, Command) -> Void

  private struct State: Sendable {
    var adapter = AdapterState.unknown
    var commands: [Command] = []
    var script: Script?
    var mtu: Int? = 185
    var hasRoom = true
  }

  private let state = PosixMutex(State())
  private let sink: @Sendable (PeripheralEvent) -> Void

  init(sink: @escaping @Sendable (PeripheralEvent) -> Void) { self.sink = sink }

  var commands: [Command] { state.withLock { $0.commands } }

  func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  func setScript(_ script: Script?) { state.withLock { $0.script = script } }
  func setMTU(_ mtu: Int?) { state.withLock { $0.mtu = mtu } }
  func setRoom(_ hasRoom: Bool) { state.withLock { $0.hasRoom = hasRoom } }
  func post(_ event: PeripheralEvent) { sink(event) }

  func set(_ adapter: AdapterState) {
    state.withLock { $0.adapter = adapter }
    sink(.adapterStateChanged(adapter))
  }

  private func record(_ command: Command) {
    let script = state.withLock {
      $0.commands.append(command)
      return $0.script
    }
    script?(self, command)
  }

  // MARK: PeripheralRadio

  var adapterState: AdapterState { state.withLock { $0.adapter } }
  func addService(_ service: LocalService) { record(.add(service)) }
  func removeService(_ id: LocalServiceID) { record(.remove(id)) }
  func removeAllServices() { record(.removeAll) }
  func startAdvertising(_ advertisement: Advertisement) { record(.startAdvertising(advertisement)) }
  func stopAdvertising() { record(.stopAdvertising) }

  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {
    switch result {
    case .success(let value): record(.respondRead(id, value))
    case .failure(let code): record(.refuseRead(id, code))
    }
  }

  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    switch result {
    case .success: record(.respondWrites(id, nil))
    case .failure(let code): record(.respondWrites(id, code))
    }
  }

  func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool {
    guard state.withLock({ $0.hasRoom }) else { return false }
    record(.notify(value, characteristic, centrals))
    return true
  }

  func publishChannel(requiresEncryption: Bool) { record(.publish(requiresEncryption)) }
  func unpublishChannel(_ psm: PSM) { record(.unpublish(psm)) }
  func attMTU(of central: PeerID) -> Int? { state.withLock { $0.mtu } }
  func requestLatency(_ latency: LinkLatency, for central: PeerID) { record(.latency(latency, central)) }
}
