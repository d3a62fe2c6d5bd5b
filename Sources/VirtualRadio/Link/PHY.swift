/// A physical layer of Bluetooth LE (Core Vol 6 Part A 1, Part B 2.2).
public enum PHY: Hashable, Sendable, CaseIterable, CustomStringConvertible {
  /// 1 Msymbol/s, uncoded: every LE device has it.
  case le1M
  /// 2 Msymbol/s, uncoded.
  case le2M
  /// 1 Msymbol/s, two symbols a bit: 500 kbit/s.
  case codedS2
  /// 1 Msymbol/s, eight symbols a bit: 125 kbit/s.
  case codedS8

  /// As it is written in link parameters: `1M`, `2M`, `S2`, `S8`.
  public var description: String {
    switch self {
    case .le1M: "1M"
    case .le2M: "2M"
    case .codedS2: "S2"
    case .codedS8: "S8"
    }
  }

  /// Air time of an empty data-channel PDU: preamble, access address, header, CRC and, if coded, their coding, in microseconds.
  var emptyPacketMicroseconds: Int {
    switch self {
    case .le1M: (1 + 4 + 2 + 3) * 8
    case .le2M: (2 + 4 + 2 + 3) * 4
    // Preamble 80, access address 256, coding indicator 16, TERM1 24; then S us per bit of header, CRC and TERM2.
    case .codedS2: 80 + 256 + 16 + 24 + (16 + 24 + 3) * 2
    case .codedS8: 80 + 256 + 16 + 24 + (16 + 24 + 3) * 8
    }
  }

  /// Air time of each octet of payload and MIC, in microseconds.
  var octetMicroseconds: Int {
    switch self {
    case .le1M: 8
    case .le2M: 4
    case .codedS2: 16
    case .codedS8: 64
    }
  }
}
