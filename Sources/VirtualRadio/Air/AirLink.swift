internal import Foundation
internal import Radio

/// A link whose ``LinkLayer`` runs here, between two hosts of this process or to a central of another. Lives under the lock of a
/// ``HostCore``.
final class AirLink: LinkMedium {
  let id: UInt64
  let pair: DevicePair
  let handle: UInt16
  var central: HostLink?
  var peripheral: HostLink?
  /// The central's end, where that is not here.
  var remote: (any RemoteCentral)?
  private unowned let air: any Surroundings
  private unowned let host: HostState
  private let clock: VirtualClock
  private var layer: LinkLayer
  private let timer: AirTimer
  private var armed: Duration?
  private var outputs: [LinkOutput] = []
  /// What has arrived at a frozen peripheral.
  private var stalled: [[UInt8]]?
  private var thaw: ScheduledWork?
  private var scriptTimer: ScheduledWork?
  /// Set while the link stands still for a central that is behind; ends it if that lasts.
  private var patience: ScheduledWork?

  /// Frames that a frozen peripheral's controller keeps; what comes then is lost.
  static let stalledLimit = 4096

  init(
    pair: DevicePair, handle: UInt16, air: any Surroundings, host: HostState, parameters: LinkParameters,
    generator: SeededGenerator
  ) {
    let id = host.makeIdentity()
    self.id = id
    self.pair = pair
    self.handle = handle
    self.air = air
    self.host = host
    clock = host.clock
    layer = LinkLayer(parameters: parameters, generator: generator, now: clock.airNow)
    timer = clock.makeAirTimer { [weak core = host.core] now in
      core?.run { state in
        state.hasPosted = false
        state.surroundings.link(id)?.advance(to: now)
        return state.hasPosted ? .audible : .silent
      } ?? .silent
    }
  }

  /// Lets the hosts start once both are there.
  func begin() {
    if let central { host.service(central) }
    if let peripheral { host.service(peripheral) }
    beginScript()
  }

  /// Lets go of both ends, which hold the link.
  func releaseEnds() { (central, peripheral, remote) = (nil, nil, nil) }

  // MARK: From the hosts

  func send(_ frame: [UInt8], from side: LinkSide) -> Bool {
    let now = clock.airNow
    guard layer.enqueue(frame, from: side, now: now) else { return false }
    if side == .central { air.capture?.frame(frame, handle: handle, from: side, at: now) }
    setTimer()
    return true
  }

  func terminate(by side: LinkSide) {
    layer.terminate(by: side, now: clock.airNow)
    setTimer()
  }

  func vanish(_ side: LinkSide) { setSilent(side, true) }

  func setInterval(_ interval: Duration) {
    var parameters = layer.parameters
    parameters.connectionInterval = interval
    parameters.supervisionTimeout = max(
      parameters.supervisionTimeout, LinkParameters.defaultSupervisionTimeout(interval: interval))
    layer.update(parameters, now: clock.airNow)
    central?.host.replaceParameters(parameters)
    peripheral?.host.replaceParameters(parameters)
    remote?.parametersChanged(parameters)
    setTimer()
  }

  /// What the direction from a side has done with its time until now.
  func usage(from side: LinkSide) -> LinkUsage { layer.usage(side, now: clock.airNow) }

  func readySignal() -> FaultScript.ReadySignal {
    hasFaults ? air.withScript(of: pair) { $0.readySignal() } : .prompt
  }

  func setSilent(_ side: LinkSide, _ isSilent: Bool) {
    layer.setSilent(side, isSilent, now: clock.airNow)
    setTimer()
  }

  // MARK: Congestion

  /// The least time for which a process may be stuck before its link is lost.
  static let longestStall = Duration.seconds(10)

  /// Stands still until ``resume()``, because the central's process does not take what it gets.
  private func pause() {
    guard patience == nil else { return }
    let id = id
    patience = clock.schedule(after: max(Self.longestStall, layer.parameters.supervisionTimeout)) {
      [weak core = host.core] in
      core?.run { $0.surroundings.link(id)?.lose() }
    }
  }

  /// Goes on after ``pause()``.
  func resume() {
    patience?.cancel()
    patience = nil
    setTimer()
  }

  private func lose() {
    layer.setSilent(.central, true, now: clock.airNow)
    resume()
  }

  // MARK: Time

  private func setTimer() {
    let next = patience == nil ? layer.nextWakeup : nil
    guard next != armed else { return }
    armed = next
    timer.set(at: next)
  }

  private func advance(to now: Duration) {
    armed = nil
    layer.advance(to: now, into: &outputs)
    let happened = outputs
    outputs.removeAll(keepingCapacity: true)
    for output in happened {
      switch output {
      case .delivered(let side, let frame, let instant): deliver(frame, to: side, at: instant)
      case .completed(let side, let frames, _):
        if let end = side == .central ? central : peripheral { host.completed(frames, end) }
        if side == .central { remote?.completed(frames) }
      case .ended(let reason, let instant): end(reason, at: instant)
      }
    }
    if hasFaults, !happened.isEmpty, !layer.hasEnded {
      perform(air.withScript(of: pair) { $0.linkEventEnded() })
    }
    setTimer()
  }

