import Radio
import Testing

@testable import BlueZRadio

/// Drives a machine and keeps the calls that are open.
private struct Script {
  var machine = LinkMachine()
  var now = Duration.zero
  var log: [LinkMachine.Action] = []
  private var seen = 0

  mutating func run(_ step: (inout LinkMachine, Duration) -> [LinkMachine.Action]) {
    log += step(&machine, now)
  }

  mutating func want(_ isWanted: Bool = true) { run { $0.setWanted(isWanted, now: $1) } }
  mutating func device(_ device: LinkMachine.Device) { run { $0.deviceChanged(device, now: $1) } }
  mutating func connectEnds(_ failure: LinkMachine.Failure?) {
    var round: UInt64 = 0
    for case .connect(let number) in log { round = number }
    run { [round] in $0.connectEnded(round: round, failure, now: $1) }
  }
  mutating func disconnectEnds() {
    var round: UInt64 = 0
    for case .disconnect(let number) in log { round = number }
    run { [round] in $0.disconnectEnded(round: round, now: $1) }
  }
  /// Lets the time pass that the last wake asks for.
  mutating func wake() {
    for case .wake(let instant) in log.reversed() {
      now = max(now, instant)
      break
    }
    run { $0.tick(now: $1) }
  }

  /// Names of the actions since the last call, without rounds and instants.
  mutating func news() -> [String] {
    defer { seen = log.count }
    return log.dropFirst(seen).map { String(String(describing: $0).prefix { $0 != "(" }) }
  }
}

@Suite("The life of a link to a device")
struct LinkMachineTests {
  @Test("a known device is connected to, and the link is up when its property says so")
  func simple() {
    var script = Script()
    script.device(.apart)
    script.want()
    #expect(script.news() == ["connect"])
    script.device(.linked)
    #expect(script.news() == ["up"])
    script.connectEnds(nil)
    #expect(script.news() == [])
  }

  @Test("an unknown device is looked for until the daemon knows it", arguments: [true, false])
  func search(isLinked: Bool) {
    var script = Script()
    script.want()
    #expect(script.news() == ["startSearch"])
    script.device(isLinked ? .linked : .apart)
    #expect(script.news() == ["stopSearch", isLinked ? "up" : "connect"])
  }

  @Test("a link that is there already counts once it has stood longer than the daemon takes to end one")
  func join() {
    var script = Script()
    script.device(.linked)
    script.want()
    #expect(script.news() == ["wake"])
    script.run { $0.tick(now: $1 + LinkMachine.joinTime - .milliseconds(1)) }
    #expect(script.news() == [])
    script.wake()
    #expect(script.news() == ["up"])
  }

  @Test("a link that another program was ending is made anew, without a word", arguments: [false, true])
  func joinTooLate(isGone: Bool) {
    var script = Script()
    script.device(.linked)
    script.want()
    script.device(isGone ? .absent : .apart)
    #expect(script.news() == ["wake", isGone ? "startSearch" : "connect"])
    // The timer of the other link is nothing to this one.
    script.wake()
    #expect(script.news() == [])
    script.device(.linked)
    #expect(script.log.last == .up)
  }

  @Test("a wish for a link that is there already is withdrawn: the link ends")
  func joinCancelled() {
    var script = Script()
    script.device(.linked)
    script.want()
    script.want(false)
    #expect(script.news() == ["wake", "disconnect", "wake"])
    script.device(.apart)
    script.disconnectEnds()
    #expect(script.machine.phase == .idle)
  }

  @Test("a failed call is made again and again, at intervals that are bounded")
  func noTimeLimit() {
    var script = Script()
    script.device(.apart)
    script.want()
    var pauses: [Duration] = []
    for _ in 0..<20 {
      #expect(script.news() == ["connect"])
      script.connectEnds(.passing)
      #expect(script.news() == ["wake"])
      let before = script.now
      script.wake()
      pauses.append(script.now - before)
    }
    #expect(pauses.first == .milliseconds(100))
    #expect(pauses.max() == .seconds(5))
    script.device(.linked)
    #expect(script.log.last == .up)
  }

