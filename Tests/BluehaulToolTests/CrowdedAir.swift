import Foundation
import Radio
import VirtualRadio

/// A radio on which a scan comes across what a test says, each a while after the scan has begun, in simulated time.
final class CrowdedAir: Radio {
  /// What is seen so long after the scan has begun; asked for at that moment.
  struct Moment: Sendable {
    let delay: Duration
    let sightings: @Sendable () -> [Sighting]

    init(_ delay: Duration, _ sightings: @escaping @Sendable () -> [Sighting]) {
      self.delay = delay
      self.sightings = sightings
    }
  }

  typealias Course = [Moment]

  let name = "crowded"
  private let base: VirtualRadio
  private let lockStep = VirtualClock(.lockStep)
  private let course: @Sendable () -> Course

  init(_ course: @escaping @Sendable () -> Course) throws {
    self.course = course
    base = VirtualAir(clock: lockStep).makeRadio(name: "crowded")
    try lockStep.start { _ in }
  }

  deinit { lockStep.stop() }

  var clock: any RadioClock { lockStep }

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    Central(base.makeCentral(sink: sink)) { [lockStep, course] in
      for moment in course() {
        _ = lockStep.schedule(after: moment.delay) {
          for sighting in moment.sightings() { sink(.discovered(sighting)) }
        }
      }
    }
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    base.makePeripheral(sink: sink)
  }

  private final class Central: CentralRadio {
    private let base: any CentralRadio
    private let onScan: @Sendable () -> Void

    init(_ base: any CentralRadio, onScan: @escaping @Sendable () -> Void) {
      self.base = base
      self.onScan = onScan
    }

    var adapterState: AdapterState { base.adapterState }
    func startScan(_ filter: ScanFilter) { onScan() }
    func stopScan() {}
    func knownPeers(_ ids: [PeerID]) -> [KnownPeer] { base.knownPeers(ids) }
    func connectedPeers(withServices services: [BluetoothUUID]) -> [KnownPeer] {
      base.connectedPeers(withServices: services)
    }
    func watchLinks(_ filter: LinkFilter?) { base.watchLinks(filter) }
    func connect(_ peer: PeerID) { base.connect(peer) }
    func cancelConnection(_ peer: PeerID) { base.cancelConnection(peer) }
    func request(_ request: GATTRequest, of peer: PeerID, id: RequestID) {
      base.request(request, of: peer, id: id)
    }
    func attMTU(of peer: PeerID) -> Int? { base.attMTU(of: peer) }
    func canWriteWithoutResponse(to peer: PeerID) -> Bool { base.canWriteWithoutResponse(to: peer) }
    func writeWithoutResponse(
      _ value: Data, to characteristic: AttributeHandle, of peer: PeerID
    ) -> WriteOutcome { base.writeWithoutResponse(value, to: characteristic, of: peer) }
    func openChannel(psm: PSM, of peer: PeerID, id: RequestID) {
      base.openChannel(psm: psm, of: peer, id: id)
    }
  }
}
