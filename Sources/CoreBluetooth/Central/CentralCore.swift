internal import Dispatch
internal import Locking
internal import Foundation
internal import Radio

/// What a central manager keeps behind its lock: the adapter's state, the scan, and the connection of each device.
///
/// Lock order: this lock, then a peripheral's, then the radio's own. The radio is called with locks held so that the order of its commands is the order
/// of the states; by its contract it returns at once and calls nobody back. Delegates are called with no lock held, on the manager's queue, one at a
/// time: everything that ends in a callback goes through ``inbox``.
final class CentralCore: Sendable {
  /// What the inbox carries.
  enum Input: Sendable {
    case radio(CentralEvent)
    /// More notifications of that device wait than may: the next one was dropped.
    case overrun(PeerID)
    /// More sightings wait than may: from here on some were dropped.
    case missed
    /// The program has asked for a connection that is there.
    case connectedAlready(PeerID)
    /// A request of that device has failed before the radio heard of it.
    case requestFailed(PeerID)
    /// The program has released the object of that device.
    case released(PeerID)
    /// The delay of a connection has passed.
    case delayElapsed(PeerID)
    /// There is saved state, of which the program is to be told.
    case restored
    /// What is saved has changed.
    case changed
  }

  /// A connection as this manager drives it.
  enum Phase: Sendable, Equatable {
    /// Neither asked for nor there. Goes to `waiting` or `connecting`.
    case idle
    /// Asked for, but not of the radio before a delay has passed. Goes to `connecting`, `idle` or `closing`.
    case waiting
    /// The radio was asked. Goes to `checking`, `connected`, `idle` or `closing`.
    case connecting
    /// A link that was lost is up again, and what is known of the device is compared with what it has. Goes to `connected`, `connecting` or
    /// `closing`.
    case checking
    /// Goes to `idle`, from there to `connecting` where the link is made again by itself, or to `closing`.
    case connected
    /// The radio was asked to end it and has not answered; then `idle`, or `connecting` where the program has asked for that meanwhile. Where the
    /// program did not ask for the end, it is not told of it.
    case closing(reconnect: Bool, isReported: Bool)
  }

  struct Peer: Sendable {
    weak var object: CBPeripheral?
    /// Holds the object while there is a link, one that is made again by itself, or an end to report.
    var kept: CBPeripheral?
    var phase = Phase.idle
    /// As last given by the program.
    var options = ConnectOptions()
    /// Ends `waiting`.
    var delay: ScheduledWork?
    /// Why this side ends the link without the program's asking.
    var failure: RadioError?
  }

  /// The end of a link while the delegate is told of it.
  struct Disconnection: Sendable {
    let peer: PeerID
    /// What is known of the device, where its link is to be made again unless the delegate has the method that excludes that.
    var database: RemoteDatabase?
    /// Whether the program has cancelled the connection since the link has ended.
    var isCancelled = false
  }

  struct State: Sendable {
    weak var manager: CBCentralManager?
    var delegate = CentralManagerDelegateReference()
    /// nil before the start and after the end.
    var client: (any CentralRadio)?
    var adapter = CBManagerState.unknown
    var isScanning = false
    /// What is scanned for, or was last.
    var scan: ScanRequest?
    /// Links of the host that the program has asked to be told of; asked of the radio whenever it is on.
    var linkFilter: LinkFilter?
    var peers: [PeerID: Peer] = [:]
    var lastOrdinal: UInt32 = 0
    /// When the link ended whose end is being reported; seconds since 2001-01-01.
    var disconnectionTime: CFAbsoluteTime = 0
    var disconnection: Disconnection?
    /// Options of which the log was told that there is no such thing.
    var toldAbsent: Set<String> = []
    var restoration = Restoration()
  }

  let state = PosixMutex(State())
  let log: CBLogHandler
  let inbox: EventInbox<Input>
  let intake = EventIntake<CentralIntakeRules>()
  private let radio: any Radio
  private let queue: DispatchQueue
  /// nil: nothing is saved.
  let recorder: RestorationRecorder<SavedCentral>?

  init(_ settings: ManagerSettings<SavedCentral>) {
    radio = settings.radio
    queue = settings.queue
    log = settings.log
    recorder = settings.recorder
    let owner = Owner()
    inbox = EventInbox(queue: queue, clock: radio.clock) { [owner] input in owner.core?.handle(input) }
    owner.core = self
  }

  /// Breaks the circle between a core and the handler of its inbox.
  ///
  /// Sendable: written once, in the initialiser, before anything is posted.
  private final class Owner: @unchecked Sendable {
    weak var core: CentralCore?
  }

  var clock: any RadioClock { radio.clock }

  /// Becomes a client of the radio; events come from now on.
  func start(for manager: CBCentralManager, delegate: CentralManagerDelegateReference) {
    radio.clock.watch(queue)
    let saved = recorder?.load()
    state.withLock { state in
      state.manager = manager
      state.delegate = delegate
      // Before the radio's first event.
      if let saved { restore(saved, &state) }
      state.client = radio.makeCentral { [inbox, intake] event in
        switch intake.take(event) {
        case .taken: inbox.post(.radio(event))
        case .overrun(let peer): inbox.post(.overrun(peer))
        case .missed: inbox.post(.missed)
        case .dropped: break
        }
      }
    }
  }

  /// Ends everything: the manager was released.
  func close() {
    inbox.close()
    saveChanges(waits: false)
    recorder?.close()
    let (client, peers) = state.withLock { state in
      defer {
        state.client = nil
        state.peers = [:]
        state.isScanning = false
        state.adapter = .unknown
      }
      state.client?.stopScan()
      for (id, peer) in state.peers where peer.phase != .idle {
        peer.delay?.cancel()
        state.client?.cancelConnection(id)
      }
      return (state.client, state.peers.values.compactMap(\.object))
    }
    for peripheral in peers { peripheral.endLink() }
    withExtendedLifetime(client) {}
    radio.clock.unwatch(queue)
  }
}

/// A weak reference to a delegate; as ``PeripheralDelegateReference``.
struct CentralManagerDelegateReference: @unchecked Sendable {
  weak var object: (any CBCentralManagerDelegate)?
}
