internal import Foundation
internal import Radio

/// A link between two adapters of one process: the ``LinkLayer`` between their two hosts. Lives under the lock of a ``HostCore``.
final class AirLink: LinkMedium {
  let id: UInt64
  let pair: InProcessAir.Pair
  let handle: UInt16
  var central: HostLink?
  var peripheral: HostLink?
  private unowned let air: InProcessAir
  private unowned let host: HostState
  private let clock: VirtualClock
  private var layer: LinkLayer
  private let timer: AirTimer
  private var armed: Duration?
  private var outputs: [LinkOutput] = []

  init(
    pair: InProcessAir.Pair, handle: UInt16, air: InProcessAir, host: HostState, parameters: LinkParameters,
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
        (state.surroundings as? InProcessAir)?.links[id]?.advance(to: now)
        return state.hasPosted ? .audible : .silent
      } ?? .silent
    }
  }

  /// Lets the hosts start once both are there.
  func begin() {
    if let central { host.service(central) }
    if let peripheral { host.service(peripheral) }
  }

  // MARK: From the hosts

  func send(_ frame: [UInt8], from side: LinkSide) -> Bool {
    let now = clock.airNow
    guard layer.enqueue(frame, from: side, now: now) else { return false }
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
    setTimer()
  }

  func setSilent(_ side: LinkSide, _ isSilent: Bool) {
    layer.setSilent(side, isSilent, now: clock.airNow)
    setTimer()
  }

  // MARK: Time

  private func setTimer() {
    let next = layer.nextWakeup
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
      case .delivered(let side, let frame, _): deliver(frame, to: side)
      case .completed(let side, let frames, _):
        if let end = side == .central ? central : peripheral { host.completed(frames, end) }
      case .ended(let reason, _): end(reason)
      }
    }
    setTimer()
  }

  private func deliver(_ frame: [UInt8], to side: LinkSide) {
    if let end = side == .central ? central : peripheral { host.received(frame, end) }
  }

  private func end(_ reason: LinkEnd) {
    timer.set(at: nil)
    air.remove(self)
    for (side, end) in [(LinkSide.peripheral, peripheral), (.central, central)] {
      guard let end else { continue }
      switch reason {
      case .supervisionTimeout: host.ended(end, .supervisionTimeout)
      case .terminated(side): host.ended(end, .ownTermination)
      case .terminated: host.ended(end, .peerTerminated)
      }
    }
    (central, peripheral) = (nil, nil)
    air.interestChanged(host)
  }
}
