internal import Locking
internal import Dispatch
internal import Glibc
internal import Radio

/// Who drives lock-step time, and the thread that does it in the background.
extension ClockCore {
  func claim(_ driver: Driver) throws(VirtualClockError) {
    guard mode == .lockStep else {
      throw VirtualClockError(
        .notLockStep, "a \(mode) clock runs by itself; only a lock-step clock can be driven")
    }
    guard driver == .background || DispatchQueue.getSpecific(key: watchedKey) == nil else {
      throw VirtualClockError(
        .calledOnWatchedQueue,
        "simulated time cannot be driven from a queue that it watches: it would wait for itself")
    }
    let isFree = state.withLock { state in
      guard state.driver == .nobody else { return false }
      state.driver = driver
      state.mustStop = false
      return true
    }
    guard isFree else {
      throw VirtualClockError(.alreadyDriven, "simulated time is driven by another thread already")
    }
  }

  func release() {
    let waiters = state.withLock { state in
      state.driver = .nobody
      defer { state.stopWaiters = [] }
      return state.stopWaiters
    }
    for waiter in waiters { waiter.signal() }
  }

  func stop() {
    let waiter = DispatchSemaphore(value: 0)
    let mustWait = state.withLock { state in
      guard state.driver == .background else { return false }
      state.mustStop = true
      awaken(&state)
      guard state.driverThread != pthread_self() else { return false }
      state.stopWaiters.append(waiter)
      return true
    }
    if mustWait { waiter.wait() }
  }

  func advance(to instant: Int64) {
    state.withLock { $0.simulatedNow = max($0.simulatedNow, instant) }
  }

  func runInBackground() throws(VirtualClockError) {
    state.withLock { $0.driverThread = pthread_self() }
    var livelock = LivelockGuard(mostEvents: .max)
    while !state.withLock({ $0.mustStop || $0.isShutDown }) {
      try settle()
      var step = step(notAfter: .max)
      while step == .silent {
        try livelock.count(at: now)
        step = self.step(notAfter: .max)
      }
      if step == .audible { try livelock.count(at: now) }
      guard step == .nothingDue else { continue }
      let mustSleep = state.withLock { state in
        guard !state.mustStop, !state.isShutDown, state.events.count == 0 else { return false }
        state.sleep = .forWork
        return true
      }
      if mustSleep {
        sleep(until: .distantFuture)
        livelock = LivelockGuard(mostEvents: .max)
      }
    }
  }
}
