internal import Foundation
internal import Radio

/// What of an advertisement fits on the air: advertising data of 31 octets with flags and services, and a scan response of 31 with the name
/// (Core Vol 6 Part B 2.3.1; Core Supplement Part A 1). bluetoothd refuses what is longer.
struct AdvertisementFit: Hashable, Sendable {
  /// What bluetoothd is given.
  let contents: Advertisement
  /// What was left out or shortened, for people; empty: all of it fits.
  let omissions: [String]

  static let octets = 31
  /// Length and type of a field.
  private static let header = 2
  private static let flags = 3

  init(_ wanted: Advertisement) {
    var contents = Advertisement()
    var omissions: [String] = []
    var room = Self.octets - Self.flags
    // A list of 16-bit UUIDs and one of 128-bit UUIDs, each with its header.
    func fitting(_ uuids: [BluetoothUUID], _ what: String) -> [BluetoothUUID] {
      var taken: [BluetoothUUID] = []
      var widths: Set<Int> = []
      for uuid in uuids where !taken.contains(uuid) {
        let width = uuid.littleEndianBytes.count
        let needed = width + (widths.contains(width) ? 0 : Self.header)
        guard needed <= room else {
          omissions.append("\(what) \(uuid)")
          continue
        }
        room -= needed
        widths.insert(width)
        taken.append(uuid)
      }
      return taken
    }
    contents.services = fitting(wanted.services + wanted.overflowServices, "service")
    contents.solicitedServices = fitting(wanted.solicitedServices, "solicited service")
    if let data = wanted.manufacturerData {
      if data.count >= 2, Self.header + data.count <= room {
        room -= Self.header + data.count
        contents.manufacturerData = data
      } else {
        omissions.append("manufacturer data of \(data.count) octets")
      }
    }
    for (uuid, data) in wanted.serviceData.sorted(by: { $0.key.description < $1.key.description }) {
      let needed = Self.header + uuid.littleEndianBytes.count + data.count
      guard needed <= room else {
        omissions.append("data of service \(uuid)")
        continue
      }
      room -= needed
      contents.serviceData[uuid] = data
    }
    if let power = wanted.txPower {
      if room >= Self.header + 1 { contents.txPower = power } else { omissions.append("transmit power") }
    }
    if let name = wanted.localName, !name.isEmpty {
      let short = Self.shortened(name, Self.octets - Self.header)
      if short != name { omissions.append("the end of the name") }
      contents.localName = short
    }
    self.contents = contents
    self.omissions = omissions
  }

  /// As many whole characters as fit.
  private static func shortened(_ name: String, _ limit: Int) -> String {
    var short = name
    while short.utf8.count > limit { short.removeLast() }
    return short
  }
}
