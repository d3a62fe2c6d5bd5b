public import Foundation

/// The life of a connection to one device, as a value: what is under way, how long it may take, what comes next.
///
/// Rules of this file:
/// - It decides and does nothing: ``handle(_:now:)`` returns the actions; the shell carries them out in order and reports what became of them.
/// - Each step has a time limit of its own, from its own start, or none; ``deadline`` is the next instant at which time itself is news.
/// - What was found once is looked for by its identifier from then on.
/// - A lost link is not an end: the machine connects again, after pauses that grow while nothing comes of it.
///
/// Where it can stand, what it waits for there, and where it goes:
///
/// | state | waits for | then | when time is up | at `lost` |
/// |---|---|---|---|---|
/// | `idle` | `connect` | waitingForRadio, finding | | |
/// | `waitingForRadio` | `radioReady` | finding, connecting | failed | |
/// | `finding` | `known`, `sighted` | connecting | connecting, failed | |
/// | `connecting` | `connected` | discoveringServices, ready, finding | pausing, finding, failed | pausing, finding, failed |
/// | `discoveringServices` | `servicesDiscovered` | discoveringCharacteristics, ready | pausing, failed | pausing, failed |
/// | `discoveringCharacteristics` | `characteristicsDiscovered` | ready | pausing, failed | pausing, failed |
/// | `ready` | nothing | discoveringServices, restarting | | pausing, failed |
/// | `restarting` | `lost` | pausing | pausing | pausing |
/// | `pausing` | time | | connecting, finding | |
/// | `failed` | `connect` | waitingForRadio, finding | | |
///
/// From every state `disconnect` and `forget` lead to idle. From every state but idle and failed `radioUnavailable` leads to
/// waitingForRadio, or to failed where waiting does not help. Inputs that a state does not name change nothing: they are late.
public struct ConnectionMachine: Sendable {
  /// What has happened.
  public enum Input: Sendable {
    /// The connection is wanted.
    case connect
    /// It is not wanted any more; what is remembered stays.
    case disconnect
    /// It is not wanted any more, and the device is to be forgotten.
    case forget
    /// The adapter can be used.
    case radioReady
    /// The adapter cannot be used; `isFinal` where waiting does not help. Links are gone, and scans have ended.
    case radioUnavailable(String, isFinal: Bool)
    /// The system has handed over what a former run of the program was connected to or waiting for; comes before `radioReady`.
    case restored([DeviceSighting])
    /// What the host knows of the devices that were asked for, and which are connected to it.
    case known([DeviceSighting])
    /// A device advertises.
    case sighted(DeviceSighting)
    /// The device cannot be had: another process uses it.
    case claimRefused(TransferError)
    /// The link is up; the device's own name where it is known.
    case connected(name: String?)
    /// Of the required services the device has these.
    case servicesDiscovered([String])
    /// A required service has these characteristics.
    case characteristicsDiscovered(service: String, [String])
    /// These services are not valid any more.
    case servicesModified([String])
    /// The link is gone, or could not be made.
    case lost(String)
    /// The link is of no use, for this reason: it is to be made again.
    case drop(String)
    /// The device has declined in these words; it may accept later.
    case refused(TransferError)
    /// Something came of the link.
    case progressed
    /// The device was told to start anew: it will end the link within this time, or that is done here.
    case restartExpected(within: Duration)
    /// ``deadline`` may have passed.
    case deadline
  }

  /// What the shell does next.
  public enum Action: Hashable, Sendable {
    /// Ask the host for these devices and for those that are connected to it; answer with ``Input/known(_:)``.
    case lookUp([UUID])
    /// Scan for the target.
    case scan
    /// End the scan.
    case stopScan
    /// Connect to this device, which was among those known, sighted or restored.
    case connect(UUID)
    /// Give up the connection attempt or end the link. No ``Input/lost(_:)`` is to come of it.
    case disconnect
    /// Discover the required services.
    case discoverServices
    /// Discover the required characteristics of this service.
    case discoverCharacteristics(service: String)
    /// Remember the device as the target's.
    case remember(UUID)
    /// Remove the device from memory.
    case forget(UUID)
  }

  /// Where the machine stands.
  public enum State: Hashable, Sendable {
    case idle
    case waitingForRadio
    case finding
    case connecting(UUID)
    case discoveringServices(UUID)
    case discoveringCharacteristics(UUID)
    /// The link is up and has what is required.
    case ready(UUID)
    /// The link is up and its end is expected.
    case restarting(UUID)
    /// Waiting before the next attempt.
    case pausing(UUID)
    case failed(TransferError)
  }

