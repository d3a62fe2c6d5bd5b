import Testing

@testable import VirtualRadio

@Suite("Fault plan") struct FaultPlanTests {
  @Test(
    "words are read",
    arguments: [
      ("", FaultPlan()),
      ("drop@40%", FaultPlan([Fault(.link(.drop), .share(0.4))])),
      ("drop@100000", FaultPlan([Fault(.link(.drop), .octets(100_000))])),
      ("drop~0.001", FaultPlan([Fault(.link(.drop), .probability(0.001))])),
      ("drop-in-frame@64KiB", FaultPlan([Fault(.link(.dropInsideFrame), .octets(65_536))])),
      ("hangup@2s", FaultPlan([Fault(.link(.hangUp), .time(.seconds(2)))])),
      ("reboot@50%", FaultPlan([Fault(.host(.reboot(downtime: .seconds(1))), .share(0.5))])),
      ("reboot@10:250ms", FaultPlan([Fault(.host(.reboot(downtime: .milliseconds(250))), .octets(10))])),
      ("freeze@1MiB", FaultPlan([Fault(.host(.freeze(nil)), .octets(1_048_576))])),
      ("freeze@500ms:3s", FaultPlan([Fault(.host(.freeze(.seconds(3))), .time(.milliseconds(500)))])),
      ("overflow@5000:3", FaultPlan([Fault(.host(.overflow(writes: 3)), .octets(5000))])),
      ("overflow~1%", FaultPlan([Fault(.host(.overflow(writes: 1)), .probability(0.01))])),
      ("overflow~0.5:4", FaultPlan([Fault(.host(.overflow(writes: 4)), .probability(0.5))])),
      ("late-ready@10%:700", FaultPlan([Fault(.host(.lateReady(.milliseconds(700))), .share(0.1))])),
      ("late-ready~0.1", FaultPlan([Fault(.host(.lateReady(.seconds(2))), .probability(0.1))])),
      ("lost-ready@0", FaultPlan([Fault(.host(.lostReady), .octets(0))])),
      ("lose-notify~0.25", FaultPlan([Fault(.host(.loseNotifications(1)), .probability(0.25))])),
      ("mtu@500ms=247", FaultPlan([Fault(.host(.changeMTU(247)), .time(.milliseconds(500)))])),
      ("slow-erase=85ms", FaultPlan(eraseTime: .milliseconds(85))),
      ("corrupt@1234", FaultPlan([Fault(.corrupt, .octets(1234))])),
      ("no-credits@40%", FaultPlan([Fault(.host(.limitCredits(0)), .share(0.4))])),
      ("no-credits@0:2", FaultPlan([Fault(.host(.limitCredits(2)), .octets(0))])),
      ("seed=99", FaultPlan(seed: 99)),
      (
        " Drop@10% , drop@20%,SEED=3",
        FaultPlan([Fault(.link(.drop), .share(0.1)), Fault(.link(.drop), .share(0.2))], seed: 3)
      ),
    ])
  func reads(_ words: String, _ plan: FaultPlan) throws {
    #expect(try FaultPlan(parsing: words) == plan)
  }

