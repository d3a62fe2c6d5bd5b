/// Packets between a host and its controller (Core Vol 4 Part E), as a capture holds them, with the UART's type octet before each
/// (Core Vol 4 Part A 2).
enum HCIPacket {
  /// Octets of L2CAP data in one ACL packet at most, as LE controllers with long packets have it.
  static let aclDataLength = 251

  /// The event LE Connection Complete (7.7.65.1).
  static func connectionComplete(
    handle: UInt16, isCentral: Bool, peerAddress: [UInt8], parameters: LinkParameters
  ) -> [UInt8] {
    let interval = UInt16(clamping: parameters.connectionInterval.inNanoseconds / 1_250_000)
    let timeout = UInt16(clamping: parameters.supervisionTimeout.inNanoseconds / 10_000_000)
    var packet: [UInt8] = [0x04, 0x3E, 19, 0x01, 0x00]
    packet.append(littleEndian: handle & 0x0FFF)
    // Role, and a random static address, which stands least significant octet first.
    packet += [isCentral ? 0x00 : 0x01, 0x01]
    packet += (peerAddress + [0, 0, 0, 0, 0, 0]).prefix(6)
    packet.append(littleEndian: interval)
    packet.append(littleEndian: 0)
    packet.append(littleEndian: timeout)
    packet.append(0x00)
    return packet
  }

  /// The event Disconnection Complete (7.7.5).
  static func disconnectionComplete(handle: UInt16, reason: UInt8) -> [UInt8] {
    var packet: [UInt8] = [0x04, 0x05, 4, 0x00]
    packet.append(littleEndian: handle & 0x0FFF)
    packet.append(reason)
    return packet
  }

  /// An error code (Core Vol 1 Part F) for the end of a link as the central's host sees it.
  static func reason(_ end: LinkEnd) -> UInt8 {
    switch end {
    case .supervisionTimeout: 0x08
    case .terminated(by: .peripheral): 0x13
    case .terminated(by: .central): 0x16
    }
  }

  /// The ACL packets (5.4.2) of one L2CAP frame, first and continuing ones.
  static func acl(handle: UInt16, isFromController: Bool, frame: [UInt8]) -> [[UInt8]] {
    stride(from: 0, to: frame.count, by: aclDataLength).map { offset in
      let part = frame[offset..<min(offset + aclDataLength, frame.count)]
      // Packet boundary flag: 2 first from the controller, 0 first from an LE host, 1 continuing.
      let boundary: UInt16 = offset > 0 ? 1 : isFromController ? 2 : 0
      var packet: [UInt8] = [0x02]
      packet.reserveCapacity(5 + part.count)
      packet.append(littleEndian: (handle & 0x0FFF) | boundary << 12)
      packet.append(littleEndian: UInt16(clamping: part.count))
      packet += part
      return packet
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(littleEndian value: UInt16) {
    append(UInt8(truncatingIfNeeded: value))
    append(UInt8(truncatingIfNeeded: value >> 8))
  }
}