  @Test("somebody else's attempt counts as ours: busy now, linked later")
  func othersConnect() {
    var script = Script()
    script.device(.apart)
    script.want()
    script.connectEnds(.passing)
    script.device(.linked)
    #expect(script.news() == ["connect", "wake", "up"])
    // The timer of the pause comes too late to matter.
    script.wake()
    #expect(script.news() == [])
  }

  @Test("a device that the daemon forgets between two calls is looked for")
  func forgotten() {
    var script = Script()
    script.device(.apart)
    script.want()
    script.connectEnds(.passing)
    script.device(.absent)
    #expect(script.news() == ["connect", "wake", "startSearch"])
  }

  @Test("what can never be is told once, and a new wish begins anew")
  func permanent() {
    var script = Script()
    script.device(.apart)
    script.want()
    script.connectEnds(.permanent(RadioError(.notSupported)))
    #expect(script.news() == ["connect", "fail"])
    #expect(!script.machine.isWanted)
    script.want()
    #expect(script.news() == ["connect"])
  }

  @Test("a pending call is cancelled, and its late success undone before anything else is begun")
  func cancelling() {
    var script = Script()
    script.device(.apart)
    script.want()
    script.want(false)
    #expect(script.news() == ["connect", "disconnect", "wake"])
    script.want()
    script.disconnectEnds()
    #expect(script.news() == [])
    script.connectEnds(.passing)
    #expect(script.news() == ["connect"])
  }

  @Test("a link that came up while its wish was withdrawn is not told, and ends")
  func cancelledTooLate() {
    var script = Script()
    script.device(.apart)
    script.want()
    script.want(false)
    script.device(.linked)
    script.connectEnds(nil)
    script.disconnectEnds()
    #expect(script.news() == ["connect", "disconnect", "wake"])
    script.device(.apart)
    #expect(script.machine.phase == .idle)
  }

  @Test("wishes for a device that is looked for, or between two calls, end without a call")
  func cancellingQuietly() {
    var script = Script()
    script.want()
    script.want(false)
    #expect(script.news() == ["startSearch", "stopSearch"])
    script.device(.apart)
    script.want()
    script.connectEnds(.passing)
    script.want(false)
    #expect(script.news() == ["connect", "wake"])
    script.wake()
    #expect(script.news() == [])
  }

  @Test("a lost link is told once, and nobody wants it any more", arguments: [false, true])
  func loss(isGone: Bool) {
    var script = Script()
    script.device(.apart)
    script.want()
    script.device(.linked)
    script.device(isGone ? .absent : .apart)
    script.device(.absent)
    #expect(script.news() == ["connect", "up", "down"])
    #expect(!script.machine.isWanted)
  }

  @Test("a daemon that does not answer a call is told to stop, and asked again")
  func stuck() {
    var script = Script()
    script.device(.apart)
    script.want()
    script.connectEnds(.stuck)
    #expect(script.news() == ["connect", "disconnect", "wake"])
    script.disconnectEnds()
    #expect(script.news() == ["connect"])
  }

  @Test("a daemon that never ends a link is not waited for for ever, and its late answers count no more")
  func endless() {
    var script = Script()
    script.device(.apart)
    script.want()
    let old = script.log
    script.want(false)
    script.want()
    script.wake()
    #expect(script.news() == ["connect", "disconnect", "wake", "connect"])
    for case .connect(let round) in old {
      script.run { $0.connectEnded(round: round, .permanent(RadioError(.other)), now: $1) }
    }
    #expect(script.news() == [])
  }

  @Test("an adapter that goes takes all with it")
  func reset() {
    var script = Script()
    script.want()
    #expect(script.machine.reset() == true)
    #expect(script.machine.reset() == false)
    script.device(.apart)
    script.wake()
    #expect(script.news() == ["startSearch"])
    script.want()
    #expect(script.news() == ["connect"])
  }
}
