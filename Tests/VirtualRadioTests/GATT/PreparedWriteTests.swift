import Foundation
import Radio
import Testing

@testable import VirtualRadio

/// Prepared writes (Core Vol 3 Part F 3.4.6), also to several characteristics at once, as reliable writes are.
@Suite struct PreparedWriteTests {
  /// A device that keeps what it is asked, and the handles of two values that can be written.
  private struct Device {
    var pair: HostPair
    let first: AttributeHandle
    let second: AttributeHandle

    init() throws {
      pair = HostPair(mtu: 185, encrypted: true, table: try SampleTable.make())
      pair.run()
      first = try pair.characteristic(SampleTable.values).handle
      second = try pair.characteristic(SampleTable.secret).handle
      pair.stored = nil
      pair.loseFrames()
    }

    /// Gives the device one request and returns its answer, or nil where it has none.
    mutating func receive(_ pdu: ATTPDU) throws -> ATTPDU? {
      pair.loseFrames()
      pair.peripheral.received(pdu.frame, now: pair.now)
      pair.collect()
      return try pair.toCentral.last.map { try ATTPDU(frame: $0) }
    }

    mutating func prepare(_ handle: AttributeHandle, _ offset: UInt16, _ value: [UInt8]) throws {
      let answer = try receive(.prepareWriteRequest(handle, offset: offset, Data(value)))
      #expect(answer == .prepareWriteResponse(handle, offset: offset, Data(value)))
    }

    var batches: [(ServerRequestID, [ServerWrite])] {
      pair.peripheralLog.compactMap { output in
        if case .write(let id, _, let writes, true) = output { (id, writes) } else { nil }
      }
    }
  }

  private func write(_ id: UInt64, _ offset: Int, _ value: [UInt8]) -> ServerWrite {
    ServerWrite(characteristic: LocalCharacteristicID(id), offset: offset, value: Data(value))
  }

  @Test func aReliableWriteIsOneBatchInTheOrderOfArrival() throws {
    var device = try Device()
    try device.prepare(device.first, 2, [3, 4])
    try device.prepare(device.second, 0, [9])
    try device.prepare(device.first, 0, [1, 2])
    try device.prepare(device.first, 2, [5])
    // Nothing is written, or asked, before the end.
    #expect(device.batches.isEmpty)
    #expect(try device.receive(.executeWriteRequest(commits: true)) == nil)
    let batch = try #require(device.batches.first)
    #expect(batch.1 == [write(1, 2, [3, 4]), write(4, 0, [9]), write(1, 0, [1, 2]), write(1, 2, [5])])
    #expect(device.batches.count == 1)
    device.pair.peripheral.respond(toWrites: batch.0, with: .success(()))
    device.pair.collect()
    #expect(try device.pair.toCentral.last.map { try ATTPDU(frame: $0) } == .executeWriteResponse)
    // The queue is empty again.
    #expect(try device.receive(.executeWriteRequest(commits: true)) == .executeWriteResponse)
    #expect(device.batches.count == 1)
  }

  @Test func oneRefusalIsTheAnswerToAll() throws {
    var device = try Device()
    try device.prepare(device.first, 0, [1])
    try device.prepare(device.second, 0, [2])
    _ = try device.receive(.executeWriteRequest(commits: true))
    let batch = try #require(device.batches.first)
    device.pair.peripheral.respond(toWrites: batch.0, with: .failure(ATTErrorCode(rawValue: 0x80)))
    device.pair.peripheral.respond(toWrites: batch.0, with: .success(()))
    device.pair.collect()
    let answers = try device.pair.toCentral.map { try ATTPDU(frame: $0) }
    #expect(
      answers == [
        .errorResponse(
          opcode: ATTOpcode.executeWriteRequest, handle: device.first, ATTErrorCode(rawValue: 0x80))
      ])
  }

  @Test func whatIsCancelledIsNotWritten() throws {
    var device = try Device()
    try device.prepare(device.first, 0, [1])
    #expect(try device.receive(.executeWriteRequest(commits: false)) == .executeWriteResponse)
    #expect(try device.receive(.executeWriteRequest(commits: true)) == .executeWriteResponse)
    #expect(device.batches.isEmpty)
  }

  /// The longest value ends at 512 octets: a part beyond it fails the whole queue, which is then empty.
  @Test(arguments: [
    (UInt16(511), 1, nil), (511, 2, ATTErrorCode.invalidAttributeValueLength), (513, 1, .invalidOffset),
  ])
  func noPartLiesBeyondTheLongestValue(offset: UInt16, count: Int, refusal: ATTErrorCode?) throws {
    var device = try Device()
    try device.prepare(device.second, 0, [1])
    try device.prepare(device.first, offset, Array(repeating: 7, count: count))
    let answer = try device.receive(.executeWriteRequest(commits: true))
    #expect(device.batches.count == (refusal == nil ? 1 : 0))
    if let refusal {
      #expect(
        answer == .errorResponse(opcode: ATTOpcode.executeWriteRequest, handle: device.first, refusal))
      #expect(try device.receive(.executeWriteRequest(commits: true)) == .executeWriteResponse)
    }
  }
}
