extension FaultScript {
  /// Octets of payload in an L2CAP frame of the central, as places in a transfer count them; nil where it carries none.
  static func payload(of frame: [UInt8]) -> Int? {
    guard frame.count > L2CAPFrame.headerLength, let cid = L2CAPFrame.channel(of: frame) else { return nil }
    if ChannelIdentifier.dynamic.contains(cid) { return frame.count - L2CAPFrame.headerLength }
    guard cid == ChannelIdentifier.attributeProtocol else { return nil }
    switch frame[L2CAPFrame.headerLength] {
    // Opcode and handle, and in the second case the offset.
    case ATTOpcode.writeCommand, ATTOpcode.writeRequest: return max(frame.count - 7, 0)
    case ATTOpcode.prepareWriteRequest: return max(frame.count - 9, 0)
    default: return nil
    }
  }
}
