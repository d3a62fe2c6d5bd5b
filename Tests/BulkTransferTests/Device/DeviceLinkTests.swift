import BulkTransfer
import Foundation
import Testing

@Suite("The way to a carrier")
struct DeviceLinkTests {
  private static func machine(
    _ choice: CarrierChoice = .automatic, change: (inout DeviceLink.Configuration) -> Void = { _ in }
  ) -> DeviceLink {
    var configuration = DeviceLink.Configuration()
    configuration.choice = choice
    change(&configuration)
    return DeviceLink(target: .name("bench-1"), configuration: configuration, now: .zero)
  }

  private func error(_ actions: [DeviceLink.Action]) -> TransferError? {
    for case .fail(let error) in actions { return error }
    return nil
  }

  /// Brings a machine to the state in which services were discovered.
  private func discovered(_ machine: inout DeviceLink, hasPSM: Bool) -> [DeviceLink.Action] {
    #expect(machine.handle(.radioReady, now: .zero) == [.find(.name("bench-1"))])
    #expect(machine.handle(.found, now: .zero) == [.stopFinding, .connect])
    #expect(machine.handle(.connected, now: .zero) == [.discover])
    return machine.handle(.discovered(hasPSM: hasPSM), now: .zero)
  }

  @Test(
    "chooses the carrier by wish and offer",
    arguments: [
      (CarrierChoice.automatic, true, [DeviceLink.Action.readPSM]), (.automatic, false, [.subscribe]),
      (.gatt, true, [.subscribe]), (.gatt, false, [.subscribe]), (.l2cap, true, [.readPSM]),
    ])
  func carrier(choice: CarrierChoice, hasPSM: Bool, wanted: [DeviceLink.Action]) {
    var machine = Self.machine(choice)
    #expect(discovered(&machine, hasPSM: hasPSM) == wanted)
  }

  @Test("starts over L2CAP once the channel is open")
  func channel() {
    var machine = Self.machine()
    _ = discovered(&machine, hasPSM: true)
    #expect(machine.handle(.psm(0x80), now: .zero) == [.openChannel(psm: 0x80)])
    #expect(machine.handle(.channelOpened, now: .zero) == [.start(.l2cap)])
    #expect(machine.deadline == nil)
  }

  @Test(
    "falls back to GATT where a channel cannot be had",
    arguments: [DeviceLink.Input.psm(nil), .psm(0), .channelRefused("no resources"), .deadline])
  func fallback(input: DeviceLink.Input) {
    var machine = Self.machine()
    _ = discovered(&machine, hasPSM: true)
    if case .psm = input {} else { _ = machine.handle(.psm(0x80), now: .zero) }
    #expect(machine.handle(input, now: .seconds(10)) == [.subscribe])
    #expect(machine.handle(.subscribed, now: .seconds(10)) == [.start(.gatt)])
  }

  @Test("refuses where L2CAP was demanded and the device has none")
  func demanded() {
    var machine = Self.machine(.l2cap)
    let actions = discovered(&machine, hasPSM: false)
    #expect(error(actions)?.code == .unsupportedDevice)
    #expect(actions.first == .disconnect)
  }

  @Test("says that a device was not found, once its time is over")
  func notFound() {
    var machine = Self.machine { $0.stepLimit = .seconds(3) }
    _ = machine.handle(.radioReady, now: .seconds(1))
    #expect(machine.deadline == .seconds(4))
    #expect(machine.handle(.deadline, now: .seconds(3)).isEmpty)
    let actions = machine.handle(.deadline, now: .seconds(4))
    #expect(actions.first == .stopFinding)
    #expect(error(actions)?.code == .deviceNotFound)
    #expect(machine.handle(.found, now: .seconds(5)).isEmpty)
  }

  @Test("connects again after a loss, in growing pauses, and gives up after five without progress")
  func reconnects() {
    var machine = Self.machine()
    _ = machine.handle(.radioReady, now: .zero)
    _ = machine.handle(.found, now: .zero)
    var now = Duration.zero
    var pauses: [Duration] = []
    for _ in 1...4 {
      _ = machine.handle(.connected, now: now)
      #expect(machine.handle(.lost("supervision timeout"), now: now).isEmpty)
      let due = machine.deadline ?? .zero
      pauses.append(due - now)
      now = due
      #expect(machine.handle(.deadline, now: now) == [.connect])
    }
    #expect(pauses == pauses.sorted() && pauses[0] < pauses[3])
    _ = machine.handle(.connected, now: now)
    #expect(error(machine.handle(.lost("supervision timeout"), now: now))?.code == .disconnected)
  }