  @Test(
    "what is wrong is named",
    arguments: [
      ("dorp@40%", "dorp@40%: no such fault (did you mean drop?); there are "),
      ("drop", "drop: is written drop@WHEN or drop~PROBABILITY; WHEN is octets, a percentage or a time"),
      ("drop@", "drop@: nothing follows @"),
      ("drop@140%", "drop@140%: 140% is not a percentage; write 0%...100%"),
      ("drop@x", "drop@x: x is not a place in the transfer; "),
      ("drop@-5", "drop@-5: -5 is not a place in the transfer; "),
      ("drop@99999999999GiB", "drop@99999999999GiB: 99999999999gib is not a place"),
      ("drop~1.5", "drop~1.5: 1.5 is not a probability; write 0...1 or 0%...100%"),
      ("drop@1@2", "drop@1@2: @ is there twice"),
      ("drop@1~0.5", "drop@1~0.5: is written drop@WHEN or"),
      ("drop@1:5", "drop@1:5: takes no :ARGUMENT"),
      ("drop@1=5", "drop@1=5: takes no =VALUE"),
      ("freeze~0.1", "freeze~0.1: is written freeze@WHEN; WHEN is"),
      ("freeze@1:soon", "freeze@1:soon: soon is not a time"),
      ("overflow@1:0", "overflow@1:0: 0 is not a count"),
      ("mtu@1=600", "mtu@1=600: is written mtu@WHEN=MTU; the MTU is 23...517"),
      ("corrupt@2s", "corrupt@2s: the offset is in octets or percent, not a time"),
      ("slow-erase", "slow-erase: is written slow-erase=VALUE"),
      ("seed=x", "seed=x: the seed is not a whole number"),
      ("drop@1,", "\"\": an item is empty; faults look like drop@40%"),
    ])
  func refuses(_ words: String, _ start: String) {
    let error = #expect(throws: SettingError.self) { try FaultPlan(parsing: words) }
    #expect(error?.description.hasPrefix(start) == true, "\(error?.description ?? "")")
  }

  @Test("every form that help lists begins with a name that is read")
  func formsAreReal() throws {
    let examples = [
      "WHEN": "10%", "P": "0.5", "TIME": "1s", "COUNT": "2", "MTU": "100", "OFFSET": "7", "N": "3",
    ]
    for form in FaultPlan.forms {
      var words = form.syntax.replacing("[", with: "").replacing("]", with: "")
      for (name, value) in examples.sorted(by: { $0.key.count > $1.key.count }) {
        words = words.replacing(name, with: value)
      }
      _ = try FaultPlan(parsing: words)
    }
  }

  @Test(
    "the description is read back as the same plan",
    arguments: [
      "", "seed=99", "drop@40%", "drop@1.25%", "drop~0.00001", "drop-in-frame@65536", "hangup@2s",
      "reboot@50%:250",
      "freeze@10", "freeze@500ms:3s", "overflow@5000:3", "overflow~0.015:4", "late-ready~0.1:700",
      "lost-ready@0",
      "lose-notify@7:2", "mtu@500ms=247", "slow-erase=85ms", "corrupt@33%", "no-credits@33%",
      "no-credits@1s:7",
      "drop@1,drop@2,slow-erase=1.5,seed=3",
    ])
  func roundTrip(_ words: String) throws {
    let plan = try FaultPlan(parsing: words)
    #expect(try FaultPlan(parsing: plan.description) == plan)
  }

  @Test("shares become octets once the size is known")
  func resolving() throws {
    let plan = try FaultPlan(parsing: "drop@40%,corrupt@50%,freeze@2s")
    #expect(plan.needsTotal)
    #expect(plan.corruptedOffsets == [])
    let resolved = plan.resolved(totalBytes: 1001)
    #expect(!resolved.needsTotal)
    #expect(resolved.faults.map(\.trigger) == [.octets(400), .octets(500), .time(.seconds(2))])
    #expect(resolved.corruptedOffsets == [500])
  }
}

@Suite("Fault script") struct FaultScriptTests {
  private func script(_ words: String, total: Int? = nil) throws -> FaultScript {
    var script = FaultScript(try FaultPlan(parsing: words))
    if let total { script.resolve(totalBytes: total) }
    return script
  }

  @Test("a fault at a place happens once, when that many octets have arrived, over all links")
  func places() throws {
    var script = try script("drop@1000,reboot@50%:3s,drop-in-frame@2500", total: 4000)
    #expect(script.linkMade(now: .zero) == [])
    #expect(script.payloadArrived(octets: 999, now: .zero) == [])
    #expect(script.payloadArrived(octets: 1, now: .zero) == [.link(.drop)])
    script.linkEnded()
    #expect(script.linkMade(now: .seconds(5)) == [])
    #expect(script.payloadArrived(octets: 1000, now: .zero) == [.host(.reboot(downtime: .seconds(3)))])
    #expect(script.payloadArrived(octets: 10_000, now: .zero) == [.link(.dropInsideFrame)])
    #expect(script.payloadArrived(octets: 10_000, now: .zero) == [])
  }

