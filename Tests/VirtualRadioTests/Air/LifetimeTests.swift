import Radio
import Testing

@testable import VirtualRadio

@Suite("Lifetime of an air") struct LifetimeTests {
  @Test("an air that is released while a link is up leaves nothing behind")
  func releasedWithLink() throws {
    weak var core: HostCore?
    let ends = Ends()
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
      phone.core.run { host in
        ends.central = host.adapters.values.compactMap { $0.linksAsCentral.values.first }.first
        ends.peripheral = host.adapters.values.compactMap { $0.linksAsPeripheral.values.first }.first
      }
      #expect(ends.count == 2)
      withExtendedLifetime((central, peripheral)) {}
    }
    let isCoreGone = core == nil
    #expect(isCoreGone)
    #expect(ends.count == 0)
  }

  /// Both ends of a link, seen from outside.
  private final class Ends {
    weak var central: HostLink?
    weak var peripheral: HostLink?

    var count: Int { (central == nil ? 0 : 1) + (peripheral == nil ? 0 : 1) }
  }
}
