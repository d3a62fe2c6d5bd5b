import Testing

@testable import VirtualRadio

@Suite("LE signalling") struct SignallingPDUTests {
  private static let limits = SignallingPDU.ChannelLimits(mtu: 1000, mps: 247, credits: 10)

  static let commands: [SignallingPDU.Command] = [
    .reject(.notUnderstood), .reject(.mtuExceeded(23)), .reject(.invalidChannel(local: 0x40, remote: 0x41)),
    .disconnectionRequest(destination: 0x41, source: 0x40),
    .disconnectionResponse(destination: 0x41, source: 0x40),
    .parameterUpdateRequest(intervalMin: 6, intervalMax: 12, latency: 0, timeout: 100),
    .parameterUpdateResponse(isAccepted: true), .parameterUpdateResponse(isAccepted: false),
    .connectionRequest(psm: 0x80, source: 0x40, limits),
    .connectionResponse(destination: 0x41, limits, .success),
    .connectionResponse(destination: 0, limits, .psmNotSupported),
    .flowControlCredit(cid: 0x40, credits: 65535),
  ]

  @Test(arguments: commands)
  func comesBackAsItWasSent(_ command: SignallingPDU.Command) throws {
    let pdu = SignallingPDU(identifier: 7, command: command)
    #expect(L2CAPFrame.channel(of: pdu.frame) == ChannelIdentifier.signalling)
    #expect(try SignallingPDU(frame: pdu.frame) == pdu)
  }

  @Test(arguments: commands)
  func everyTruncationIsRefused(_ command: SignallingPDU.Command) {
    let payload = Array(SignallingPDU(identifier: 7, command: command).frame.dropFirst(4))
    for length in 0..<payload.count {
      #expect(throws: SignallingPDU.DecodingError.self) {
        try SignallingPDU(frame: Self.frame(Array(payload.prefix(length))))
      }
    }
  }

  @Test(arguments: [
    (
      SignallingPDU.Command.connectionRequest(psm: 0x80, source: 0x40, limits),
      [
        0x0E, 0x00, 0x05, 0x00, 0x14, 0x07, 0x0A, 0x00, 0x80, 0x00, 0x40, 0x00, 0xE8, 0x03, 0xF7, 0x00, 0x0A,
        0x00,
      ] as [UInt8]
    ),
    (
      .flowControlCredit(cid: 0x40, credits: 0x0102),
      [0x08, 0x00, 0x05, 0x00, 0x16, 0x07, 0x04, 0x00, 0x40, 0x00, 0x02, 0x01]
    ),
    (
      .disconnectionRequest(destination: 0x41, source: 0x40),
      [0x08, 0x00, 0x05, 0x00, 0x06, 0x07, 0x04, 0x00, 0x41, 0x00, 0x40, 0x00]
    ),
  ])
  func hasTheOctetsOfTheSpecification(_ command: SignallingPDU.Command, _ octets: [UInt8]) {
    #expect(SignallingPDU(identifier: 7, command: command).frame == octets)
  }

  @Test(arguments: [
    ([0x14, 0x01], SignallingPDU.DecodingError.tooShort),
    ([0x55, 0x01, 0x00, 0x00], .unknownCode(0x55, identifier: 1)),
    // Identifier 0 is not allowed, and lengths must be right.
    ([0x16, 0x00, 0x04, 0x00, 0x40, 0x00, 0x01, 0x00], .malformed(0x16, identifier: 0)),
    ([0x16, 0x01, 0x05, 0x00, 0x40, 0x00, 0x01, 0x00], .malformed(0x16, identifier: 1)),
    ([0x16, 0x01, 0x03, 0x00, 0x40, 0x00, 0x01], .malformed(0x16, identifier: 1)),
    ([0x16, 0x01, 0x02, 0x00, 0x40, 0x00], .malformed(0x16, identifier: 1)),
  ])
  func refusesWhatMakesNoSense(_ payload: [UInt8], _ error: SignallingPDU.DecodingError) {
    #expect(throws: error) { try SignallingPDU(frame: Self.frame(payload)) }
  }

  @Test(
    arguments: [[], [0], [0, 0, 4], [1, 0, 4, 0], [0, 0, 4, 0, 1], [0xFF, 0xFF, 4, 0, 1]] as [[UInt8]])
  func framesWithAWrongLengthHaveNoChannel(_ frame: [UInt8]) {
    #expect(L2CAPFrame.channel(of: frame) == nil)
  }

  static func frame(_ payload: [UInt8]) -> [UInt8] {
    L2CAPFrame.make(cid: ChannelIdentifier.signalling, capacity: payload.count) { $0 += payload }
  }
}
