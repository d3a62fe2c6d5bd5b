import Foundation
import Radio
import Testing
import VirtualRadio

@testable import CoreBluetooth

/// Scans on an air: who is discovered, and how often.
@Suite(.timeLimit(.minutes(30))) struct ScanTests {
  private static let other = CBUUID(string: "FFA0")

  /// A phone that is ready to scan, and a device that advertises.
  private func ready() throws -> AirRig {
    let rig = AirRig()
    try rig.run {
      rig.device.recorder.lines.all.contains("advertising true") && rig.central.state == .poweredOn
    }
    _ = rig.phone.lines.take()
    return rig
  }

  private func advertise(_ data: [String: Any], _ rig: AirRig) throws {
    rig.device.manager.stopAdvertising()
    rig.device.manager.startAdvertising(data)
    try rig.run { rig.device.manager.isAdvertising }
  }

  @Test func discoversADeviceOnceAScan() throws {
    let rig = try ready()
    for _ in 1...3 {
      rig.central.scanForPeripherals(withServices: nil)
      try rig.clock.run(for: .seconds(10))
      #expect(rig.phone.lines.take() == ["discovered device -50"])
      #expect(rig.central.isScanning)
    }
    rig.central.stopScan()
    rig.central.stopScan()
    #expect(!rig.central.isScanning)
    rig.central.scanForPeripherals(withServices: [])
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.take() == ["discovered device -50"])
    #expect(rig.phone.peripherals.count == 1)
  }

  @Test func discoversAgainWhatSaysMore() throws {
    let rig = try ready()
    try advertise([CBAdvertisementDataServiceUUIDsKey: [DeviceProgram.service]], rig)
    rig.central.scanForPeripherals(withServices: nil)
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.take() == ["discovered nil -50"])
    try advertise(
      [
        CBAdvertisementDataServiceUUIDsKey: [DeviceProgram.service],
        CBAdvertisementDataLocalNameKey: "device",
      ], rig)
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.take() == ["discovered device -50"])
    try advertise([CBAdvertisementDataLocalNameKey: "other"], rig)
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.take() == [])
  }

  @Test func discoversEveryAdvertisementOnRequest() throws {
    let rig = try ready()
    rig.central.scanForPeripherals(
      withServices: [DeviceProgram.service], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
    try rig.clock.run(for: .seconds(10))
    let count = rig.phone.lines.take().count
    // One each 100 to 110 ms.
    #expect((90...100).contains(count))
    // The next call says anew what is wanted.
    rig.central.scanForPeripherals(withServices: [DeviceProgram.service])
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.take() == ["discovered device -50"])
    rig.central.scanForPeripherals(
      withServices: [Self.other], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.all == [])
    #expect(rig.central.isScanning)
  }

  /// How a scan looks for a service that a device offers, solicits, or has in the overflow area.
  @Test(arguments: [
    (Advertisement(services: [other.value]), [other], [], true),
    (Advertisement(services: [other.value]), [DeviceProgram.dataID], [other], false),
    (Advertisement(solicitedServices: [other.value]), [other], [], false),
    (Advertisement(solicitedServices: [other.value]), [DeviceProgram.dataID], [other], true),
    (Advertisement(overflowServices: [other.value]), [other], [], true),
    (Advertisement(overflowServices: [other.value]), [DeviceProgram.dataID], [other], false),
  ])
  func findsWhatItLooksFor(
    contents: Advertisement, services: [CBUUID], solicited: [CBUUID], isFound: Bool
  ) throws {
    let rig = try ready()
    let beacon = rig.air.makeRadio(name: "beacon").makePeripheral { _ in }
    beacon.startAdvertising(contents)
    rig.central.scanForPeripherals(
      withServices: services, options: [CBCentralManagerScanOptionSolicitedServiceUUIDsKey: solicited])
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.all == (isFound ? ["discovered nil -50"] : []))
  }

  /// What fits: 28 octets beside the flags and 31 in the scan response, of which each kind of data costs two.
  @Test(arguments: [(8, 8), (9, 9), (29, 29), (30, 29), (100, 29)])
  func aNameThatIsTooLongArrivesShortened(length: Int, kept: Int) throws {
    let rig = try ready()
    try advertise(
      [
        CBAdvertisementDataLocalNameKey: String(repeating: "n", count: length),
        CBAdvertisementDataServiceUUIDsKey: [DeviceProgram.service],
      ], rig)
    rig.central.scanForPeripherals(withServices: [DeviceProgram.service])
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.all == ["discovered \(String(repeating: "n", count: kept)) -50"])
  }

  @Test(arguments: 0..<4) func servicesThatDoNotFitAreNotFound(index: Int) throws {
    let rig = try ready()
    let services = (0..<4).map { CBUUID(string: "12345678-1234-1234-1234-12345678900\($0)") }
    try advertise([CBAdvertisementDataServiceUUIDsKey: services], rig)
    rig.central.scanForPeripherals(withServices: [services[index]])
    try rig.clock.run(for: .seconds(10))
    // One of 16 octets fits each packet.
    #expect(rig.phone.lines.all.count == (index < 2 ? 1 : 0))
  }

  @Test func powerEndsTheScan() throws {
    let rig = try ready()
    rig.central.scanForPeripherals(withServices: nil)
    try rig.run { !rig.phone.lines.all.isEmpty }
    rig.air.setPower(.poweredOff, of: rig.phoneRadio)
    try rig.run { rig.central.state == .poweredOff }
    #expect(!rig.central.isScanning)
    rig.air.setPower(.poweredOn, of: rig.phoneRadio)
    try rig.clock.run(for: .seconds(10))
    #expect(!rig.central.isScanning)
    #expect(rig.phone.lines.all == ["discovered device -50", "state poweredOff", "state poweredOn"])
    rig.central.scanForPeripherals(withServices: nil)
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.all.last == "discovered device -50")
  }

  @Test func stoppingInTheCallbackHolds() throws {
    let rig = try ready()
    rig.phone.react { [central = rig.central] line in
      if line.hasPrefix("discovered") { central.stopScan() }
    }
    rig.central.scanForPeripherals(
      withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: 1)])
    try rig.clock.run(for: .seconds(10))
    #expect(rig.phone.lines.all.count == 1)
  }
}
