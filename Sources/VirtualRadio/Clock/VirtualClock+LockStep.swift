extension VirtualClock {
  /// Runs events until `predicate` holds while everything is at rest.
  ///
  /// Returns false if the world went idle first, or if the next event would be later than `limit` from now; simulated time then has not
  /// moved beyond the last event. Throws if the clock cannot be driven from here or the world does not come to rest.
  @discardableResult
  public func run(until predicate: () -> Bool, within limit: Duration? = nil) throws(VirtualClockError)
    -> Bool
  {
    try drive { () throws(VirtualClockError) in
      var livelock = LivelockGuard()
      let end = Self.instant(core.now, plus: limit)
      while true {
        try core.settle()
        if predicate() { return true }
        var step = core.step(notAfter: end)
        while step == .silent {
          try livelock.count(at: core.now)
          step = core.step(notAfter: end)
        }
        switch step {
        case .nothingDue: return false
        case .disturbed: continue
        case .audible, .silent: try livelock.count(at: core.now)
        }
      }
    }
  }

  /// Runs what happens within `duration` and then lets simulated time stand at its end.
  public func run(for duration: Duration) throws(VirtualClockError) {
    let end = Self.instant(core.now, plus: duration)
    try run(until: { false }, within: duration)
    core.advance(to: end)
  }

  /// Waits until everything has come to rest at the present instant, without letting time pass.
  public func settle() throws(VirtualClockError) {
    try drive { () throws(VirtualClockError) in try core.settle() }
  }

  /// Lets a thread of the clock drive simulated time until ``stop()``.
  ///
  /// When the world is idle, time stands and the thread sleeps until something is scheduled. `onFailure` is told if the world does not
  /// come to rest; time stands then.
  public func start(onFailure: @escaping @Sendable (VirtualClockError) -> Void) throws(VirtualClockError) {
    try core.claim(.background)
    core.startThread { core in
      do throws(VirtualClockError) { try core.runInBackground() } catch { onFailure(error) }
      core.release()
    }
  }

  /// Ends what ``start(onFailure:)`` began; returns when the thread has finished its step, at once if called from it.
  public func stop() { core.stop() }

  private func drive<Result>(
    _ body: () throws(VirtualClockError) -> Result
  ) throws(VirtualClockError) -> Result {
    try core.claim(.caller)
    defer { core.release() }
    return try body()
  }

  private static func instant(_ now: Int64, plus duration: Duration?) -> Int64 {
    guard let duration else { return .max }
    let (sum, overflows) = now.addingReportingOverflow(max(duration.inNanoseconds, 0))
    return overflows ? .max : sum
  }
}
