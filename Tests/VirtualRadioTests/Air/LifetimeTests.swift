import Radio
import Testing

@testable import VirtualRadio

@Suite("Lifetime of an air") struct LifetimeTests {
  @Test("an air that is released while a link is up leaves nothing behind")
  func releasedWithLink() throws {
    weak var core: HostCore?
    weak var end: HostLink?
    do {
      let clock = VirtualClock(.lockStep)
      let air = VirtualAir(clock: clock)
      let (phone, device) = (air.makeRadio(name: "phone"), air.makeRadio(name: "device"))
      let log = NewsLog<CentralEvent>()
      let central = phone.makeCentral { log.append($0) }
      let peripheral = device.makePeripheral { _ in }
      peripheral.startAdvertising(Advertisement(localName: "device"))
      central.connect(device.peerID)
      let isUp = try clock.run {
        log.all.contains { if case .connected = $0 { true } else { false } }
      }
      #expect(isUp)
      core = phone.core
      end = phone.core.run { host in Unchecked(value: host.links.values.first) }.value
      #expect(end != nil)
      withExtendedLifetime((central, peripheral)) {}
    }
    #expect(core == nil)
    #expect(end == nil)
  }

  /// Carries a reference out of the lock, for looking whether it still lives only.
  private struct Unchecked: @unchecked Sendable {
    weak var value: HostLink?
  }
}