  /// Where the machine stands.
  public internal(set) var state = State.idle
  /// When ``Input/deadline`` is due; nil while nothing is timed.
  public internal(set) var deadline: Duration?
  /// Why the last link ended.
  public internal(set) var lastLoss = ""
  /// Attempts and links in a row of which nothing came.
  public internal(set) var attemptsWithoutProgress = 0
  /// The device once it was found.
  public internal(set) var device: UUID?

  let target: DeviceTarget
  let services: [ServiceRequirement]
  let configuration: ConnectionConfiguration
  var memory: UUID?
  /// The name that the remembered device gave itself.
  let memoryName: String?
  var isRadioReady = false
  var search: DeviceSearch?
  /// The device was handed over by the system: nothing has to be asked before connecting.
  var isRestored = false
  var hasBeenReady = false
  var readySince: Duration?
  /// Services whose characteristics are awaited.
  var awaited: Set<String> = []
  /// The next attempt begins with a search: the device did not answer where it was.
  var searchesAgain = false

  /// Makes a machine that waits for ``Input/connect``.
  ///
  /// - Parameters:
  ///   - services: what the device must have.
  ///   - memory: the device that a former run has remembered for this target.
  ///   - memoryName: the name that it gave itself over the link then, where that is not the one by which it was found.
  public init(
    target: DeviceTarget, services: [ServiceRequirement] = [],
    configuration: ConnectionConfiguration = ConnectionConfiguration(), memory: UUID? = nil,
    memoryName: String? = nil
  ) {
    self.target = target
    self.services = services
    self.configuration = configuration
    self.memory = memory
    self.memoryName = memoryName
  }

  /// Whether there is a link.
  public var isLinked: Bool { state.isLinked }

  /// Takes what has happened and returns what to do, in order.
  public mutating func handle(_ input: Input, now: Duration) -> [Action] {
    switch input {
    case .connect: return begin(now)
    case .disconnect: return end()
    case .forget: return forget()
    case .radioReady: return radioReady(now)
    case .radioUnavailable(let why, let isFinal): return radioUnavailable(why, isFinal: isFinal, now)
    case .restored(let devices): return restored(devices)
    case .known(let devices): return known(devices, now)
    case .sighted(let device): return sighted(device, now)
    case .claimRefused(let error): return fail(error)
    case .connected(let name): return connected(name, now)
    case .servicesDiscovered(let found): return servicesDiscovered(found, now)
    case .characteristicsDiscovered(let service, let found):
      return characteristicsDiscovered(service, found, now)
    case .servicesModified(let services): return servicesModified(services, now)
    case .lost(let why): return lost(why, now)
    case .drop(let why): return dropped(why, nil, now)
    case .refused(let error): return dropped(error.message, error, now)
    case .progressed:
      attemptsWithoutProgress = 0
      return []
    case .restartExpected(let limit):
      guard case .ready(let id) = state else { return [] }
      return enter(.restarting(id), [], until: now + limit)
    case .deadline: return deadlinePassed(now)
    }
  }

  // MARK: Beginning and end

  private mutating func begin(_ now: Duration) -> [Action] {
    switch state {
    case .idle, .failed: break
    default: return []
    }
    attemptsWithoutProgress = 0
    hasBeenReady = false
    guard isRadioReady else { return enter(.waitingForRadio, [], until: due(configuration.radioLimit, now)) }
    return find(now)
  }

  private mutating func end() -> [Action] {
    if state.isLinked { lastLoss = "the connection was ended here" }
    let actions = leave()
    return enter(.idle, actions, until: nil)
  }

  private mutating func forget() -> [Action] {
    let known = device ?? memory ?? target.identifier
    device = nil
    memory = nil
    isRestored = false
    return end() + (known.map { [.forget($0)] } ?? [])
  }

  mutating func fail(_ error: TransferError) -> [Action] {
    guard state.isWanted else { return [] }
    if state.isLinked { lastLoss = error.message }
    let actions = leave()
    return enter(.failed(error), actions, until: nil)
  }

  /// What ends whatever is under way.
  mutating func leave() -> [Action] {
    let wasScanning = search?.isScanning == true
    let hadLink = state.isLinked || state.isConnecting
    search = nil
    awaited = []
    readySince = nil
    return (wasScanning ? [.stopScan] : []) + (hadLink ? [.disconnect] : [])
  }

