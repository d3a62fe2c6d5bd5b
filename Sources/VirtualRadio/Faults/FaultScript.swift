/// Plays a ``FaultPlan``: is told what happens, answers what goes wrong. A value without I/O.
///
/// One script accompanies one pair of devices over all their links. Faults for the link come as ``Action/link(_:)``, faults for the
/// hosts as ``Action/host(_:)`` or as answers to questions (``dropsWriteCommand()``, ``losesNotification()``, ``readySignal()``).
struct FaultScript: Sendable {
  /// What must be done now.
  enum Action: Hashable, Sendable {
    case link(LinkFault)
    /// Reboot, freeze, change of MTU or want of credits; the other host faults are answered when they are asked for.
    case host(HostFault)
  }

  /// What becomes of the sender's ready signal.
  enum ReadySignal: Hashable, Sendable {
    case prompt
    case late(Duration)
    case never
  }

  private(set) var plan: FaultPlan
  /// Payload octets that have arrived at the peripheral.
  private(set) var octets = 0

  // Each kind draws from numbers of its own, so that one does not shift the others.
  private var linkGenerator: SeededGenerator
  private var writeGenerator: SeededGenerator
  private var notifyGenerator: SeededGenerator
  private var readyGenerator: SeededGenerator
  /// Faults with a place in the transfer or a time, that have not happened.
  private var pending: [Fault]
  private var random: [Fault]
  private var linkStart: Duration?
  private var writesToDrop = 0
  private var notificationsToLose = 0
  private var readySignals: [ReadySignal] = []

  init(_ plan: FaultPlan) {
    self.plan = plan
    var root = SeededGenerator(seed: plan.seed)
    linkGenerator = root.split()
    writeGenerator = root.split()
    notifyGenerator = root.split()
    readyGenerator = root.split()
    pending = plan.faults.filter { $0.kind != .corrupt && !$0.isRandom }
    random = plan.faults.filter(\.isRandom)
  }

  /// Turns shares into octets, once the size of the payload is known. Without it, they never happen.
  mutating func resolve(totalBytes: Int) {
    plan = plan.resolved(totalBytes: totalBytes)
    pending = FaultPlan(pending).resolved(totalBytes: totalBytes).faults
  }

  // MARK: What happens

  /// A link was made: timed faults count from here.
  mutating func linkMade(now: Duration) -> [Action] {
    linkStart = now
    return takeDue(now: now)
  }

  /// The link is gone: timed faults that have not happened wait for the next one.
  mutating func linkEnded() { linkStart = nil }

  /// So many payload octets have arrived at the peripheral, dropped ones included.
  mutating func payloadArrived(octets count: Int, now: Duration) -> [Action] {
    octets += count
    return takeDue(now: now)
  }

  /// When the next timed fault is due; nil: none before another input.
  var nextTime: Duration? {
    guard let linkStart else { return nil }
    return pending.compactMap { fault -> Duration? in
      if case .time(let delay) = fault.trigger { linkStart + delay } else { nil }
    }.min()
  }

  /// Time has come to ``nextTime``.
  mutating func handleTimeout(now: Duration) -> [Action] { takeDue(now: now) }

  /// A connection event has moved data.
  mutating func linkEventEnded() -> [Action] {
    var actions: [Action] = []
    for fault in random {
      if case (.link(let linkFault), .probability(let p)) = (fault.kind, fault.trigger),
        linkGenerator.chance(p)
      {
        actions.append(.link(linkFault))
      }
    }
    return actions
  }

  // MARK: What is asked

  /// Whether the peripheral's host drops the write command that arrives now.
  mutating func dropsWriteCommand() -> Bool {
    for fault in random {
      if case (.host(.overflow(let count)), .probability(let p)) = (fault.kind, fault.trigger),
        writeGenerator.chance(p)
      {
        writesToDrop = max(writesToDrop, count)
      }
    }
    guard writesToDrop > 0 else { return false }
    writesToDrop -= 1
    return true
  }

  /// Whether the notification that arrives now is lost before the central's program sees it.
  mutating func losesNotification() -> Bool {
    for fault in random {
      if case (.host(.loseNotifications(let count)), .probability(let p)) = (fault.kind, fault.trigger),
        notifyGenerator.chance(p)
      {
        notificationsToLose = max(notificationsToLose, count)
      }
    }
    guard notificationsToLose > 0 else { return false }
    notificationsToLose -= 1
    return true
  }

  /// What becomes of the ready signal that is due now.
  mutating func readySignal() -> ReadySignal {
    if !readySignals.isEmpty { return readySignals.removeFirst() }
    for fault in random {
      guard case .probability(let p) = fault.trigger else { continue }
      switch fault.kind {
      case .host(.lateReady(let delay)) where readyGenerator.chance(p): return .late(delay)
      case .host(.lostReady) where readyGenerator.chance(p): return .never
      default: continue
      }
    }
    return .prompt
  }

  // MARK: Triggers

  private mutating func takeDue(now: Duration) -> [Action] {
    guard !pending.isEmpty else { return [] }
    var actions: [Action] = []
    var waiting: [Fault] = []
    for fault in pending {
      guard isDue(fault.trigger, now: now) else {
        waiting.append(fault)
        continue
      }
      switch fault.kind {
      case .link(let linkFault): actions.append(.link(linkFault))
      case .host(.overflow(let count)): writesToDrop += count
      case .host(.loseNotifications(let count)): notificationsToLose += count
      case .host(.lateReady(let delay)): readySignals.append(.late(delay))
      case .host(.lostReady): readySignals.append(.never)
      case .host(let hostFault): actions.append(.host(hostFault))
      case .corrupt: continue
      }
    }
    pending = waiting
    return actions
  }

  private func isDue(_ trigger: Fault.Trigger, now: Duration) -> Bool {
    switch trigger {
    case .octets(let count): octets >= count
    case .time(let delay): linkStart.map { now >= $0 + delay } ?? false
    case .share, .probability: false
    }
  }
}

extension Fault {
  fileprivate var isRandom: Bool { if case .probability = trigger { true } else { false } }
}
