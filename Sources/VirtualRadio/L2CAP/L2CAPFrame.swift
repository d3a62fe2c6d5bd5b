internal import Radio

/// Channel identifiers of an LE link (Core Vol 3 Part A 2.1).
enum ChannelIdentifier {
  static let attributeProtocol: UInt16 = 0x0004
  static let signalling: UInt16 = 0x0005
  static let securityManager: UInt16 = 0x0006
  /// Those that each side gives out for its credit-based channels.
  static let dynamic: ClosedRange<UInt16> = 0x0040...0x007F
}

/// Basic frames (Core Vol 3 Part A 3.1): length, channel identifier, payload.
enum L2CAPFrame {
  /// Octets before the payload.
  static let headerLength = 4

  /// Builds a frame in one allocation; `writePayload` appends at most `capacity` octets, without going back.
  static func make(cid: UInt16, capacity: Int, _ writePayload: (inout [UInt8]) -> Void) -> [UInt8] {
    var frame: [UInt8] = []
    frame.reserveCapacity(headerLength + capacity)
    frame.appendUInt16(0)
    frame.appendUInt16(cid)
    writePayload(&frame)
    let length = frame.count - headerLength
    frame[0] = UInt8(truncatingIfNeeded: length)
    frame[1] = UInt8(truncatingIfNeeded: length >> 8)
    return frame
  }

  /// The channel of a frame whose length field is right, or nil.
  static func channel(of frame: [UInt8]) -> UInt16? {
    var reader = ByteReader(frame)
    guard let length = reader.readUInt16(), let cid = reader.readUInt16(), reader.remaining == Int(length)
    else { return nil }
    return cid
  }
}
