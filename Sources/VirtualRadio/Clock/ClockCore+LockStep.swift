internal import Locking
internal import Dispatch
internal import Radio

/// Simulated time: rest, then one step.
extension ClockCore {
  // MARK: What time waits for

  func beginActivity() {
    state.withLock { state in
      state.activities += 1
      state.generation += 1
    }
  }

  func endActivity() {
    state.withLock { state in
      precondition(state.activities > 0, "endActivity() without beginActivity()")
      state.activities -= 1
      if state.activities == 0, state.sleep == .forRest { awaken(&state) }
    }
  }

  func watch(_ queue: DispatchQueue) {
    state.withLock { state in
      let count = state.watched[ObjectIdentifier(queue)]?.count ?? 0
      state.watched[ObjectIdentifier(queue)] = (queue, count + 1)
      queue.setSpecific(key: watchedKey, value: true)
    }
  }

  func unwatch(_ queue: DispatchQueue) {
    state.withLock { state in
      guard let entry = state.watched[ObjectIdentifier(queue)] else { return }
      if entry.count > 1 {
        state.watched[ObjectIdentifier(queue)] = (queue, entry.count - 1)
      } else {
        state.watched[ObjectIdentifier(queue)] = nil
        queue.setSpecific(key: watchedKey, value: nil)
      }
    }
  }

  // MARK: Rest

  /// Real seconds that an activity may be held at one instant.
  private static let restLimit = 120

  /// Waits until everything that was woken has come to rest.
  func settle() throws(VirtualClockError) {
    var quietRounds = 0
    while quietRounds < 2 {
      let (queues, generation) = try waitUntilNothingIsHeld()
      // On an idle queue this runs in place, without a change of thread.
      for queue in queues { queue.sync(flags: .barrier) {} }
      let isQuiet = state.withLock { state in
        guard state.activities == 0, state.generation == generation else { return false }
        state.restedGeneration = generation
        return true
      }
      quietRounds = isQuiet ? quietRounds + 1 : 0
    }
  }

  private func waitUntilNothingIsHeld() throws(VirtualClockError) -> ([DispatchQueue], UInt64) {
    let deadline = DispatchTime.now() + .seconds(Self.restLimit)
    while true {
      let held = state.withLock { state in
        if state.activities > 0 { state.sleep = .forRest }
        return state.activities
      }
      if held == 0 {
        return state.withLock { ($0.watched.values.map(\.queue), $0.generation) }
      }
      guard sleep(until: deadline) else {
        throw VirtualClockError(
          .noRest,
          "simulated time cannot go on: \(held) activities have been held for \(Self.restLimit) s of real time;"
            + " something waits inside beginActivity() and endActivity()")
      }
    }
  }

  // MARK: Steps

  /// What one step did.
  enum Step {
    /// An event ran that may have woken someone.
    case audible
    case silent
    /// The next event is later than the limit, or there is none.
    case nothingDue
    /// From outside of all events an activity has begun since everything came to rest, or the driver was told to stop: nothing ran.
    case disturbed
  }

  private enum Next {
    case run(time: Int64, Work)
    case nothing(Step)
  }

  /// Runs the next event, if it is due at `limit` or before and everything is still at rest.
  func step(notAfter limit: Int64) -> Step {
    let next = state.withLock { state -> Next in
      // Where events wake nobody, many follow each other, and whoever begins something meanwhile must find time standing.
      guard state.activities == 0, state.generation == state.restedGeneration, !state.mustStop else {
        return .nothing(.disturbed)
      }
      guard let due = state.events.firstTime(), due <= limit, let first = state.events.takeFirst() else {
        return .nothing(.nothingDue)
      }
      if case .air(let timer, _) = first.work { state.armed[timer] = nil }
      state.simulatedNow = max(state.simulatedNow, first.time)
      return .run(time: first.time, first.work)
    }
    let (time, work): (Int64, Work)
    switch next {
    case .nothing(let step): return step
    case .run(let due, let first): (time, work) = (due, first)
    }
    switch work {
    case .program(let work):
      work()
      return .audible
    case .air(_, let handler):
      return handler(.nanoseconds(time)) == .silent ? .silent : .audible
    }
  }
}

/// Ends a run that would never end by itself.
struct LivelockGuard {
  private var events = 0
  private var eventsAtInstant = 0
  private var instant: Int64 = -1

  private let mostEvents: Int
  static let mostEventsAtInstant = 100_000

  init(mostEvents: Int = 200_000_000) { self.mostEvents = mostEvents }

  mutating func count(at now: Int64) throws(VirtualClockError) {
    events += 1
    eventsAtInstant = now == instant ? eventsAtInstant + 1 : 1
    instant = now
    guard eventsAtInstant <= Self.mostEventsAtInstant else {
      throw VirtualClockError(
        .livelock,
        "\(Self.mostEventsAtInstant) events have happened at \(Duration.nanoseconds(now)) and time does not move:"
          + " something schedules itself again without delay")
    }
    guard events <= mostEvents else {
      throw VirtualClockError(
        .livelock,
        "\(mostEvents) events have happened, up to \(Duration.nanoseconds(now)), and what is waited for has not:"
          + " something schedules itself again for ever")
    }
  }
}
