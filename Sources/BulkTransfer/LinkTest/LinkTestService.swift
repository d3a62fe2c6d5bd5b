package import CoreBluetooth
internal import Foundation

/// The attributes of the link test service (docs/bench.md): what a link carries without a protocol above it.
package enum LinkTestService {
  /// The primary service.
  package static let service = CBUUID(string: "B1E00010-6861-756C-A5D2-3F7C41906E8B")
  /// Takes any value and forgets it: write.
  static let sink = CBUUID(string: "B1E00011-6861-756C-A5D2-3F7C41906E8B")
  /// Sends so many octets as are asked for (u32, little endian): write, notify.
  static let source = CBUUID(string: "B1E00012-6861-756C-A5D2-3F7C41906E8B")
  /// Sends back what is written: write without response, notify.
  static let echo = CBUUID(string: "B1E00013-6861-756C-A5D2-3F7C41906E8B")
  /// The PSM of the channel, two octets, little endian: read.
  static let psm = CBUUID(string: CBUUIDL2CAPPSMCharacteristicString)

  /// What a device must have to be tested.
  static var requirement: ServiceRequirement {
    ServiceRequirement(
      service, name: "the link test service", characteristics: [sink, source, echo], optional: [psm])
  }

  /// What a device sends when it is to send: the same octet values on every channel.
  static let pattern = Data((0..<16384).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
}

/// The first octets on a channel: what the device is to do with it.
enum LinkTestOrder: Equatable {
  /// Send so many octets.
  case send(Int)
  /// Send back whatever comes.
  case sendBack

  static let length = 5

  /// `kind u8, count u32`, little endian.
  var encoded: Data {
    switch self {
    case .send(let count): Data([1]) + Self.encoded(count)
    case .sendBack: Data([2]) + Self.encoded(0)
    }
  }

  /// nil: no order that there is.
  init?(_ octets: Data) {
    guard octets.count == Self.length, let kind = octets.first, let count = Self.count(octets.dropFirst())
    else { return nil }
    switch kind {
    case 1: self = .send(count)
    case 2: self = .sendBack
    default: return nil
    }
  }

  /// A count of octets, u32.
  static func encoded(_ count: Int) -> Data {
    Data((0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) })
  }

  static func count(_ octets: Data) -> Int? {
    guard octets.count == 4 else { return nil }
    return octets.reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
