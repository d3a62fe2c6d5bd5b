import CoreBluetooth
import Radio
import Testing

/// What is deprecated still compiles and still says something.
@Suite struct DeprecatedTests {
  /// A requirement that is not deprecated: a call of it draws no warning, where one of a deprecated function would.
  private protocol Checks { func check() async throws }

  @Test func deprecatedTypesKeepTheirNumbers() async throws { try await (Numbers() as any Checks).check() }

  private struct Numbers: Checks {
    @available(*, deprecated) func check() {
      let central: [CBCentralManagerState] = [
        .unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn,
      ]
      #expect(central.map(\.rawValue) == Array(0...5))
      #expect((0...6).map { CBCentralManagerState(rawValue: $0) } == central + [nil])
      let peripheral: [CBPeripheralManagerState] = [
        .unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn,
      ]
      #expect(peripheral.map(\.rawValue) == Array(0...5))
      #expect((0...6).map { CBPeripheralManagerState(rawValue: $0) } == peripheral + [nil])
      let status: [CBPeripheralManagerAuthorizationStatus] = [
        .notDetermined, .restricted, .denied, .authorized,
      ]
      #expect(status.map(\.rawValue) == Array(0...3))
      #expect((0...4).map { CBPeripheralManagerAuthorizationStatus(rawValue: $0) } == status + [nil])
      let bytes = CFUUIDCreateFromUUIDBytes(
        nil,
        CFUUIDBytes(
          byte0: 1, byte1: 2, byte2: 3, byte3: 4, byte4: 5, byte5: 6, byte6: 7, byte7: 8, byte8: 9,
          byte9: 10, byte10: 11, byte11: 12, byte12: 13, byte13: 14, byte14: 15, byte15: 16))
      if let bytes { #expect(CBUUID(cfuuid: bytes).data == Data(1...16)) }
      #expect(bytes != nil)
    }
  }

  @Test func deprecatedMembersAnswer() async throws { try await (Members() as any Checks).check() }

  private struct Members: Checks {
    @available(*, deprecated) func check() async throws {
      #expect(CBPeripheralManager.authorizationStatus() == .authorized)
      let rig = try await CentralRig()
      #expect(rig.manager.authorization == .allowedAlways)
      let (peripheral, objects) = try await rig.explored()
      #expect(peripheral.rssi == nil)
      rig.central.setScript(FakeDatabase.script(rig.peer))
      peripheral.readRSSI()
      await rig.drain()
      #expect(peripheral.rssi == -55)
      #expect(!objects.notifying.isBroadcasted)
      rig.central.set(.unauthorized)
      await rig.drain()
      #expect(rig.manager.state == .unauthorized)
      #expect(rig.manager.authorization == .denied)
    }
  }
}