  @Test("counts attempts anew once something became durable")
  func progress() {
    var machine = Self.machine { $0.fruitlessAttempts = 2 }
    _ = machine.handle(.radioReady, now: .zero)
    _ = machine.handle(.found, now: .zero)
    for round in 1...20 {
      let now = Duration.seconds(round)
      _ = machine.handle(.connected, now: now)
      _ = machine.handle(.progressed, now: now)
      #expect(error(machine.handle(.lost("cut"), now: now)) == nil)
      _ = machine.handle(.deadline, now: now + .milliseconds(900))
    }
  }

  @Test("does not connect again where that is not wanted")
  func once() {
    var machine = Self.machine { $0.reconnects = false }
    _ = discovered(&machine, hasPSM: false)
    _ = machine.handle(.subscribed, now: .zero)
    let failure = error(machine.handle(.lost("peer terminated"), now: .seconds(1)))
    #expect(failure?.code == .disconnected && failure?.isRetriable == true)
  }

  @Test("ends at once where there is no adapter, waits where it is only off")
  func adapter() {
    var machine = Self.machine()
    #expect(machine.handle(.radioUnavailable("powered off", isFinal: false), now: .zero).isEmpty)
    #expect(error(machine.handle(.deadline, now: .seconds(10)))?.code == .radioUnavailable)
    machine = Self.machine()
    let failure = error(machine.handle(.radioUnavailable("no adapter", isFinal: true), now: .zero))
    #expect(failure?.code == .radioUnavailable)
  }

  @Test("a refusal is tried again after longer pauses, and is the error in the end")
  func refusal() {
    let busy = TransferError(.refused, "another sender is being served", isRetriable: true)
    var machine = Self.machine(.gatt) { $0.fruitlessAttempts = 4 }
    _ = discovered(&machine, hasPSM: false)
    var now = Duration.zero
    for attempt in 1...4 {
      #expect(machine.handle(.subscribed, now: now) == [.start(.gatt)])
      let actions = machine.handle(.refused(busy), now: now)
      guard attempt < 4 else {
        #expect(actions == [.fail(busy)])
        return
      }
      let due = machine.deadline ?? .zero
      #expect(due - now >= .seconds(1))
      now = due
      #expect(machine.handle(.deadline, now: now) == [.connect])
      _ = machine.handle(.connected, now: now)
      _ = machine.handle(.discovered(hasPSM: false), now: now)
    }
  }

  @Test("looks for the device again after the adapter was away, whatever the step")
  func findsAgain() {
    for steps in 0...4 {
      var machine = Self.machine(.gatt)
      _ = machine.handle(.radioReady, now: .zero)
      let inputs: [DeviceLink.Input] = [.found, .connected, .discovered(hasPSM: false), .subscribed]
      for input in inputs.prefix(steps) { _ = machine.handle(input, now: .zero) }
      #expect(machine.handle(.radioUnavailable("powered off", isFinal: false), now: .seconds(1)).isEmpty)
      #expect(machine.handle(.radioReady, now: .seconds(2)) == [.find(.name("bench-1"))])
      #expect(machine.deadline == .seconds(12))
    }
  }

  @Test(
    "a device that lacks the service is asked once more, and one that had it as often as any",
    arguments: [false, true])
  func serviceMissing(hadIt: Bool) {
    var machine = Self.machine(.gatt)
    _ = discovered(&machine, hasPSM: false)
    if hadIt {
      _ = machine.handle(.subscribed, now: .zero)
    }
    var now = Duration.zero
    var attempts = 0
    while attempts < 10 {
      attempts += 1
      let actions = machine.handle(.unsupported("does not offer the haul service"), now: now)
      #expect(actions.first == .disconnect)
      if let error = error(actions) {
        #expect(error.code == .unsupportedDevice)
        break
      }
      now = machine.deadline ?? now
      #expect(machine.handle(.deadline, now: now) == [.connect])
      _ = machine.handle(.connected, now: now)
    }
    #expect(attempts == (hadIt ? DeviceLink.Configuration().fruitlessAttempts : 2))
  }

  @Test(
    "the advertised name counts before one that is out of date, and may be shortened",
    arguments: [
      ("bench-1", nil, true), ("bench-1", "bench-9", true), (nil, "bench-1", true), ("ben", "bench-1", true),
      ("bench-2", "bench-1", false), ("ben", nil, false), (nil, nil, false), ("bench-10", "bench-10", false),
    ] as [(String?, String?, Bool)])
  func names(advertised: String?, known: String?, isMeant: Bool) {
    let target = DeviceLink.Target.name("bench-1")
    #expect(target.matches(UUID(), advertised: advertised, known: known) == isMeant)
  }
}
