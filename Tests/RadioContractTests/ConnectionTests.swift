import Foundation
import Radio
import Testing

/// Links: how they come and go, and what comes before what.
@Suite struct ConnectionTests {
  @Test(arguments: RadioUnderTest.allCases)
  func firstEventIsTheState(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    try phone.expect("state") { event in
      if case .adapterStateChanged(.poweredOn) = event { true } else { nil }
    }
    #expect(phone.log.first?.kind == "adapterStateChanged")
    #expect(device.log.first?.kind == "adapterStateChanged")
  }

  @Test(arguments: RadioUnderTest.allCases)
  func connectsDiscoversAndReads(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    device.store(Data("changing".utf8))
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    let values = try phone.discover(Device.service, Device.values, of: peer)
    let fixed = try phone.discover(Device.service, Device.fixed, of: peer)
    #expect(values.properties == [.read, .write, .writeWithoutResponse])
    #expect(try phone.read(values.handle, of: peer) == Data("changing".utf8))
    #expect(try phone.read(fixed.handle, of: peer) == Device.fixedValue)
  }
}
