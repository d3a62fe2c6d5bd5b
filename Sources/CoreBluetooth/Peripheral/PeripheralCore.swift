internal import Dispatch
internal import Locking
internal import Foundation
internal import Radio

/// What a peripheral manager keeps behind its lock; see ``CentralCore`` for the rules of locks and callbacks, which are the same.
final class PeripheralCore: Sendable {
  /// What the inbox carries.
  enum Input: Sendable {
    case radio(PeripheralEvent)
    /// More writes without response wait than may: from here on some were dropped.
    case overrun
    /// Adding a service has failed before the radio heard of it.
    case addFailed(CBMutableService, CBError.Code)
    /// Advertising was on when it was to be started.
    case advertisingAlready
    /// There is saved state, of which the program is to be told.
    case restored
    /// What is saved has changed.
    case changed
  }

  /// Advertising as this manager drives it.
  enum Advertising: Sendable, Equatable {
    case off
    /// The radio was asked.
    case starting
    case on
    /// As a former run had it: on for the program, while the radio has yet to be asked or to answer.
    case restored
  }

  /// A weak reference to the object of a central.
  struct Central: Sendable {
    weak var object: CBCentral?
  }

  struct State: Sendable {
    weak var manager: CBPeripheralManager?
    var delegate = PeripheralManagerDelegateReference()
    /// nil before the start and after the end.
    var client: (any PeripheralRadio)?
    var adapter = CBManagerState.unknown
    var advertising = Advertising.off
    /// Starts that were taken back before the radio had answered them: so many answers are void.
    var voidStarts = 0
    /// What is advertised, or was last.
    var advertised: AdvertisementRequest?
    /// Services as they are saved.
    var published: [LocalServiceID: Published] = [:]
    var restoration = Restoration()
    var database = LocalDatabase()
    var centrals: [PeerID: Central] = [:]
  }

  let state = PosixMutex(State())
  let log: CBLogHandler
  let inbox: EventInbox<Input>
  let intake = EventIntake<PeripheralIntakeRules>()
  private let radio: any Radio
  private let queue: DispatchQueue
  /// nil: nothing is saved.
  let recorder: RestorationRecorder<SavedPeripheral>?

  init(_ settings: ManagerSettings<SavedPeripheral>) {
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
    weak var core: PeripheralCore?
  }

  var clock: any RadioClock { radio.clock }

  var client: (any PeripheralRadio)? { state.withLock { $0.client } }

  /// Becomes a client of the radio; events come from now on.
  func start(for manager: CBPeripheralManager, delegate: PeripheralManagerDelegateReference) {
    radio.clock.watch(queue)
    let saved = recorder?.load()
    let refusals = state.withLock { state in
      state.manager = manager
      state.delegate = delegate
      // Before the radio's first event.
      let refusals = saved.map { restore($0, &state) } ?? []
      state.client = radio.makePeripheral { [inbox, intake] event in
        switch intake.take(event) {
        case .taken: inbox.post(.radio(event))
        case .overrun: inbox.post(.overrun)
        case .dropped: break
        }
      }
      return refusals
    }
    for refusal in refusals { log.note(refusal) }
  }

  /// Ends everything: the manager was released.
  func close() {
    inbox.close()
    saveChanges(waits: false)
    recorder?.close()
    let old = state.withLock { state in
      defer { state = State() }
      state.client?.stopAdvertising()
      state.client?.removeAllServices()
      return state
    }
    old.database.unsubscribeAll()
    radio.clock.unwatch(queue)
  }

  /// The one object of a central.
  func central(_ id: PeerID, _ state: inout State) -> CBCentral {
    if let object = state.centrals[id]?.object { return object }
    let object = CBCentral(_cb: id, core: self)
    // Centrals that nobody holds any more leave room for those that come.
    state.centrals = state.centrals.filter { $0.value.object != nil }
    state.centrals[id] = Central(object: object)
    return object
  }
}

/// A weak reference to a delegate; as ``PeripheralDelegateReference``.
struct PeripheralManagerDelegateReference: @unchecked Sendable {
  weak var object: (any CBPeripheralManagerDelegate)?
}
