/// What goes wrong on purpose: on the link, in the peer's host, in the peer's storage; scripted, or at random from a seed.
///
/// In words: items with commas between them, such as `drop@40%,overflow~0.01,seed=7`.
///
/// | item | who does it | what happens |
/// |---|---|---|
/// | `drop@WHEN` | link | the peer goes out of reach; both sides lose the link after the supervision timeout |
/// | `drop~P` | link | the same, with probability P in each connection event that moves data |
/// | `drop-in-frame@WHEN` | link | out of reach while an L2CAP frame is half across |
/// | `hangup@WHEN` | link | the peer ends the link in order |
/// | `reboot@WHEN[:TIME]` | host | the peer restarts without what it held in memory; back after TIME (1 s) |
/// | `freeze@WHEN[:TIME]` | host | the peer's program stops and answers nothing, for TIME or for good; the link stays |
/// | `overflow@WHEN[:COUNT]` | host | the peer drops the next COUNT write commands (1) |
/// | `overflow~P[:COUNT]` | host | the same, with probability P at each write command |
/// | `late-ready@WHEN[:TIME]`, `late-ready~P[:TIME]` | host | the sender's next ready signal comes TIME late (2 s) |
/// | `lost-ready@WHEN`, `lost-ready~P` | host | the sender's next ready signal never comes |
/// | `lose-notify@WHEN[:COUNT]`, `lose-notify~P` | host | the next COUNT notifications (1) are lost on the way to the program |
/// | `mtu@WHEN=MTU` | host | the ATT MTU changes |
/// | `no-credits@WHEN[:COUNT]` | host | on this link the peer gives COUNT more credits (0) for its L2CAP channels, and no more |
/// | `slow-erase=TIME` | storage | erasing a page of the peer's flash takes TIME |
/// | `corrupt@OFFSET` | storage | the peer stores the byte at OFFSET (octets or percent) with a flipped bit |
/// | `seed=N` | all | which random numbers are drawn (1) |
///
/// WHEN is a number of payload octets that have arrived at the peripheral since the plan began (`100000`, `64KiB`, `1MiB`), a share of the
/// payload (`40%`), or a time since the link was made (`500ms`, `2s`). TIME is written as `250ms`, `1.5s`, or milliseconds. P is `0.01` or
/// `1%`. Each `@` item happens once, in the whole plan and not once per link.
public struct FaultPlan: Hashable, Sendable {
  /// What happens, in the order of the words.
  public var faults: [Fault]
  /// Time that erasing one page of the peer's flash takes; nil: as its device says.
  public var eraseTime: Duration?
  /// Which random numbers are drawn.
  public var seed: UInt64

  /// Makes a plan; without arguments nothing goes wrong.
  public init(_ faults: [Fault] = [], eraseTime: Duration? = nil, seed: UInt64 = 1) {
    self.faults = faults
    self.eraseTime = eraseTime
    self.seed = seed
  }

  /// Whether nothing goes wrong.
  public var isEmpty: Bool { faults.isEmpty && eraseTime == nil }

  /// Whether a fault waits for a share of a payload whose size is not known yet.
  public var needsTotal: Bool { faults.contains { if case .share = $0.trigger { true } else { false } } }

  /// The plan for a payload of this size: shares become octets.
  public func resolved(totalBytes: Int) -> FaultPlan {
    var plan = self
    for index in plan.faults.indices {
      guard case .share(let share) = plan.faults[index].trigger else { continue }
      plan.faults[index].trigger = .octets(Int((Double(max(totalBytes, 0)) * share).rounded(.down)))
    }
    return plan
  }

  /// Offsets of bytes that the peer's storage flips; shares are left out until the plan is resolved.
  public var corruptedOffsets: [Int] {
    faults.compactMap { fault in
      guard case .corrupt = fault.kind, case .octets(let offset) = fault.trigger else { return nil }
      return offset
    }
  }
}

/// One thing that goes wrong.
public struct Fault: Hashable, Sendable {
  /// When it happens.
  public enum Trigger: Hashable, Sendable {
    /// Once so many payload octets have arrived at the peripheral.
    case octets(Int)
    /// Once that share (0...1) of the payload has arrived.
    case share(Double)
    /// That long after the link was made.
    case time(Duration)
    /// At random, at each opportunity.
    case probability(Double)
  }

  /// What happens.
  public enum Kind: Hashable, Sendable {
    case link(LinkFault)
    case host(HostFault)
    /// A bit of the stored byte is flipped; the trigger is its offset.
    case corrupt
  }

  public var trigger: Trigger
  public var kind: Kind

  /// Makes a fault.
  public init(_ kind: Kind, _ trigger: Trigger) {
    self.kind = kind
    self.trigger = trigger
  }
}

/// What a link does wrong.
public enum LinkFault: Hashable, Sendable {
  /// Nothing more is heard.
  case drop
  /// Nothing more is heard from inside the next frame on.
  case dropInsideFrame
  /// The peripheral ends the link in order.
  case hangUp
}

/// What the host of one side does wrong: the peripheral's, but for the ready signal and lost notifications.
public enum HostFault: Hashable, Sendable {
  /// The peripheral restarts, loses its memory and is back after this time.
  case reboot(downtime: Duration)
  /// The peripheral's program stops, for this long or for good.
  case freeze(Duration?)
  /// The peripheral drops this many write commands.
  case overflow(writes: Int)
  /// The central's next ready signal is late by this time.
  case lateReady(Duration)
  /// The central's next ready signal never comes.
  case lostReady
  /// This many notifications do not reach the central's program.
  case loseNotifications(Int)
  /// The ATT MTU becomes this.
  case changeMTU(Int)
  /// For the channels of this link the peripheral gives so many more credits and no more.
  case limitCredits(Int)
}
