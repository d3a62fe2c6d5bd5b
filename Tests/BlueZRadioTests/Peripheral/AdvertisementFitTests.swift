import DBus
import Foundation
import Radio
import Testing

@testable import BlueZRadio

@Suite("What of an advertisement fits") struct AdvertisementFitTests {
  private static let long = BluetoothUUID(UUID())

  /// Octets of the advertising data as bluetoothd makes it, with flags.
  private func octets(_ contents: Advertisement) -> Int {
    func list(_ uuids: [BluetoothUUID]) -> Int {
      [2, 16].reduce(0) { sum, width in
        let count = uuids.filter { $0.littleEndianBytes.count == width }.count
        return sum + (count == 0 ? 0 : 2 + width * count)
      }
    }
    let data = contents.serviceData.reduce(0) { $0 + 2 + $1.key.littleEndianBytes.count + $1.value.count }
    return 3 + list(contents.services) + list(contents.solicitedServices) + data
      + (contents.manufacturerData.map { 2 + $0.count } ?? 0) + (contents.txPower == nil ? 0 : 3)
  }

  @Test("What fits stays as it is")
  func whole() {
    let wanted = Advertisement(
      localName: String(repeating: "n", count: 29), services: [BluetoothUUID(UInt16(0xFFF0))],
      serviceData: [BluetoothUUID(UInt16(0xFFF1)): Data([1, 2])], manufacturerData: Data([0xFF, 0xFF, 3]),
      txPower: 4)
    let fit = AdvertisementFit(wanted)
    #expect(fit.contents == wanted)
    #expect(fit.omissions.isEmpty)
  }

  @Test("The limit is exact", arguments: [23, 24, 25, 26])
  func limit(_ count: Int) {
    let fit = AdvertisementFit(Advertisement(manufacturerData: Data(count: count)))
    #expect(fit.contents.manufacturerData?.count == (count <= 26 ? count : nil))
    let longer = AdvertisementFit(Advertisement(manufacturerData: Data(count: count + 4)))
    #expect((longer.contents.manufacturerData == nil) == (count + 4 > 26))
    #expect(longer.omissions.isEmpty == (count + 4 <= 26))
  }

  @Test("Never longer than the air takes, whatever is wanted", arguments: 0..<20)
  func bounded(_ count: Int) {
    let services = (0..<count).map {
      $0 % 3 == 0 ? BluetoothUUID(UUID()) : BluetoothUUID(UInt16(0xFF00) + UInt16($0))
    }
    let wanted = Advertisement(
      localName: String(repeating: "ü", count: count), services: services,
      solicitedServices: services.reversed(), overflowServices: [BluetoothUUID(UInt16(0xFE00))],
      serviceData: [BluetoothUUID(UInt16(0xFE01)): Data(count: count)],
      manufacturerData: Data(count: count), txPower: 0)
    let fit = AdvertisementFit(wanted)
    #expect(octets(fit.contents) <= 31)
    #expect((fit.contents.localName?.utf8.count ?? 0) <= 29)
    #expect(count == 0 || fit.contents.services.first == services.first)
  }

  @Test("Services come first, those of the overflow area after them")
  func order() {
    let short = BluetoothUUID(UInt16(0xFFF0))
    let fit = AdvertisementFit(
      Advertisement(
        services: [Self.long], overflowServices: [short], manufacturerData: Data(count: 20)))
    #expect(fit.contents.services == [Self.long, short])
    #expect(fit.contents.manufacturerData == nil)
    #expect(fit.omissions.count == 1)
  }

  @Test("A name is cut between characters", arguments: ["é", "👩‍🚒", "n"])
  func names(_ character: String) {
    let name = String(repeating: character, count: 30)
    let fit = AdvertisementFit(Advertisement(localName: name))
    let short = fit.contents.localName ?? ""
    #expect(short.utf8.count <= 29 && short.utf8.count + character.utf8.count > 29)
    #expect(name.hasPrefix(short))
    #expect(!fit.omissions.isEmpty)
  }

  @Test("Properties of the object have the types of the manual")
  func properties() {
    let advertisement = Advertisement(
      localName: "D", services: [BluetoothUUID(UInt16(0xFFF0))],
      solicitedServices: [BluetoothUUID(UInt16(0xFFF1))],
      serviceData: [BluetoothUUID(UInt16(0xFFF2)): Data([1])], manufacturerData: Data([0x34, 0x12, 9]),
      txPower: 0)
    let properties = Dictionary(
      uniqueKeysWithValues: advertisement.daemonProperties.map { ($0.name, $0.value) })
    #expect(properties["Type"] == .string("peripheral"))
    #expect(properties["LocalName"] == .string("D"))
    #expect(properties["ServiceUUIDs"]?.type.description == "as")
    #expect(properties["SolicitUUIDs"]?.type.description == "as")
    #expect(properties["Includes"] == ["tx-power"].dbusValue)
    #expect(properties["ServiceData"]?.type.description == "a{sv}")
    #expect(
      properties["ManufacturerData"]
        == [UInt16(0x1234): DBusVariant(containing: .bytes([9]))].dbusValue)
    #expect(Advertisement().daemonProperties.map(\.name) == ["Type", "Discoverable"])
  }
}