  mutating func enter(_ next: State, _ actions: [Action], until deadline: Duration?) -> [Action] {
    state = next
    self.deadline = deadline
    return actions
  }

  func due(_ limit: Duration?, _ now: Duration) -> Duration? { limit.map { now + $0 } }

  // MARK: Radio

  private mutating func radioReady(_ now: Duration) -> [Action] {
    isRadioReady = true
    guard state == .waitingForRadio else { return [] }
    if isRestored, let device { return connect(device, now) }
    // Also where the device was found before: an adapter that was away may know nothing of it any more.
    return find(now)
  }

  private mutating func radioUnavailable(_ why: String, isFinal: Bool, _ now: Duration) -> [Action] {
    isRadioReady = false
    guard state.isWanted else { return [] }
    if state.isLinked { lastLoss = why }
    search = nil
    readySince = nil
    // What was restored waits for the first adapter that can be used.
    if state != .waitingForRadio { isRestored = false }
    if isFinal {
      // Nothing can be ended any more where there is no adapter.
      return enter(
        .failed(.init(.radioUnavailable, why, advice: "choose a radio", remedy: .chooseRadio)), [], until: nil
      )
    }
    if state == .waitingForRadio { return [] }
    return enter(.waitingForRadio, [], until: due(configuration.radioLimit, now))
  }

  private mutating func restored(_ devices: [DeviceSighting]) -> [Action] {
    let wanted = device ?? target.identifier ?? memory
    let own = devices.first { $0.identifier == wanted } ?? devices.first { target.matches($0) }
    guard let own, !state.isLinked else { return [] }
    device = own.identifier
    isRestored = true
    return []
  }

  // MARK: Finding

  mutating func find(_ now: Duration) -> [Action] {
    let wanted = device ?? target.identifier
    search = DeviceSearch(
      target: target, wanted: wanted, memory: memory, memoryName: memoryName,
      configuration: configuration, now: now)
    searchesAgain = false
    return enter(
      .finding, [.lookUp((wanted ?? memory).map { [$0] } ?? target.candidates)], until: search?.deadline)
  }

  private mutating func known(_ devices: [DeviceSighting], _ now: Duration) -> [Action] {
    guard state == .finding else { return [] }
    return follow(search?.known(devices, now: now), now)
  }

  private mutating func sighted(_ device: DeviceSighting, _ now: Duration) -> [Action] {
    switch state {
    case .finding: return follow(search?.sighted(device, now: now), now)
    case .connecting(let id):
      // A remembered device is being tried while the scan goes on: the name counts where it is seen.
      guard search != nil, device.identifier != id, target.matches(device) else { return [] }
      memory = nil
      search?.forgetMemory()
      let next = follow(search?.sighted(device, now: now), now)
      if state == .connecting(id) { state = .finding }
      return [.disconnect] + next
    default: return []
    }
  }

  mutating func follow(_ step: DeviceSearch.Step?, _ now: Duration) -> [Action] {
    guard let step else { return [] }
    switch step {
    case .wait:
      deadline = search?.deadline
      return []
    case .scan:
      deadline = search?.deadline
      return [.scan]
    case .take(let id):
      let wasScanning = search?.isScanning == true
      search = nil
      return (wasScanning ? [.stopScan] : []) + connect(id, now)
    case .tryMemory(let id):
      // The scan goes on; the limit is that of the search.
      return enter(.connecting(id), [.connect(id)], until: search?.end)
    case .ambiguous(let devices):
      return fail(.ambiguous(target, devices))
    case .notFound:
      return fail(.notFound(target, within: configuration.findLimit))
    }
  }
}

extension ConnectionMachine.State {
  /// The device to which there is a link.
  public var linked: UUID? {
    switch self {
    case .discoveringServices(let id), .discoveringCharacteristics(let id), .ready(let id),
      .restarting(let id):
      id
    case .idle, .waitingForRadio, .finding, .connecting, .pausing, .failed: nil
    }
  }

  /// Whether there is a link.
  public var isLinked: Bool { linked != nil }

  /// Whether the link can be used.
  public var isUsable: Bool {
    switch self {
    case .ready, .restarting: true
    default: false
    }
  }

  var connecting: UUID? { if case .connecting(let id) = self { id } else { nil } }
  var isConnecting: Bool { connecting != nil }

  /// Whether a connection is wanted and not given up.
  var isWanted: Bool {
    switch self {
    case .idle, .failed: false
    default: true
    }
  }
}
