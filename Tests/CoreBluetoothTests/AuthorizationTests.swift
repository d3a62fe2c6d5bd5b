import Foundation
import Radio
import Testing
import VirtualRadio

@testable import CoreBluetooth

/// What a program is told where it may not use Bluetooth.
@Suite(.timeLimit(.minutes(30))) struct AuthorizationTests {
  private static let answers: [(RadioAuthorization, CBManagerAuthorization)] = [
    (.denied, .denied), (.restricted, .restricted), (.notDetermined, .notDetermined),
  ]

  @Test(arguments: answers)
  func aForbiddenRadioEndsEverything(answer: RadioAuthorization, told: CBManagerAuthorization) throws {
    let rig = AirRig()
    let peripheral = try rig.connected()
    rig.phoneRadio.setAuthorization(answer)
    try rig.run { rig.central.state == .unauthorized }
    #expect(peripheral.state == .disconnected)
    #expect(rig.phoneRadio.authorization == answer)
    #expect(CBManagerAuthorization(rig.phoneRadio.authorization) == told)
    #expect(rig.central.authorization == told)
    rig.central.scanForPeripherals(withServices: nil)
    #expect(!rig.central.isScanning)
    #expect(rig.log.all.last?.contains("only while it is powered on") == true)
    // Another process may still.
    #expect(rig.device.manager.state == .poweredOn)
    rig.phoneRadio.setAuthorization(.allowed)
    try rig.run { rig.central.state == .poweredOn }
    #expect(rig.phoneRadio.authorization == .allowed)
    #expect(rig.central.authorization == .allowedAlways)
  }

  @Test func aStateWithoutAReasonIsDenied() {
    let air = VirtualAir(clock: VirtualClock(.lockStep))
    let radio = air.makeRadio(name: "phone")
    air.setPower(.unauthorized, of: radio)
    #expect(radio.authorization == .denied)
    radio.setAuthorization(.restricted)
    #expect(radio.authorization == .restricted)
    air.setPower(.poweredOff, of: radio)
    #expect(radio.authorization == .allowed)
  }

  @Test(arguments: [("denied", CBManagerAuthorization.denied), ("restricted", .restricted)])
  func theRadioOfTheWordsIsAsked(word: String, told: CBManagerAuthorization) throws {
    let folder = StateFolder()
    let words = "virtual:\(folder.path)?permission=\(word)"
    #expect(RadioSelection.authorization(of: nil) == .allowedAlways)
    #expect(RadioSelection.authorization(of: words) == .allowedAlways)
    let manager = CBCentralManager(
      delegate: nil, queue: DispatchQueue(label: "manager"),
      options: [CBManagerOptionRadioKey: words, CBManagerOptionLogHandlerKey: Lines().handler])
    #expect(RadioSelection.authorization(of: words) == told)
    withExtendedLifetime(manager) {}
  }
}
