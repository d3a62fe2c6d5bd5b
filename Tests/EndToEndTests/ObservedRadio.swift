import Locking
import Foundation
import Radio

/// A radio that writes down what its centrals send and are told, and passes everything on.
final class ObservedRadio: Radio {
  /// One write without response.
  struct Write: Sendable {
    let count: Int
    let attMTU: Int
    let outcome: WriteOutcome
    let at: Duration
  }

  struct Log: Sendable {
    var writes: [Write] = []
    var notifications: [Data] = []
    var channels = 0
    /// What channels have taken and given, with the times.
    var channelWrites: [(count: Int, at: Duration)] = []
    var channelReads: [(count: Int, at: Duration)] = []
    /// When each notification came.
    var notifiedAt: [Duration] = []
    var connections = 0
    /// When each link was up.
    var connectedAt: [Duration] = []
    /// When the end of each link was told.
    var disconnectedAt: [Duration] = []
    var isScanning = false
    /// Connections that were asked for.
    var requests = 0
    /// What was carried and when, to be compared with another push of the same bytes.
    var course: [[Duration]] {
      [writes.map(\.at), notifiedAt, channelWrites.map(\.at), channelReads.map(\.at), connectedAt]
    }
    var refusals: Int { writes.count { $0.outcome == .notReady } }
    var accepted: [Write] { writes.filter { $0.outcome == .accepted } }
  }

  let base: any Radio
  private let log = PosixMutex(Log())
  /// How long a request for a channel is held back before the radio hears of it.
  private let channelDelay = PosixMutex(Duration.zero)
  private struct OpenChannel { weak var channel: (any RadioChannel)? }
  private let openChannels = PosixMutex([OpenChannel]())

  init(_ base: any Radio) { self.base = base }

  func holdChannels(for delay: Duration) { channelDelay.withLock { $0 = delay } }

  /// Ends the channels that are open, and nothing of their links.
  func closeChannels() {
    for open in openChannels.withLock({ $0 }) { open.channel?.close() }
  }

  var seen: Log { log.withLock { $0 } }
  var name: String { base.name }
  var clock: any RadioClock { base.clock }

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    let central = base.makeCentral { [weak self] event in
      self?.note(event)
      sink(self?.observing(event) ?? event)
    }
    return ObservedCentral(central, radio: self)
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    base.makePeripheral(sink: sink)
  }

  private func note(_ event: CentralEvent) {
    switch event {
    case .notified(_, _, let value):
      let now = clock.now
      log.withLock { log in
        log.notifications.append(value)
        log.notifiedAt.append(now)
      }
    case .completed(_, _, .success(.channel(let channel))):
      openChannels.withLock { $0.append(OpenChannel(channel: channel)) }
    case .connected:
      let now = clock.now
      log.withLock { log in
        log.connections += 1
        log.connectedAt.append(now)
      }
    case .disconnected:
      let now = clock.now
      log.withLock { $0.disconnectedAt.append(now) }
    default: break
    }
  }

  /// Puts an observed channel in the place of one that was opened.
  private func observing(_ event: CentralEvent) -> CentralEvent {
    guard case .completed(let id, let peer, .success(.channel(let channel))) = event else { return event }
    return .completed(id, peer, .success(.channel(ObservedChannel(channel, radio: self))))
  }

  fileprivate func noteChannelWrite(_ count: Int) {
    let now = clock.now
    if count > 0 { log.withLock { $0.channelWrites.append((count, now)) } }
  }

  fileprivate func noteChannelRead(_ count: Int) {
    let now = clock.now
    if count > 0 { log.withLock { $0.channelReads.append((count, now)) } }
  }

  fileprivate func note(_ write: Write) { log.withLock { $0.writes.append(write) } }
  fileprivate func noteScan(_ isOn: Bool) { log.withLock { $0.isScanning = isOn } }
  fileprivate func noteRequest() { log.withLock { $0.requests += 1 } }
  fileprivate func noteChannel() -> Duration {
    log.withLock { $0.channels += 1 }
    return channelDelay.withLock { $0 }
  }
}

private final class ObservedChannel: RadioChannel {
  private let base: any RadioChannel
  private let radio: ObservedRadio

  init(_ base: any RadioChannel, radio: ObservedRadio) {
    self.base = base
    self.radio = radio
  }

  var psm: PSM { base.psm }
  var peer: PeerID { base.peer }
  var hasBytes: Bool { base.hasBytes }
  var hasSpace: Bool { base.hasSpace }
  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?) { base.setSink(sink) }
  func close() { base.close() }

  func read(upTo count: Int) -> Data {
    let bytes = base.read(upTo: count)
    radio.noteChannelRead(bytes.count)
    return bytes
  }

  func write(_ bytes: Data) -> Int {
    let count = base.write(bytes)
    radio.noteChannelWrite(count)
    return count
  }
}

private final class ObservedCentral: CentralRadio {
  private let base: any CentralRadio
  private let radio: ObservedRadio
  private let held = PosixMutex([ScheduledWork]())

  init(_ base: any CentralRadio, radio: ObservedRadio) {
    self.base = base
    self.radio = radio
  }

  var adapterState: AdapterState { base.adapterState }
  func startScan(_ filter: ScanFilter) {
    radio.noteScan(true)
    base.startScan(filter)
  }
  func stopScan() {
    radio.noteScan(false)
    base.stopScan()
  }
  func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { base.knownPeers(ids) }
  func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] {
    base.connectedPeers(withServices: services)
  }
  func watchLinks(_ filter: LinkFilter?) { base.watchLinks(filter) }
  func connect(_ peer: PeerID) {
    radio.noteRequest()
    base.connect(peer)
  }
  func cancelConnection(_ peer: PeerID) { base.cancelConnection(peer) }
  func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {
    base.request(request, of: peer, id: id)
  }
  func attMTU(of peer: PeerID) -> Int? { base.attMTU(of: peer) }
  func canWriteWithoutResponse(to peer: PeerID) -> Bool { base.canWriteWithoutResponse(to: peer) }
  func writeWithoutResponse(_ value: Data, to characteristic: AttributeHandle, of peer: PeerID)
    -> WriteOutcome
  {
    let mtu = base.attMTU(of: peer) ?? 0
    let outcome = base.writeWithoutResponse(value, to: characteristic, of: peer)
    radio.note(.init(count: value.count, attMTU: mtu, outcome: outcome, at: radio.clock.now))
    return outcome
  }
  func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {
    let delay = radio.noteChannel()
    guard delay > .zero else { return base.openChannel(psm: psm, of: peer, id: id) }
    let work = radio.clock.schedule(after: delay) { [base] in base.openChannel(psm: psm, of: peer, id: id) }
    held.withLock { $0.append(work) }
  }
}
