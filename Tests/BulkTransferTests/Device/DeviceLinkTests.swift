import BulkTransfer
import Foundation
import Testing

@Suite("The way from a link to a carrier")
struct DeviceLinkTests {
  private static func machine(_ choice: CarrierChoice = .automatic) -> DeviceLink {
    DeviceLink(target: .name("bench-1"), choice: choice, stepLimit: .seconds(10), channelLimit: .seconds(6))
  }

  private func error(_ actions: [DeviceLink.Action]) -> TransferError? {
    for case .fail(let error) in actions { return error }
    return nil
  }

  @Test(
    "chooses the carrier by wish and offer",
    arguments: [
      (CarrierChoice.automatic, true, [DeviceLink.Action.readPSM]), (.automatic, false, [.subscribe]),
      (.gatt, true, [.subscribe]), (.gatt, false, [.subscribe]), (.l2cap, true, [.readPSM]),
    ])
  func carrier(choice: CarrierChoice, hasPSM: Bool, wanted: [DeviceLink.Action]) {
    var machine = Self.machine(choice)
    #expect(machine.handle(.ready(hasPSM: hasPSM), now: .zero) == wanted)
  }

  @Test("starts over L2CAP once the channel is open")
  func channel() {
    var machine = Self.machine()
    _ = machine.handle(.ready(hasPSM: true), now: .zero)
    #expect(machine.handle(.psm(0x80), now: .zero) == [.openChannel(psm: 0x80)])
    #expect(machine.handle(.channelOpened, now: .zero) == [.start(.l2cap)])
    #expect(machine.handle(.proven, now: .seconds(1)).isEmpty)
    #expect(machine.deadline == nil)
    #expect(machine.handle(.deadline, now: .seconds(100)).isEmpty)
  }

  @Test(
    "gives a channel up that carries nothing, each answer being a reason to wait, and tries the next link's",
    arguments: [0, 3])
  func mute(answers: Int) {
    var machine = Self.machine()
    _ = machine.handle(.ready(hasPSM: true), now: .zero)
    _ = machine.handle(.psm(0x80), now: .zero)
    _ = machine.handle(.channelOpened, now: .seconds(2))
    for number in 0..<answers { #expect(machine.handle(.answered, now: .seconds(3 + 5 * number)).isEmpty) }
    let due = Duration.seconds(answers == 0 ? 8 : 19)
    #expect(machine.deadline == due)
    #expect(machine.handle(.deadline, now: due - .milliseconds(1)).isEmpty)
    #expect(
      machine.handle(.deadline, now: due)
        == [.abandonChannel("nothing has moved on it within 6 s"), .subscribe])
    #expect(machine.handle(.channelOpened, now: due).isEmpty)
    #expect(machine.handle(.subscribed, now: due) == [.start(.gatt)])
    #expect(machine.handle(.answered, now: due).isEmpty)
    #expect(machine.deadline == nil)
    _ = machine.handle(.ended, now: due)
    #expect(machine.handle(.ready(hasPSM: true), now: due) == [.readPSM])
  }

  @Test("waits for a channel as long as the session does where L2CAP was demanded")
  func demandedAndMute() {
    var machine = Self.machine(.l2cap)
    _ = machine.handle(.ready(hasPSM: true), now: .zero)
    _ = machine.handle(.psm(0x80), now: .zero)
    #expect(machine.handle(.channelOpened, now: .zero) == [.start(.l2cap)])
    #expect(machine.deadline == nil)
  }

  @Test(
    "falls back to GATT where a channel cannot be had",
    arguments: [DeviceLink.Input.psm(nil), .psm(0), .channelRefused("no resources"), .deadline])
  func fallback(input: DeviceLink.Input) {
    var machine = Self.machine()
    _ = machine.handle(.ready(hasPSM: true), now: .zero)
    if case .psm = input {} else { _ = machine.handle(.psm(0x80), now: .zero) }
    #expect(machine.handle(input, now: .seconds(10)) == [.subscribe])
    #expect(machine.handle(.subscribed, now: .seconds(10)) == [.start(.gatt)])
  }

  @Test("refuses where L2CAP was demanded and the device has none")
  func demanded() {
    var machine = Self.machine(.l2cap)
    let actions = machine.handle(.ready(hasPSM: false), now: .zero)
    #expect(error(actions)?.code == .unsupportedDevice)
  }

  @Test("gives the link up where a step is not answered")
  func unanswered() {
    for hasPSM in [true, false] {
      var machine = Self.machine()
      _ = machine.handle(.ready(hasPSM: hasPSM), now: .seconds(1))
      #expect(machine.deadline == .seconds(11))
      #expect(machine.handle(.deadline, now: .seconds(10)).isEmpty)
      #expect(machine.handle(.deadline, now: .seconds(11)) == [.drop("no answer within 10.0 seconds")])
      #expect(machine.deadline == nil)
    }
  }

  @Test("begins anew with the next link, and takes no answer of the former one")
  func nextLink() {
    var machine = Self.machine()
    _ = machine.handle(.ready(hasPSM: true), now: .zero)
    _ = machine.handle(.psm(0x80), now: .zero)
    #expect(machine.handle(.ended, now: .zero).isEmpty)
    #expect(machine.handle(.channelOpened, now: .zero).isEmpty)
    #expect(machine.handle(.subscribed, now: .zero).isEmpty)
    #expect(machine.deadline == nil)
    #expect(machine.handle(.ready(hasPSM: true), now: .zero) == [.readPSM])
  }

  @Test("one limit for all steps reaches those of the connection")
  func limits() {
    var configuration = DeviceLink.Configuration()
    configuration.stepLimit = .seconds(3)
    #expect(configuration.connection.radioLimit == .seconds(3))
    #expect(configuration.connection.findLimit == .seconds(3))
    #expect(configuration.connection.connectLimit == .seconds(3))
    #expect(configuration.connection.reconnectLimit == .seconds(3))
    #expect(configuration.connection.discoveryLimit == .seconds(3))
  }
}
