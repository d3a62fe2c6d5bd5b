internal import Dispatch
internal import Locking
internal import Foundation
internal import Glibc
internal import Radio

/// What a ``VirtualClock`` and its thread share: the thread keeps this alive, and not the clock, whose end ends the thread.
final class ClockCore: Sendable {
  enum Work {
    case program(@Sendable () -> Void)
    case air(timer: UInt64, @Sendable (Duration) -> AirEffect)
  }

  /// For what a driving thread sleeps.
  enum Sleep {
    case none
    /// Until no activity is held.
    case forRest
    /// Until there is work that is due earlier than the sleep would end.
    case forWork
  }

  enum Driver: Hashable {
    case nobody
    case caller
    case background
  }

  struct State {
    /// Everything, or in unpaced time the timers only.
    var events = EventQueue<Work>()
    /// Air events in unpaced time.
    var airEvents = EventQueue<Work>()
    var armed: [UInt64: EventQueue<Work>.Token] = [:]
    var lastIdentity: UInt64 = 0
    /// Simulated time in lock-step, air time in unpaced.
    var simulatedNow: Int64 = 0
    var isShutDown = false
    var hasThread = false
    var sleep = Sleep.none
    // Lock-step only:
    var activities = 0
    /// Activities that ever began.
    var generation: UInt64 = 0
    /// As many had begun when everything had last come to rest.
    var restedGeneration: UInt64 = 0
    var watched: [ObjectIdentifier: (queue: DispatchQueue, count: Int)] = [:]
    var driver = Driver.nobody
    var mustStop = false
    /// The thread of the clock while it drives.
    var driverThread: pthread_t?
    var stopWaiters: [DispatchSemaphore] = []
  }

  let mode: VirtualClock.Mode
  let state = PosixMutex(State())
  /// Set on every watched queue, to know whether we run on one.
  let watchedKey = DispatchSpecificKey<Bool>()

  private let wake = DispatchSemaphore(value: 0)
  private let start = DispatchTime.now().uptimeNanoseconds

  init(mode: VirtualClock.Mode) { self.mode = mode }

  // MARK: Time

  private var realNow: Int64 { Int64(DispatchTime.now().uptimeNanoseconds - start) }

  var now: Int64 { mode == .lockStep ? state.withLock(\.simulatedNow) : realNow }

  var airNow: Int64 { mode == .realTime ? realNow : state.withLock(\.simulatedNow) }

  // MARK: Scheduling

  func schedule(after delay: Int64, _ work: @escaping @Sendable () -> Void) -> EventQueue<Work>.Token {
    state.withLock { state in
      let base = mode == .lockStep ? state.simulatedNow : realNow
      let (instant, overflows) = base.addingReportingOverflow(delay)
      let token = state.events.add(at: overflows ? .max : instant, .program(work))
      noteWork(&state)
      return token
    }
  }

  func cancel(_ token: EventQueue<Work>.Token) {
    // The closure may own the last reference to something whose end calls back here: it must go after the lock.
    let cancelled = state.withLock { $0.events.cancel(token) }
    withExtendedLifetime(cancelled) {}
  }

  func makeIdentity() -> UInt64 {
    state.withLock { state in
      state.lastIdentity += 1
      return state.lastIdentity
    }
  }

  func arm(_ timer: UInt64, at instant: Int64, _ handler: @escaping @Sendable (Duration) -> AirEffect) {
    let replaced = state.withLock { state in
      let replaced = removeAirEvent(of: timer, &state)
      guard !state.isShutDown else { return replaced }
      let due = mode == .realTime ? instant : max(instant, state.simulatedNow)
      if mode == .unpaced {
        state.armed[timer] = state.airEvents.add(at: due, .air(timer: timer, handler))
      } else {
        state.armed[timer] = state.events.add(at: due, .air(timer: timer, handler))
      }
      noteWork(&state)
      return replaced
    }
    withExtendedLifetime(replaced) {}
  }

  func disarm(_ timer: UInt64) {
    let removed = state.withLock { removeAirEvent(of: timer, &$0) }
    withExtendedLifetime(removed) {}
  }

  private func removeAirEvent(of timer: UInt64, _ state: inout State) -> Work? {
    guard let token = state.armed.removeValue(forKey: timer) else { return nil }
    return mode == .unpaced ? state.airEvents.cancel(token) : state.events.cancel(token)
  }

  func shutDown() {
    let dropped = state.withLock { state in
      let dropped = (state.events, state.airEvents)
      state.isShutDown = true
      state.events.removeAll()
      state.airEvents.removeAll()
      state.armed.removeAll()
      awaken(&state)
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }

  // MARK: Sleeping

  /// Starts or wakes the thread that has to look at new work.
  private func noteWork(_ state: inout State) {
    if state.sleep == .forWork { awaken(&state) }
    guard mode != .lockStep, !state.hasThread, !state.isShutDown else { return }
    state.hasThread = true
    startThread { $0.runInRealTime() }
  }

  func awaken(_ state: inout State) {
    guard state.sleep != .none else { return }
    state.sleep = .none
    wake.signal()
  }

  /// Sleeps after `state.sleep` was set under the lock; returns false if `deadline` has passed first.
  @discardableResult
  func sleep(until deadline: DispatchTime) -> Bool {
    if wake.wait(timeout: deadline) == .success { return true }
    let wasWoken = state.withLock { state in
      defer { state.sleep = .none }
      return state.sleep == .none
    }
    // A signal that crossed with the deadline is taken, so that it does not end the next sleep.
    if wasWoken { wake.wait() }
    return wasWoken
  }

  func startThread(_ body: @escaping @Sendable (ClockCore) -> Void) {
    let thread = Thread { body(self) }
    thread.name = "VirtualClock"
    thread.start()
  }

  // MARK: Real time and unpaced

  private enum Next {
    case run(Work, air: Int64)
    case wait(until: Int64?)
    case leave
  }

  private func runInRealTime() {
    while true {
      switch state.withLock({ nextInRealTime(&$0) }) {
      case .run(.program(let work), _): work()
      case .run(.air(_, let handler), let airNow): _ = handler(.nanoseconds(airNow))
      case .wait(let instant):
        let deadline = instant.map { DispatchTime(uptimeNanoseconds: start + UInt64(max($0, 0))) }
        sleep(until: deadline ?? .distantFuture)
      case .leave: return
      }
    }
  }

  private func nextInRealTime(_ state: inout State) -> Next {
    guard !state.isShutDown else { return .leave }
    let now = realNow
    let due = state.events.firstTime()
    if let due, due <= now, let first = state.events.takeFirst() {
      if case .air(let timer, _) = first.work { state.armed[timer] = nil }
      return .run(first.work, air: now)
    }
    if let first = state.airEvents.takeFirst() {
      if case .air(let timer, _) = first.work { state.armed[timer] = nil }
      state.simulatedNow = first.time
      return .run(first.work, air: first.time)
    }
    state.sleep = .forWork
    return .wait(until: due)
  }
}
