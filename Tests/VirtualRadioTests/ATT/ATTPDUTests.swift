import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("ATT packets") struct ATTPDUTests {
  private static let short = BluetoothUUID(UInt16(0x2A00))
  private static let long = BluetoothUUID(high: 0x8D53_DC1D_1DB7_4CD3, low: 0x868B_8A52_7460_AA84)
  private static let range = ATTPDU.HandleRange(0x0001, 0xFFFF)

  static let samples: [ATTPDU] = [
    .errorResponse(opcode: 0x0A, handle: 0x1234, .readNotPermitted),
    .exchangeMTURequest(517), .exchangeMTUResponse(23),
    .findInformationRequest(range),
    .findInformationResponse([
      RemoteDescriptor(handle: 3, uuid: short), RemoteDescriptor(handle: 4, uuid: short),
    ]),
    .findInformationResponse([RemoteDescriptor(handle: 3, uuid: long)]),
    .findByTypeValueRequest(range, type: 0x2800, value: Data([0x0F, 0x18])),
    .findByTypeValueResponse([ATTPDU.HandleRange(1, 4), ATTPDU.HandleRange(9, 12)]),
    .readByTypeRequest(range, short), .readByTypeRequest(range, long),
    .readByTypeResponse([
      ATTPDU.AttributeValue(handle: 2, value: Data([1, 2, 3])),
      ATTPDU.AttributeValue(handle: 5, value: Data([4, 5, 6])),
    ]),
    .readRequest(7), .readResponse(Data([1, 2, 3])), .readResponse(Data()),
    .readBlobRequest(7, offset: 22), .readBlobResponse(Data([9])),
    .readByGroupTypeRequest(range, short), .readByGroupTypeRequest(range, long),
    .readByGroupTypeResponse([ATTPDU.GroupValue(handles: ATTPDU.HandleRange(1, 7), value: Data([0, 0x18]))]),
    .writeRequest(7, Data([1])), .writeResponse,
    .prepareWriteRequest(7, offset: 18, Data([1, 2])), .prepareWriteResponse(7, offset: 18, Data([1, 2])),
    .executeWriteRequest(commits: true), .executeWriteRequest(commits: false), .executeWriteResponse,
    .notification(7, Data([1, 2])), .indication(7, Data()), .confirmation,
    .writeCommand(7, Data(repeating: 0xA5, count: 244)), .writeCommand(7, Data()),
  ]

  @Test(arguments: samples)
  func comesBackAsItWasSent(_ pdu: ATTPDU) throws {
    let frame = pdu.frame
    #expect(L2CAPFrame.channel(of: frame) == ChannelIdentifier.attributeProtocol)
    #expect(try ATTPDU(frame: frame) == pdu)
    #expect(frame[4] == pdu.opcode)
  }

  /// A prefix of a packet is refused, or it is the packet that consists of just these octets.
  @Test(arguments: samples)
  func everyTruncationIsReadExactlyOrRefused(_ pdu: ATTPDU) {
    let payload = Array(pdu.frame.dropFirst(L2CAPFrame.headerLength))
    for length in 0..<payload.count {
      let cut = Self.frame(Array(payload.prefix(length)))
      guard let read = try? ATTPDU(frame: cut) else { continue }
      #expect(read.frame == cut, "\(length) octets of \(pdu)")
    }
  }

  @Test(arguments: [
    (ATTPDU.exchangeMTURequest(247), [0x03, 0x00, 0x04, 0x00, 0x02, 0xF7, 0x00]),
    (.writeCommand(0x0012, Data([0xAA, 0xBB])), [0x05, 0x00, 0x04, 0x00, 0x52, 0x12, 0x00, 0xAA, 0xBB]),
    (.notification(0x0102, Data([0x01])), [0x04, 0x00, 0x04, 0x00, 0x1B, 0x02, 0x01, 0x01]),
    (
      .readByGroupTypeRequest(range, GATTType.primaryService),
      [0x07, 0x00, 0x04, 0x00, 0x10, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28]
    ),
    (
      .errorResponse(opcode: 0x08, handle: 0x000C, .attributeNotFound),
      [0x05, 0x00, 0x04, 0x00, 0x01, 0x08, 0x0C, 0x00, 0x0A]
    ),
    (
      .prepareWriteRequest(0x0003, offset: 0x0112, Data([0x07])),
      [0x06, 0x00, 0x04, 0x00, 0x16, 0x03, 0x00, 0x12, 0x01, 0x07]
    ),
  ])
  func hasTheOctetsOfTheSpecification(_ pdu: ATTPDU, _ octets: [UInt8]) {
    #expect(pdu.frame == octets)
  }

  @Test(arguments: [
    ([], ATTPDU.DecodingError.empty),
    ([0x0A, 0x01], .malformed(opcode: 0x0A)),
    ([0x0A, 0x01, 0x00, 0x00], .malformed(opcode: 0x0A)),
    ([0x18, 0x02], .malformed(opcode: 0x18)),
    // Entries whose length is not what the packet says.
    ([0x09, 0x04, 0x01, 0x00, 0x00], .malformed(opcode: 0x09)),
    ([0x09, 0x01, 0x01, 0x00], .malformed(opcode: 0x09)),
    ([0x11, 0x06], .malformed(opcode: 0x11)),
    ([0x05, 0x03, 0x01, 0x00, 0x00, 0x00], .malformed(opcode: 0x05)),
    // ATT has no 32-bit types.
    ([0x08, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28, 0x00, 0x00], .malformed(opcode: 0x08)),
    ([0x20, 0x01, 0x00, 0x02, 0x00], .unknownOpcode(0x20)),
  ])
  func refusesWhatMakesNoSense(_ payload: [UInt8], _ error: ATTPDU.DecodingError) {
    #expect(throws: error) { try ATTPDU(frame: Self.frame(payload)) }
  }

  @Test func garbageIsReadStablyOrRefused() {
    var generator = SeededGenerator(seed: 42)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...40, using: &generator)
      var payload = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      if let opcode = Self.samples.randomElement(using: &generator)?.opcode, !payload.isEmpty {
        payload[0] = opcode
      }
      guard let pdu = try? ATTPDU(frame: Self.frame(payload)) else { continue }
      #expect((try? ATTPDU(frame: pdu.frame)) == pdu)
    }
  }

  static func frame(_ payload: [UInt8]) -> [UInt8] {
    L2CAPFrame.make(cid: ChannelIdentifier.attributeProtocol, capacity: payload.count) { $0 += payload }
  }
}

extension BluetoothUUID {
  /// A UUID of two words.
  init(high: UInt64, low: UInt64) {
    var bytes: [UInt8] = []
    for word in [high, low] {
      for shift in stride(from: UInt64(56), through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: word >> shift))
      }
    }
    self = BluetoothUUID(bigEndian: bytes) ?? BluetoothUUID(UInt16(0))
  }
}
