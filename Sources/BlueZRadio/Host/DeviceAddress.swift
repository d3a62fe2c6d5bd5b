internal import Foundation
internal import Radio

/// A device address with its kind (Core Vol 6 Part B 1.3), as bluetoothd tells it: of a bonded device its identity address.
struct DeviceAddress: Hashable, Sendable, CustomStringConvertible {
  enum Kind: UInt8, Hashable, Sendable {
    case `public` = 0
    case random = 1
  }

  /// The 48 bits, as they are written: the first pair of digits is the most significant octet.
  let value: UInt64
  let kind: Kind

  init(value: UInt64, kind: Kind) {
    self.value = value & 0xFFFF_FFFF_FFFF
    self.kind = kind
  }

  /// Reads six pairs of hexadecimal digits with colons between them; nil for anything else.
  init?(_ text: some StringProtocol, kind: Kind) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 6 else { return nil }
    var value: UInt64 = 0
    for part in parts {
      guard part.utf8.count == 2, part.allSatisfy(\.isHexDigit), let octet = UInt8(part, radix: 16)
      else { return nil }
      value = value << 8 | UInt64(octet)
    }
    self.init(value: value, kind: kind)
  }

  /// Six octets, most significant first.
  var octets: [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: value >> UInt64(40 - 8 * $0)) } }

  var description: String {
    octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: ":")
  }
}

/// How this host names its peers: a UUID of version 8 (RFC 9562, 5.8) that holds the address in its last six octets and the kind before them.
///
/// bluetoothd forgets a device that was not bonded half a minute after it was last heard. Since the identifier can be taken apart, a
/// program can keep it for years and connect all the same: the device is looked for on the air.
extension DeviceAddress {
  private static let prefix: [UInt8] = [0xB1, 0x0E, 0x4A, 0x75, 0x6C, 0x00, 0x8B, 0x1E, 0x80]

  var peer: PeerID {
    let b = Self.prefix + [kind.rawValue] + octets
    return PeerID(
      UUID(
        uuid: (
          b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]
        )))
  }

  /// Nil for an identifier that no BlueZ host has made.
  init?(_ peer: PeerID) {
    let b = peer.uuid.uuid
    let octets = [
      b.0, b.1, b.2, b.3, b.4, b.5, b.6, b.7, b.8, b.9, b.10, b.11, b.12, b.13, b.14, b.15,
    ]
    guard Array(octets.prefix(9)) == Self.prefix, let kind = Kind(rawValue: octets[9]) else { return nil }
    self.init(value: octets.suffix(6).reduce(0) { $0 << 8 | UInt64($1) }, kind: kind)
  }
}
