internal import Foundation
internal import Radio

/// Fits what a program wants to advertise into legacy advertising data and its scan response (Core Vol 3 Part C 11, Supplement Part A 1).
///
/// Each holds 31 octets, of which the flags take 3 in the first; each AD structure costs 2 octets besides its contents. Service UUIDs go into the first
/// as far as they fit, then the name into what is left. A name that does not fit there goes into the scan response, where it may be shortened at a
/// character; services that are left over share the scan response with it, or are left out.
struct AdvertisementBudget {
  /// What is advertised.
  private(set) var advertisement = Advertisement()
  /// Services for which there was no room.
  private(set) var leftOut: [BluetoothUUID] = []
  /// Whether the name had to be shortened.
  private(set) var isNameShortened = false

  private static let firstRoom = 31 - 3
  private static let scanResponseRoom = 31
  private static let structureCost = 2

  /// The room of one packet, and the lists of UUIDs begun in it.
  private struct Packet {
    var room: Int
    private var widths: Set<Int> = []

    init(room: Int) { self.room = room }

    /// UUIDs of one width share a structure.
    mutating func take(_ uuid: BluetoothUUID) -> Bool {
      let width = uuid.short == nil ? 16 : 2
      let cost = width + (widths.contains(width) ? 0 : structureCost)
      guard cost <= room else { return false }
      room -= cost
      widths.insert(width)
      return true
    }
  }

  init(name: String?, services: [BluetoothUUID]) {
    var first = Packet(room: Self.firstRoom)
    var scanResponse = Packet(room: Self.scanResponseRoom)
    var waiting: [BluetoothUUID] = []
    for uuid in services {
      if first.take(uuid) { advertisement.services.append(uuid) } else { waiting.append(uuid) }
    }
    if let name, !name.isEmpty {
      if name.utf8.count + Self.structureCost <= first.room {
        advertisement.localName = name
      } else {
        let short = Self.prefix(of: name, octets: scanResponse.room - Self.structureCost)
        scanResponse.room -= short.utf8.count + Self.structureCost
        advertisement.localName = short
        isNameShortened = short != name
      }
    }
    for uuid in waiting {
      if scanResponse.take(uuid) { advertisement.services.append(uuid) } else { leftOut.append(uuid) }
    }
  }

  /// The longest prefix of whole characters.
  private static func prefix(of name: String, octets: Int) -> String {
    var prefix = ""
    var count = 0
    for character in name {
      count += String(character).utf8.count
      guard count <= octets else { break }
      prefix.append(character)
    }
    return prefix
  }
}