  private func deliver(_ frame: [UInt8], to side: LinkSide, at instant: Duration) {
    if side == .central { air.capture?.frame(frame, handle: handle, from: .peripheral, at: instant) }
    if hasFaults, isLost(frame, to: side) { return }
    if side == .peripheral, let count = stalled?.count {
      if count < Self.stalledLimit { stalled?.append(frame) }
      return
    }
    if let end = side == .central ? central : peripheral { host.received(frame, end) }
    if side == .central, let remote {
      remote.received(frame)
      if remote.isCongested { pause() }
    }
  }

  private func end(_ reason: LinkEnd, at instant: Duration) {
    air.capture?.linkEnded(handle: handle, reason, at: instant)
    timer.set(at: nil)
    thaw?.cancel()
    scriptTimer?.cancel()
    patience?.cancel()
    air.remove(self)
    if hasFaults { air.withScript(of: pair) { $0.linkEnded() } }
    for (side, end) in [(LinkSide.peripheral, peripheral), (.central, central)] {
      guard let end else { continue }
      switch reason {
      case .supervisionTimeout: host.ended(end, .supervisionTimeout)
      case .terminated(side): host.ended(end, .ownTermination)
      case .terminated: host.ended(end, .peerTerminated)
      }
    }
    remote?.ended(reason)
    releaseEnds()
    air.interestChanged(host)
  }
}

// MARK: - Faults

extension AirLink {
  /// Counts what arrives at the peripheral, and drops what the script wants to be dropped.
  private func isLost(_ frame: [UInt8], to side: LinkSide) -> Bool {
    guard frame.count > 4, let cid = L2CAPFrame.channel(of: frame) else { return false }
    let opcode = cid == ChannelIdentifier.attributeProtocol ? frame[4] : nil
    if side == .central {
      return opcode == ATTOpcode.notification && air.withScript(of: pair) { $0.losesNotification() }
    }
    guard let octets = FaultScript.payload(of: frame) else { return false }
    let isDropped = opcode == ATTOpcode.writeCommand && air.withScript(of: pair) { $0.dropsWriteCommand() }
    perform(air.withScript(of: pair) { $0.payloadArrived(octets: octets, now: clock.now) })
    return isDropped
  }

  private var hasFaults: Bool { air.hasFaults(pair) }

  /// Lets the script know of the link.
  func beginScript() {
    guard hasFaults else { return }
    perform(air.withScript(of: pair) { $0.linkMade(now: clock.now) })
    setScriptTimer()
  }

  private func perform(_ actions: [FaultScript.Action]) {
    for action in actions {
      switch action {
      case .link(.drop): setSilent(.peripheral, true)
      case .link(.dropInsideFrame):
        layer.cutInsideNextFrame(from: .central)
        setTimer()
      case .link(.hangUp): terminate(by: .peripheral)
      case .host(.reboot(let downtime)): reboot(downtime)
      case .host(.freeze(let time)): freeze(time)
      case .host(.changeMTU(let mtu)):
        for end in [peripheral, central] {
          end?.host.setMTU(mtu)
          if let end { host.service(end) }
        }
        remote?.mtuChanged(mtu)
      case .host(.limitCredits(let count)): peripheral?.host.creditsLeft = count
      // Those are answered where they are asked for.
      case .host(.overflow), .host(.lateReady), .host(.lostReady), .host(.loseNotifications): break
      }
    }
  }

  private func reboot(_ downtime: Duration) {
    guard let adapter = peripheral?.adapter else { return }
    host.setState(.resetting, of: adapter, isOrderly: false)
    let id = adapter.id
    _ = clock.schedule(after: downtime) { [weak core = host.core] in
      core?.run { state in
        guard let adapter = state.adapters[id], adapter.state == .resetting else { return }
        state.setState(.poweredOn, of: adapter, isOrderly: true)
      }
    }
  }

  private func freeze(_ time: Duration?) {
    stalled = stalled ?? []
    thaw?.cancel()
    guard let time else { return }
    let id = id
    thaw = clock.schedule(after: time) { [weak core = host.core] in
      core?.run { $0.surroundings.link(id)?.goOn() }
    }
  }

  private func goOn() {
    let frames = stalled ?? []
    stalled = nil
    for frame in frames {
      if let peripheral { host.received(frame, peripheral) }
    }
  }

  private func setScriptTimer() {
    scriptTimer?.cancel()
    scriptTimer = nil
    guard let next = air.withScript(of: pair, { $0.nextTime }) else { return }
    let id = id
    scriptTimer = clock.schedule(after: next - clock.now) { [weak core = host.core] in
      core?.run { $0.surroundings.link(id)?.scriptTimeElapsed() }
    }
  }

  private func scriptTimeElapsed() {
    perform(air.withScript(of: pair) { $0.handleTimeout(now: clock.now) })
    setScriptTimer()
  }
}
