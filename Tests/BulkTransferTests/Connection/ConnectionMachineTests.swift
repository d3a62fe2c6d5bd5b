import BulkTransfer
import Foundation
import Testing

@Suite("The life of a connection")
struct ConnectionMachineTests {
  @Test("leads from the radio over discovery to ready, each step with a limit of its own")
  func wholeWay() {
    var machine = ConnectionMachine(target: .identifier(Sample.one), services: [Sample.service])
    #expect(machine.deadline == nil)
    #expect(machine.handle(.connect, now: .zero).isEmpty)
    #expect(machine.state == .waitingForRadio && machine.deadline == .seconds(10))
    #expect(machine.handle(.radioReady, now: .seconds(1)) == [.lookUp([Sample.one])])
    #expect(machine.state == .finding && machine.deadline == .seconds(11))
    #expect(machine.handle(.known([]), now: .seconds(1)) == [.scan])
    #expect(
      machine.handle(.sighted(Sample.sighting(Sample.one)), now: .seconds(2))
        == [.stopScan, .connect(Sample.one)])
    #expect(machine.state == .connecting(Sample.one) && machine.deadline == .seconds(12))
    #expect(machine.handle(.connected(name: nil), now: .seconds(3)) == [.discoverServices])
    #expect(machine.deadline == .seconds(13))
    let service = Sample.service.service
    #expect(
      machine.handle(.servicesDiscovered([service]), now: .seconds(4))
        == [.discoverCharacteristics(service: service)])
    #expect(machine.state == .discoveringCharacteristics(Sample.one) && machine.deadline == .seconds(14))
    #expect(
      machine.handle(
        .characteristicsDiscovered(service: service, Sample.service.characteristics), now: .seconds(5))
        == [.remember(Sample.one)])
    #expect(machine.state == .ready(Sample.one) && machine.deadline == nil)
  }

  @Test("connects at once to a device that the host knows")
  func known() {
    var machine = ConnectionMachine.searching()
    #expect(machine.handle(.known([Sample.sighting(Sample.one)]), now: .zero) == [.connect(Sample.one)])
  }

  @Test("each step ends when its time is over", arguments: 0...4)
  func limits(steps: Int) {
    var machine = ConnectionMachine(target: .identifier(Sample.one), services: [Sample.service])
    let inputs: [ConnectionMachine.Input] = [
      .radioReady, .known([Sample.sighting(Sample.one)]), .connected(name: nil),
      .servicesDiscovered([Sample.service.service]),
    ]
    _ = machine.handle(.connect, now: .zero)
    for input in inputs.prefix(steps) { _ = machine.handle(input, now: .zero) }
    let before = machine.state
    #expect(machine.handle(.deadline, now: .milliseconds(9999)).isEmpty)
    #expect(machine.state == before)
    let actions = machine.handle(.deadline, now: .seconds(10))
    switch steps {
    case 0: #expect(machine.error?.code == .radioUnavailable)
    case 1: #expect(machine.error?.code == .deviceNotFound)
    default: #expect(actions == [.disconnect] && machine.state == .pausing(Sample.one))
    }
  }

  @Test("a device out of reach is waited for without a limit where that is wanted")
  func outOfReach() {
    var machine = ConnectionMachine.ready()
    #expect(machine.handle(.lost("supervision timeout"), now: .seconds(20)).isEmpty)
    let due = machine.deadline ?? .zero
    #expect(machine.handle(.deadline, now: due) == [.connect(Sample.one)])
    // The request stays with the radio: nothing is timed, nothing is done.
    #expect(machine.deadline == nil)
    #expect(machine.handle(.deadline, now: .seconds(1_000_000)).isEmpty)
    machine.bringUp(now: .seconds(1_000_000))
    #expect(machine.isReady)
  }

  @Test("with a limit it is given up after the attempts that are allowed")
  func outOfReachLimited() {
    var machine = ConnectionMachine.ready {
      $0.reconnectLimit = .seconds(2)
      $0.fruitlessAttempts = 3
    }
    _ = machine.handle(.lost("supervision timeout"), now: .seconds(1))
    var connects = 0
    while let due = machine.deadline, connects < 10 {
      if machine.handle(.deadline, now: due).contains(.connect(Sample.one)) { connects += 1 }
    }
    #expect(connects == 2)
    #expect(machine.error?.code == .disconnected)
    #expect(machine.error?.message.contains("3 attempts") == true)
  }

  @Test("connects again in growing pauses, and gives up after five links without progress")
  func pauses() {
    var machine = ConnectionMachine.ready { $0.stableTime = nil }
    var now = Duration.zero
    var pauses: [Duration] = []
    for _ in 1...4 {
      #expect(machine.handle(.lost("cut"), now: now).isEmpty)
      let due = machine.deadline ?? .zero
      pauses.append(due - now)
      now = due
      #expect(machine.handle(.deadline, now: now) == [.connect(Sample.one)])
      machine.bringUp(now: now)
    }
    #expect(pauses == [.milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800)])
    _ = machine.handle(.lost("cut"), now: now)
    #expect(machine.error?.code == .disconnected)
  }

  @Test("progress begins the count anew, told or by a link that has lasted", arguments: [true, false])
  func progress(isTold: Bool) {
    var machine = ConnectionMachine.ready {
      $0.fruitlessAttempts = 2
      $0.stableTime = isTold ? nil : .seconds(10)
    }
    var now = Duration.zero
    for _ in 1...20 {
      if isTold { _ = machine.handle(.progressed, now: now) }
      now += .seconds(10)
      _ = machine.handle(.lost("cut"), now: now)
      #expect(machine.error == nil)
      now = machine.deadline ?? now
      _ = machine.handle(.deadline, now: now)
      machine.bringUp(now: now)
    }
  }

  @Test("pauses grow to five seconds and no further where nothing limits the attempts")
  func endless() {
    var machine = ConnectionMachine.ready { $0.fruitlessAttempts = nil }
    var now = Duration.zero
    for _ in 1...1000 {
      _ = machine.handle(.lost("refused"), now: now)
      #expect(machine.deadline.map { $0 - now <= .seconds(5) } == true)
      now = machine.deadline ?? now
      #expect(machine.handle(.deadline, now: now) == [.connect(Sample.one)])
      _ = machine.handle(.connected(name: nil), now: now)
    }
  }

  @Test("does not connect again where that is not wanted")
  func once() {
    var machine = ConnectionMachine.ready { $0.reconnects = false }
    _ = machine.handle(.lost("peer terminated"), now: .seconds(1))
    #expect(machine.error?.code == .disconnected && machine.error?.isRetriable == true)
  }

  @Test("a refusal is tried again after longer pauses, and is the error in the end")
  func refusal() {
    let busy = TransferError(.refused, "another sender is being served", isRetriable: true)
    var machine = ConnectionMachine.ready { $0.fruitlessAttempts = 4 }
    var now = Duration.zero
    for attempt in 1...4 {
      #expect(machine.handle(.refused(busy), now: now) == [.disconnect])
      guard attempt < 4 else { break }
      #expect((machine.deadline ?? .zero) - now >= .seconds(1))
      now = machine.deadline ?? now
      _ = machine.handle(.deadline, now: now)
      machine.bringUp(now: now)
    }
    #expect(machine.state == .failed(busy))
  }

  // MARK: Radio

  @Test("waits for an adapter that is off, and ends at once where there is none")
  func adapter() {
    var machine = ConnectionMachine(target: .any)
    _ = machine.handle(.connect, now: .zero)
    #expect(machine.handle(.radioUnavailable("powered off", isFinal: false), now: .zero).isEmpty)
    _ = machine.handle(.deadline, now: .seconds(10))
    #expect(machine.error?.code == .radioUnavailable)
    machine = ConnectionMachine(target: .any)
    _ = machine.handle(.connect, now: .zero)
    _ = machine.handle(.radioUnavailable("no adapter", isFinal: true), now: .zero)
    #expect(machine.error?.code == .radioUnavailable)
  }

  @Test("looks for the device again after the adapter was away, whatever the step", arguments: 0...5)
  func findsAgain(steps: Int) {
    var machine = ConnectionMachine(target: .identifier(Sample.one), services: [Sample.service])
    let service = Sample.service
    let inputs: [ConnectionMachine.Input] = [
      .radioReady, .known([Sample.sighting(Sample.one)]), .connected(name: nil),
      .servicesDiscovered([service.service]),
      .characteristicsDiscovered(service: service.service, service.characteristics),
    ]
    _ = machine.handle(.connect, now: .zero)
    for input in inputs.prefix(steps) { _ = machine.handle(input, now: .zero) }
    #expect(machine.handle(.radioUnavailable("powered off", isFinal: false), now: .seconds(1)).isEmpty)
    #expect(machine.state == .waitingForRadio)
    #expect(machine.handle(.radioReady, now: .seconds(2)) == [.lookUp([Sample.one])])
    #expect(machine.deadline == .seconds(12))
  }

  @Test("what is late changes nothing")
  func late() {
    let late: [ConnectionMachine.Input] = [
      .known([Sample.sighting(Sample.two)]), .sighted(Sample.sighting(Sample.two)), .connected(name: "x"),
      .servicesDiscovered([]), .characteristicsDiscovered(service: "180D", []), .lost("late"), .drop("late"),
      .servicesModified([Sample.service.service]), .restartExpected(within: .seconds(1)), .deadline,
      .restored([Sample.sighting(Sample.one)]),
    ]
    for input in late {
      var machine = ConnectionMachine.ready(services: [Sample.service])
      _ = machine.handle(.disconnect, now: .seconds(1))
      #expect(machine.handle(input, now: .seconds(2)).isEmpty)
      #expect(machine.state == .idle)
    }
  }

  // MARK: Ends

  @Test("is ended on request at every step, and nothing stays behind", arguments: 0...5)
  func disconnects(steps: Int) {
    let service = Sample.service
    let inputs: [ConnectionMachine.Input] = [
      .known([]), .sighted(Sample.sighting(Sample.one)), .connected(name: nil),
      .servicesDiscovered([service.service]),
      .characteristicsDiscovered(service: service.service, service.characteristics),
    ]
    var machine = ConnectionMachine.searching(services: [service])
    for input in inputs.prefix(steps) { _ = machine.handle(input, now: .zero) }
    let expected: [ConnectionMachine.Action] = [[], [.stopScan]][min(steps, 1)]
    #expect(machine.handle(.disconnect, now: .zero) == (steps > 1 ? [.disconnect] : expected))
    #expect(machine.state == .idle && machine.deadline == nil)
    // It is remembered where it was.
    #expect(machine.handle(.connect, now: .zero) == [.lookUp([Sample.one])])
  }

  @Test("forgets on request, and does not come back to the device by itself")
  func forgets() {
    var machine = ConnectionMachine.searching(.any, memory: Sample.one)
    _ = machine.handle(.known([Sample.sighting(Sample.one)]), now: .zero)
    machine.bringUp(now: .zero)
    #expect(machine.handle(.forget, now: .zero) == [.disconnect, .forget(Sample.one)])
    #expect(machine.handle(.connect, now: .zero) == [.lookUp([])])
    // Also before it was ever connected to in this run.
    machine = ConnectionMachine(target: .name("bench-1"), memory: Sample.two)
    #expect(machine.handle(.forget, now: .zero) == [.forget(Sample.two)])
  }

  @Test("after a failure it can be wanted again")
  func again() {
    var machine = ConnectionMachine.searching()
    _ = machine.handle(.known([]), now: .zero)
    _ = machine.handle(.deadline, now: .seconds(10))
    #expect(machine.error?.code == .deviceNotFound)
    #expect(machine.handle(.connect, now: .seconds(20)) == [.lookUp([Sample.one])])
    #expect(machine.deadline == .seconds(30))
  }

  @Test("a device that another process uses is left alone, in that process's words")
  func claimed() {
    let taken = TransferError(.locked, "another process (pid 7) works on bench-1", isRetriable: true)
    var machine = ConnectionMachine.searching()
    _ = machine.handle(.known([Sample.sighting(Sample.one)]), now: .zero)
    _ = machine.handle(.claimRefused(taken), now: .zero)
    #expect(machine.state == .failed(taken))
  }

  // MARK: Discovery

  @Test(
    "a device that lacks a service or a characteristic is asked once more, and one that had it as often as any",
    arguments: [false, true], [false, true])
  func missing(hadIt: Bool, lacksService: Bool) {
    var machine =
      hadIt
      ? ConnectionMachine.ready(services: [Sample.service]) { $0.stableTime = nil }
      : ConnectionMachine.searching(services: [Sample.service])
    if hadIt {
      _ = machine.handle(.lost("cut"), now: .zero)
    } else {
      _ = machine.handle(.known([Sample.sighting(Sample.one)]), now: .zero)
    }
    var now = Duration.zero
    var attempts = 0
    while machine.error == nil, attempts < 10 {
      if case .pausing = machine.state {
        now = machine.deadline ?? now
        _ = machine.handle(.deadline, now: now)
      }
      attempts += 1
      _ = machine.handle(.connected(name: nil), now: now)
      var actions = machine.handle(
        .servicesDiscovered(lacksService ? [] : [Sample.service.service]), now: now)
      if !lacksService {
        actions = machine.handle(.characteristicsDiscovered(service: Sample.service.service, []), now: now)
      }
      #expect(actions == [.disconnect])
    }
    #expect(machine.error?.code == .unsupportedDevice)
    #expect(machine.error?.message.contains("the heart rate service") == true)
    #expect(attempts == (hadIt ? 4 : 2))
  }

  @Test("a device that changes its database is discovered again, or connected to again")
  func modified() {
    var machine = ConnectionMachine.ready(services: [Sample.service])
    #expect(machine.handle(.servicesModified(["1800"]), now: .seconds(1)).isEmpty)
    #expect(
      machine.handle(.servicesModified([Sample.service.service]), now: .seconds(1)) == [.discoverServices])
    #expect(machine.state == .discoveringServices(Sample.one) && machine.deadline == .seconds(11))
    _ = machine.handle(.servicesDiscovered([Sample.service.service]), now: .seconds(1))
    // Once more, while characteristics are awaited: all of it anew.
    #expect(
      machine.handle(.servicesModified([Sample.service.service]), now: .seconds(1)) == [.discoverServices])
    machine.bringUp(now: .seconds(2))
    #expect(machine.isReady)

    machine = ConnectionMachine.ready(services: [Sample.service]) { $0.modification = .connectsAgain }
    #expect(machine.handle(.servicesModified([Sample.service.service]), now: .seconds(1)) == [.disconnect])
    #expect(machine.state == .pausing(Sample.one))
  }

  // MARK: Restarts and restoration

  @Test(
    "a device that was told to start anew ends the link itself, or has it ended; neither is a failed attempt")
  func restart() {
    for endsItself in [true, false] {
      var machine = ConnectionMachine.ready {
        $0.fruitlessAttempts = 1
        $0.stableTime = nil
      }
      #expect(machine.handle(.restartExpected(within: .seconds(10)), now: .zero).isEmpty)
      #expect(machine.state == .restarting(Sample.one) && machine.deadline == .seconds(10))
      if endsItself {
        #expect(machine.handle(.lost("peer terminated"), now: .seconds(1)).isEmpty)
      } else {
        #expect(machine.handle(.deadline, now: .seconds(10)) == [.disconnect])
      }
      #expect(machine.state == .pausing(Sample.one))
      let due = machine.deadline ?? .zero
      #expect(machine.handle(.deadline, now: due) == [.connect(Sample.one)])
    }
  }

  @Test("takes over what the system has restored, without a search", arguments: [true, false])
  func restored(byName: Bool) {
    var machine = ConnectionMachine(
      target: byName ? .name("bench-1") : .any, memory: byName ? nil : Sample.two)
    _ = machine.handle(.connect, now: .zero)
    let devices = [
      DeviceSighting(identifier: Sample.one, knownName: byName ? "bench-9" : "x"),
      DeviceSighting(identifier: Sample.two, knownName: "bench-1", isConnected: true),
    ]
    #expect(machine.handle(.restored(devices), now: .zero).isEmpty)
    // An adapter that comes up slowly changes nothing.
    _ = machine.handle(.radioUnavailable("not ready", isFinal: false), now: .zero)
    #expect(machine.handle(.radioReady, now: .seconds(1)) == [.connect(Sample.two)])
  }

  @Test("what was restored and is not meant is looked past")
  func restoredOther() {
    var machine = ConnectionMachine(target: .name("bench-1"))
    _ = machine.handle(.connect, now: .zero)
    _ = machine.handle(.restored([DeviceSighting(identifier: Sample.one, knownName: "x")]), now: .zero)
    #expect(machine.handle(.radioReady, now: .zero) == [.lookUp([])])
  }
}
