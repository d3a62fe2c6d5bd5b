/// The btsnoop file format: RFC 1761 with a magic word of its own and other time stamps.
enum BTSnoopFormat {
  /// Data link type of HCI packets with the UART's type octet.
  static let hciUART: UInt32 = 1002

  /// Microseconds from the start of year 0 to 1970.
  private static let epochOffset: Int64 = 0x00DC_DDB3_0F2F_8000

  static let header: [UInt8] = {
    var header: [UInt8] = Array("btsnoop\0".utf8)
    header.append(bigEndian: 1)
    header.append(bigEndian: hciUART)
    return header
  }()

  /// Appends a record; `microseconds` counts from 1970.
  static func append(
    _ packet: [UInt8], isFromController: Bool, isCommandOrEvent: Bool, microseconds: Int64,
    to buffer: inout [UInt8]
  ) {
    buffer.append(bigEndian: UInt32(clamping: packet.count))
    buffer.append(bigEndian: UInt32(clamping: packet.count))
    buffer.append(bigEndian: (isFromController ? 1 : 0) | (isCommandOrEvent ? 2 : 0))
    buffer.append(bigEndian: 0)
    let stamp = UInt64(bitPattern: microseconds &+ epochOffset)
    buffer.append(bigEndian: UInt32(truncatingIfNeeded: stamp >> 32))
    buffer.append(bigEndian: UInt32(truncatingIfNeeded: stamp))
    buffer += packet
  }
}

extension [UInt8] {
  fileprivate mutating func append(bigEndian value: UInt32) {
    for shift in [24, 16, 8, 0] as [UInt32] { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}
