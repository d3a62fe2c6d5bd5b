import DBus
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Pairings at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PairingAgentTests {
  private static let stranger: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_7F_00_7F"
  private static let elsewhere: ObjectPath = "/org/bluez/hci1/dev_00_AA_01_00_00_00"

  @Test("A central has an agent before there is a link, which accepts pairings with the devices it wants")
  func central() async throws {
    let rig = try await CentralRig()
    rig.daemon.hold("Connect")
    rig.central.connect(FakeDevice.peer)
    let agent = try await rig.daemon.pairing.agents.next()
    #expect(agent.capability == "NoInputNoOutput")
    _ = try await rig.daemon.held.next()
    #expect(await agent.authorizes(FakeDevice.device, rig.daemon.bus))
    #expect(await !agent.authorizes(Self.stranger, rig.daemon.bus))
    #expect(await agent.authorizes(Self.elsewhere, rig.daemon.bus))
  }

  enum Offer: CaseIterable { case reading, writing, notifying, channel }

  @Test("A peripheral has one where something of it needs encryption", arguments: Offer.allCases)
  func peripheral(_ offer: Offer) async throws {
    let rig = try await PeripheralRig()
    switch offer {
    case .reading: _ = try await rig.publish(.plain(7, [.plain(1, .read, .readEncrypted)]))
    case .writing: _ = try await rig.publish(.plain(7, [.plain(1, .write, .writeEncrypted)]))
    case .notifying:
      _ = try await rig.publish(.plain(7, [.plain(1, .notify, [], isProtected: true)]))
    case .channel: rig.peripheral.publishChannel(requiresEncryption: true)
    }
    let agent = try await rig.daemon.pairing.agents.next()
    #expect(await agent.authorizes(FakeManagers.device, rig.daemon.bus))
  }
}
