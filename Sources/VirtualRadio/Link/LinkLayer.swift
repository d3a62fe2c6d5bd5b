/// One Bluetooth LE connection without radio waves: both sides' queues, connection events, loss and repetition (Core Vol 6 Part B 4.5).
///
/// A value without I/O. Three kinds of methods:
/// - Commands: ``enqueue(_:from:now:)``, ``setSilent(_:_:now:)``, ``terminate(by:now:)``, ``update(_:now:)``, ``cutInsideNextFrame(from:)``.
/// - Questions: ``nextWakeup``, ``hasRoom(_:)``, ``usage(_:now:)``.
/// - ``advance(to:into:)``, to be called at ``nextWakeup``, which may have moved after each command.
///
/// An event is decided at its anchor, with the frames that are queued then, and its outputs come when its last packet is over. A frame
/// that is queued while an event runs therefore waits for the next one, unlike in a controller that reports completed packets in
/// mid-event. So that this costs no throughput, the queue holds two events' worth: see ``FrameBudget``.
///
/// In an event the central sends, 150 us later the peripheral, 150 us later again the central, as long as one of them has data, the
/// next pair with both pauses fits the interval, and the packet limit allows. Without data to move, a link has no events at all: empty
/// packets neither cost simulated work nor are they lost.
struct LinkLayer {
  private(set) var parameters: LinkParameters
  var timing: LinkTiming
  var generator: SeededGenerator
  var errorThreshold: UInt64
  var central: Transmitter
  var peripheral: Transmitter
  /// Which side yields next when two data packets do not fit together.
  var yieldingSide = LinkSide.peripheral
  /// What the running event will tell at its end.
  var eventOutputs: [LinkOutput] = []

  private var phase = Phase.between
  /// Start of the next event, in nanoseconds.
  private var anchor: Int64
  private var silentSides: Set<LinkSide> = []
  private var terminatingSide: LinkSide?

  private enum Phase {
    /// No event is running. Can transition to: event, ended.
    case between
    /// An event was decided and ends then. Can transition to: between, ended.
    case event(closes: Int64)
    /// The link is gone.
    case ended
  }

  /// Makes a link whose first event is at `now`; `generator` decides which packets are lost.
  init(parameters: LinkParameters, generator: SeededGenerator, now: Duration) {
    let start = now.inNanoseconds
    self.parameters = parameters
    self.generator = generator
    timing = LinkTiming(parameters)
    errorThreshold = SeededGenerator.threshold(parameters.packetErrorRate)
    central = Transmitter(parameters: parameters, now: start)
    peripheral = Transmitter(parameters: parameters, now: start)
    anchor = start
  }

  /// Whether the end was told.
  var hasEnded: Bool { if case .ended = phase { true } else { false } }

  /// Whether traffic that waits for room may queue one more frame.
  func hasRoom(_ side: LinkSide) -> Bool {
    !hasEnded && (side == .central ? central : peripheral).budget.hasRoom
  }

  /// Frames of a side that are queued or not yet acknowledged.
  func queuedFrames(_ side: LinkSide) -> Int { (side == .central ? central : peripheral).budget.frames }

  /// What the direction from a side has done with its time until now.
  func usage(_ side: LinkSide, now: Duration) -> LinkUsage {
    (side == .central ? central : peripheral).meter.usage(at: now.inNanoseconds)
  }

  /// When ``advance(to:into:)`` has something to do; nil: not before the next command.
  var nextWakeup: Duration? {
    switch phase {
    case .ended: return nil
    case .event(let closes): return .nanoseconds(closes)
    case .between: break
    }
    if !silentSides.isEmpty { return .nanoseconds(supervisionDeadline) }
    guard central.hasFrames || peripheral.hasFrames || terminatingSide != nil else { return nil }
    return .nanoseconds(min(anchor, supervisionDeadline))
  }

  private var supervisionDeadline: Int64 {
    min(central.lastHeard, peripheral.lastHeard) + timing.supervisionTimeout
  }
}

// MARK: - Commands

extension LinkLayer {
  /// Queues a whole L2CAP frame, basic header included.
  ///
  /// Takes it also without room (see ``hasRoom(_:)``), because answers must not wait behind data. Returns false where the
  /// link has ended, the frame is empty, or a side has queued more than twice its depth and 64: then it must be ended.
  mutating func enqueue(_ frame: [UInt8], from side: LinkSide, now: Duration) -> Bool {
    guard !hasEnded, !frame.isEmpty else { return false }
    guard !(side == .central ? central : peripheral).budget.isOverrun else { return false }
    resumeEvents(now.inNanoseconds)
    switch side {
    case .central: central.append(frame, now: now.inNanoseconds)
    case .peripheral: peripheral.append(frame, now: now.inNanoseconds)
    }
    return true
  }