  @Test("a share waits until the size is known")
  func shares() throws {
    var script = try script("hangup@10%")
    #expect(script.payloadArrived(octets: 1000, now: .zero) == [])
    script.resolve(totalBytes: 5000)
    #expect(script.payloadArrived(octets: 0, now: .zero) == [.link(.hangUp)])
  }

  @Test("a timed fault counts from the link and waits for the next one if that ends first")
  func times() throws {
    var script = try script("mtu@500ms=247,freeze@2s:1s")
    #expect(script.nextTime == nil)
    #expect(script.linkMade(now: .seconds(10)) == [])
    #expect(script.nextTime == .milliseconds(10_500))
    #expect(script.handleTimeout(now: .milliseconds(10_499)) == [])
    #expect(script.handleTimeout(now: .milliseconds(10_500)) == [.host(.changeMTU(247))])
    #expect(script.nextTime == .seconds(12))
    script.linkEnded()
    #expect(script.nextTime == nil)
    #expect(script.handleTimeout(now: .seconds(30)) == [])
    #expect(script.linkMade(now: .seconds(40)) == [])
    #expect(script.handleTimeout(now: .seconds(42)) == [.host(.freeze(.seconds(1)))])
    #expect(script.nextTime == nil)
  }

  @Test("an overflow drops so many write commands from its place on")
  func overflow() throws {
    var script = try script("overflow@100:3")
    let before = script.dropsWriteCommand()
    #expect(script.payloadArrived(octets: 100, now: .zero) == [])
    let after = (0..<5).map { _ in script.dropsWriteCommand() }
    #expect(!before)
    #expect(after == [true, true, true, false, false])
  }

  @Test("notifications and ready signals go wrong as planned")
  func signals() throws {
    var script = try script("lose-notify@10:2,late-ready@10:1s,lost-ready@10")
    #expect(script.readySignal() == .prompt)
    _ = script.payloadArrived(octets: 10, now: .zero)
    #expect((0..<3).map { _ in script.losesNotification() } == [true, true, false])
    #expect((0..<3).map { _ in script.readySignal() } == [.late(.seconds(1)), .never, .prompt])
  }

  @Test("random faults come as often as planned, and the same for the same seed")
  func random() throws {
    func counts(_ seed: Int) throws -> [Int] {
      var script = try script("drop~0.02,overflow~0.1,lose-notify~0.3,late-ready~0.05:1s,seed=\(seed)")
      let drops = (0..<10_000).reduce(0) { count, _ in count + script.linkEventEnded().count }
      let writes = (0..<10_000).reduce(0) { count, _ in count + (script.dropsWriteCommand() ? 1 : 0) }
      let notifications = (0..<10_000).reduce(0) { count, _ in count + (script.losesNotification() ? 1 : 0) }
      let signals = (0..<10_000).reduce(0) { count, _ in count + (script.readySignal() == .prompt ? 0 : 1) }
      return [drops, writes, notifications, signals]
    }
    let first = try counts(1)
    #expect(try counts(1) == first)
    #expect(try counts(2) != first)
    for (count, expected) in zip(first, [200, 1000, 3000, 500]) {
      #expect(abs(count - expected) < expected / 4)
    }
  }

  @Test("one kind's draws do not shift another's")
  func independence() throws {
    var alone = try script("drop~0.1,overflow~0.5")
    var busy = try script("drop~0.1,overflow~0.5")
    var drops: [(Int, Int)] = []
    for _ in 0..<500 {
      _ = busy.dropsWriteCommand()
      drops.append((alone.linkEventEnded().count, busy.linkEventEnded().count))
    }
    #expect(drops.allSatisfy { $0.0 == $0.1 })
  }
}
