internal import Foundation

/// What happens between a device that was found and a link that is ready, when that is lost, and when time is up.
extension ConnectionMachine {
  mutating func connect(_ id: UUID, _ now: Duration) -> [Action] {
    let limit = hasBeenReady ? configuration.reconnectLimit : configuration.connectLimit
    return enter(.connecting(id), [.connect(id)], until: due(limit, now))
  }

  mutating func connected(_ name: String?, _ now: Duration) -> [Action] {
    guard case .connecting(let id) = state else { return [] }
    let wasScanning = search?.isScanning == true
    if search != nil, case .name(let wanted) = target, let name, name != wanted, name != memoryName {
      // It is called otherwise now, and the name may be another device's.
      memory = nil
      search?.forgetMemory()
      return enter(.finding, [.disconnect], until: search?.deadline)
    }
    search = nil
    device = id
    isRestored = false
    return (wasScanning ? [.stopScan] : []) + discover(id, now)
  }

  mutating func discover(_ id: UUID, _ now: Duration) -> [Action] {
    awaited = []
    readySince = nil
    guard !services.isEmpty else { return becomeReady(id, now) }
    return enter(.discoveringServices(id), [.discoverServices], until: now + configuration.discoveryLimit)
  }

  mutating func servicesDiscovered(_ found: [String], _ now: Duration) -> [Action] {
    guard case .discoveringServices(let id) = state else { return [] }
    if let missing = services.first(where: { !found.contains($0.service) }) {
      return unsupported("does not offer \(missing.name)", now)
    }
    let wanted = services.filter(\.hasCharacteristics).map(\.service)
    guard !wanted.isEmpty else { return becomeReady(id, now) }
    awaited = Set(wanted)
    return enter(
      .discoveringCharacteristics(id), wanted.map { .discoverCharacteristics(service: $0) },
      until: now + configuration.discoveryLimit)
  }

  mutating func characteristicsDiscovered(
    _ service: String, _ found: [String], _ now: Duration
  ) -> [Action] {
    guard case .discoveringCharacteristics(let id) = state, awaited.remove(service) != nil else { return [] }
    let requirement = services.first { $0.service == service }
    if let requirement, let missing = requirement.characteristics.first(where: { !found.contains($0) }) {
      return unsupported("offers \(requirement.name) without its characteristic \(missing)", now)
    }
    return awaited.isEmpty ? becomeReady(id, now) : []
  }

  mutating func becomeReady(_ id: UUID, _ now: Duration) -> [Action] {
    let isFirst = !hasBeenReady
    hasBeenReady = true
    readySince = now
    memory = id
    return enter(.ready(id), isFirst ? [.remember(id)] : [], until: nil)
  }

  mutating func servicesModified(_ modified: [String], _ now: Duration) -> [Action] {
    guard let id = state.linked, services.contains(where: { modified.contains($0.service) }) else {
      return []
    }
    switch configuration.modification {
    case .connectsAgain: return dropped("its services have changed", nil, now)
    case .discoversAgain:
      lastLoss = "its services have changed"
      return discover(id, now)
    }
  }

  // MARK: Losses

  mutating func unsupported(_ what: String, _ now: Duration) -> [Action] {
    let error = TransferError(
      .unsupportedDevice, "\(target) \(what)", advice: "check that the right device is meant")
    // What was read may be of an earlier firmware, or be changing as the device comes up: it is read once more over a new link, and
    // from a device that has offered it before as often as from any that is lost.
    guard hasBeenReady || attemptsWithoutProgress == 0 else { return fail(error) }
    return dropped(error.message, error, now)
  }

  mutating func dropped(_ why: String, _ refusal: TransferError?, _ now: Duration) -> [Action] {
    guard state.isLinked || state.isConnecting else { return [] }
    return [.disconnect] + lost(why, refusal: refusal, now)
  }

  mutating func lost(_ why: String, refusal: TransferError? = nil, _ now: Duration) -> [Action] {
    guard let id = state.linked ?? state.connecting else { return [] }
    if search != nil {
      // The remembered device cannot be had; the scan goes on without it.
      memory = nil
      search?.forgetMemory()
      return enter(.finding, [], until: search?.deadline)
    }
    lastLoss = why
    if let readySince, let stable = configuration.stableTime, now - readySince >= stable {
      attemptsWithoutProgress = 0
    }
    let isExpected = state == .restarting(id)
    readySince = nil
    awaited = []
    if !isExpected { attemptsWithoutProgress += 1 }
    let isFruitless = configuration.fruitlessAttempts.map { attemptsWithoutProgress >= $0 } ?? false
    guard configuration.reconnects || isExpected, !isFruitless else {
      let tries = attemptsWithoutProgress > 1 ? " (\(attemptsWithoutProgress) attempts without progress)" : ""
      let error = TransferError(
        .disconnected, "the link to \(target) was lost: \(why)\(tries)", isRetriable: true)
      return enter(.failed(refusal ?? error), [], until: nil)
    }
    let pause = configuration.pause(after: attemptsWithoutProgress, isRefused: refusal != nil)
    return enter(.pausing(id), [], until: now + pause)
  }

  // MARK: Time

  mutating func deadlinePassed(_ now: Duration) -> [Action] {
    guard let due = deadline, now >= due else { return [] }
    switch state {
    case .waitingForRadio:
      let limit = configuration.radioLimit?.description ?? ""
      return fail(.init(.radioUnavailable, "the adapter was not ready within \(limit)", isRetriable: true))
    case .finding:
      return follow(search?.timePassed(now: now), now)
    case .connecting(let id):
      if search != nil { return fail(.notFound(target, within: configuration.findLimit)) }
      let limit = hasBeenReady ? configuration.reconnectLimit : configuration.connectLimit
      searchesAgain = device != id && target.identifier != id
      return dropped("no connection within \(limit?.description ?? "")", nil, now)
    case .discoveringServices, .discoveringCharacteristics:
      return dropped("no answer within \(configuration.discoveryLimit)", nil, now)
    case .restarting:
      return dropped("it did not end the link by itself", nil, now)
    case .pausing(let id):
      return searchesAgain ? find(now) : connect(id, now)
    case .idle, .ready, .failed:
      return []
    }
  }
}
