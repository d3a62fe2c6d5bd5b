/// How long packets of a connection occupy the air (Core Vol 6 Part B 2.4, 4.1).
public enum AirTime {
  /// The pause between two packets of a connection event.
  public static let interFrameSpace: Duration = .microseconds(interFrameMicroseconds)

  /// Octets that encryption adds to every data PDU that is not empty.
  public static let messageIntegrityOctets = 4

  static let interFrameMicroseconds = 150

  /// Air time of one data PDU with `octets` of payload (0...251); zero is an empty PDU, which has no MIC.
  public static func packet(octets: Int, phy: PHY, isEncrypted: Bool = false) -> Duration {
    .microseconds(microseconds(octets: octets, phy: phy, isEncrypted: isEncrypted))
  }

  /// Air time of an exchange: the central's packet, a pause, the peripheral's packet, a pause.
  public static func pair(
    centralOctets: Int, peripheralOctets: Int = 0, phy: PHY, isEncrypted: Bool = false
  ) -> Duration {
    packet(octets: centralOctets, phy: phy, isEncrypted: isEncrypted)
      + packet(octets: peripheralOctets, phy: phy, isEncrypted: isEncrypted) + interFrameSpace * 2
  }

  static func microseconds(octets: Int, phy: PHY, isEncrypted: Bool) -> Int {
    guard octets > 0 else { return phy.emptyPacketMicroseconds }
    let sealed = octets + (isEncrypted ? messageIntegrityOctets : 0)
    return phy.emptyPacketMicroseconds + phy.octetMicroseconds * sealed
  }
}

/// Link parameters as the numbers that an event needs, each inside the specification's range.
struct LinkTiming: Hashable, Sendable {
  /// Largest payload of a data PDU.
  let dataLength: Int
  /// Connection interval in microseconds.
  let interval: Int
  /// Pairs in one event at most.
  let pairsPerEvent: Int
  /// Supervision timeout in nanoseconds.
  let supervisionTimeout: Int64

  private let emptyPacket: Int
  private let octet: Int
  private let sealing: Int

  init(_ parameters: LinkParameters) {
    dataLength = min(max(parameters.dataLength, 27), 251)
    interval = Int(min(max(parameters.connectionInterval.inNanoseconds, 7_500_000), 4_000_000_000) / 1000)
    pairsPerEvent = max(parameters.packetsPerEvent ?? .max, 1)
    supervisionTimeout = max(parameters.supervisionTimeout.inNanoseconds, 1_000_000)
    emptyPacket = parameters.phy.emptyPacketMicroseconds
    octet = parameters.phy.octetMicroseconds
    sealing = parameters.isEncrypted ? AirTime.messageIntegrityOctets * octet : 0
  }

  /// Microseconds of one packet.
  func packet(_ octets: Int) -> Int { octets == 0 ? emptyPacket : emptyPacket + octet * octets + sealing }

  /// Microseconds of an exchange, both pauses included.
  func pair(_ central: Int, _ peripheral: Int) -> Int {
    packet(central) + packet(peripheral) + 2 * AirTime.interFrameMicroseconds
  }

  /// Microseconds and pairs that an L2CAP frame of `octets` takes in one direction, answered by empty packets.
  func frame(_ octets: Int) -> (microseconds: Int, pairs: Int) {
    let (whole, rest) = octets.quotientAndRemainder(dividingBy: dataLength)
    let tail = rest > 0 ? pair(rest, 0) : 0
    return (whole * pair(dataLength, 0) + tail, whole + (rest > 0 ? 1 : 0))
  }
}