  /// Makes a side vanish from the air, or come back; the other side then hears nothing until the supervision timeout.
  mutating func setSilent(_ side: LinkSide, _ isSilent: Bool, now: Duration) {
    resumeEvents(now.inNanoseconds)
    if isSilent {
      silentSides.insert(side)
    } else {
      silentSides.remove(side)
      align(to: now.inNanoseconds)
    }
  }

  /// Makes the link fall silent once a part of the next frame of `side` has arrived; a frame of one packet is lost as a whole.
  mutating func cutInsideNextFrame(from side: LinkSide) {
    switch side {
    case .central: central.isCutArmed = true
    case .peripheral: peripheral.isCutArmed = true
    }
  }

  /// Ends the link in order, at the next event that both hear; frames that wait are dropped.
  mutating func terminate(by side: LinkSide, now: Duration) {
    guard !hasEnded, terminatingSide == nil else { return }
    resumeEvents(now.inNanoseconds)
    terminatingSide = side
  }

  /// Changes PHY, data length, interval and the rest from the next event on.
  mutating func update(_ parameters: LinkParameters, now: Duration) {
    resumeEvents(now.inNanoseconds)
    self.parameters = parameters
    timing = LinkTiming(parameters)
    errorThreshold = SeededGenerator.threshold(parameters.packetErrorRate)
    central.update(parameters)
    peripheral.update(parameters)
  }

  /// Leaves out the events that passed without anything to move.
  private mutating func resumeEvents(_ now: Int64) {
    guard case .between = phase, silentSides.isEmpty, terminatingSide == nil else { return }
    guard !central.hasFrames, !peripheral.hasFrames else { return }
    align(to: now)
  }

  private mutating func align(to now: Int64) {
    let interval = Int64(timing.interval) * 1000
    if anchor < now {
      anchor += (now - anchor + interval - 1) / interval * interval
      central.settleEmptyPacket()
      peripheral.settleEmptyPacket()
    }
    central.lastHeard = max(central.lastHeard, anchor - interval)
    peripheral.lastHeard = max(peripheral.lastHeard, anchor - interval)
  }
}

// MARK: - Time

extension LinkLayer {
  /// Lets time pass until `now` and appends what happened, oldest first.
  mutating func advance(to now: Duration, into outputs: inout [LinkOutput]) {
    while let wakeup = nextWakeup, wakeup <= now { step(wakeup.inNanoseconds, into: &outputs) }
  }

  private mutating func step(_ instant: Int64, into outputs: inout [LinkOutput]) {
    switch phase {
    case .ended: return
    case .event(let closes):
      outputs.append(contentsOf: eventOutputs)
      eventOutputs.removeAll(keepingCapacity: true)
      report(.central, central.completedFrames, closes, into: &outputs)
      report(.peripheral, peripheral.completedFrames, closes, into: &outputs)
      (central.completedFrames, peripheral.completedFrames) = (0, 0)
      central.meter.eventEnded(at: closes, hasMore: central.hasFrames, nextEvent: anchor)
      peripheral.meter.eventEnded(at: closes, hasMore: peripheral.hasFrames, nextEvent: anchor)
      phase = .between
    case .between where instant >= supervisionDeadline:
      end(.supervisionTimeout, instant, into: &outputs)
    case .between:
      if let terminatingSide {
        end(.terminated(by: terminatingSide), instant, into: &outputs)
      } else {
        runNextEvent()
      }
    }
  }

  private mutating func runNextEvent() {
    central.meter.eventBegan(at: anchor, carriesData: central.hasFrames)
    peripheral.meter.eventBegan(at: anchor, carriesData: peripheral.hasFrames)
    let outcome = runEvent(at: anchor)
    if outcome.fellSilent { silentSides.insert(.peripheral) }
    phase = .event(closes: anchor + Int64(outcome.microseconds) * 1000)
    anchor += Int64(timing.interval) * 1000
  }

  private func report(
    _ side: LinkSide, _ frames: Int, _ instant: Int64, into outputs: inout [LinkOutput]
  ) {
    guard frames > 0 else { return }
    outputs.append(.completed(from: side, frames: frames, at: .nanoseconds(instant)))
  }

  private mutating func end(_ reason: LinkEnd, _ instant: Int64, into outputs: inout [LinkOutput]) {
    central.removeAll()
    peripheral.removeAll()
    phase = .ended
    outputs.append(.ended(reason, at: .nanoseconds(instant)))
  }
}
