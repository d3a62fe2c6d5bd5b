import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Values") struct ValueTests {
  private func pair(_ mtu: Int = 185, encrypted: Bool = false) throws -> HostPair {
    var pair = HostPair(mtu: mtu, encrypted: encrypted, table: try SampleTable.make())
    pair.run()
    return pair
  }

  private func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }) }

  @Test(arguments: [23, 185, 517], [0, 1, 19, 20, 22, 44, 182, 184, 368, 511, 512])
  func valuesOfAnyLengthComeWhole(_ mtu: Int, _ count: Int) throws {
    var pair = try pair(mtu)
    let values = try pair.characteristic(SampleTable.values)
    #expect(try pair.ask(.write(values.handle, bytes(count))).isDone)
    #expect(pair.stored == bytes(count))
    #expect(try pair.ask(.read(values.handle)).value == bytes(count))
  }

  @Test(arguments: [23, 185])
  func longStaticValuesAreReadWhole(_ mtu: Int) throws {
    var pair = try pair(mtu)
    let fixed = try pair.characteristic(SampleTable.fixed)
    #expect(try pair.ask(.read(fixed.handle)).value == SampleTable.fixedValue)
  }

  /// One octet too many is refused before anything is sent, and the bearer goes on.
  @Test func tooLongWritesAreRefused() throws {
    var pair = try pair()
    let values = try pair.characteristic(SampleTable.values)
    #expect(try pair.ask(.write(values.handle, bytes(513))).attError == .invalidAttributeValueLength)
    #expect(pair.stored == Data())
    #expect(pair.central.writeWithoutResponse(bytes(183), to: values.handle) == .tooLong(limit: 182))
    #expect(pair.central.writeWithoutResponse(bytes(182), to: values.handle) == .accepted)
    #expect(try pair.ask(.write(values.handle, bytes(512))).isDone)
  }

  /// At the largest MTU a value still has no more than 512 octets.
  @Test func commandsNeverExceedAnAttribute() throws {
    var pair = try pair(517)
    let values = try pair.characteristic(SampleTable.values)
    #expect(pair.central.writeWithoutResponse(bytes(513), to: values.handle) == .tooLong(limit: 512))
    #expect(pair.central.writeWithoutResponse(bytes(512), to: values.handle) == .accepted)
    pair.run()
    let writes = pair.peripheralLog.compactMap { output in
      if case .write(_, _, let writes, false) = output { writes } else { nil }
    }
    #expect(writes == [[ServerWrite(characteristic: LocalCharacteristicID(1), offset: 0, value: bytes(512))]])
  }

  /// What the MTU exchange makes of two sides' wishes.
  @Test(arguments: [(23, 23), (64, 64), (517, 517)])
  func startsAt23AndExchangesByItself(_ mtu: Int, _ agreed: Int) throws {
    var pair = HostPair(mtu: mtu)
    #expect(pair.central.mtu == 23)
    #expect(pair.peripheral.mtu == 23)
    pair.run()
    #expect(pair.central.mtu == agreed)
    #expect(pair.peripheral.mtu == agreed)
  }

  @Test func permissionsAreKept() throws {
    var pair = try pair()
    let pushes = try pair.characteristic(SampleTable.pushes)
    let secret = try pair.characteristic(SampleTable.secret)
    let fixed = try pair.characteristic(SampleTable.fixed)
    #expect(try pair.ask(.read(pushes.handle)).attError == .readNotPermitted)
    #expect(try pair.ask(.write(pushes.handle, Data([1]))).attError == .writeNotPermitted)
    #expect(try pair.ask(.write(fixed.handle, bytes(300))).attError == .writeNotPermitted)
    #expect(try pair.ask(.write(fixed.handle - 1, Data([1]))).attError == .writeNotPermitted)
    #expect(try pair.ask(.read(secret.handle)).attError == .insufficientEncryption)
    #expect(try pair.ask(.write(secret.handle, Data([1]))).attError == .insufficientEncryption)
    #expect(try pair.ask(.setNotify(secret, .notify)).attError == .insufficientEncryption)
    #expect(pair.central.writeWithoutResponse(Data([1]), to: secret.handle) == .accepted)
    pair.run()
    #expect(!pair.peripheralLog.contains { if case .write = $0 { true } else { false } })

    var encrypted = try self.pair(encrypted: true)
    #expect(try encrypted.ask(.write(secret.handle, Data([1]))).isDone)
    #expect(try encrypted.ask(.setNotify(secret, .notify)).isDone)
  }

  @Test func errorsOfTheOwnerReachTheClient() throws {
    var pair = try pair()
    let values = try pair.characteristic(SampleTable.values)
    pair.stored = nil
    let read = pair.send(.read(values.handle))
    pair.run()
    guard case .read(let id, _, 0)? = pair.peripheralLog.last else { throw Unexpected() }
    let own = ATTErrorCode(rawValue: 0x80)
    pair.peripheral.respond(toRead: id, with: .failure(own))
    pair.peripheral.respond(toRead: id, with: .success(Data([1])))
    pair.run()
    #expect(pair.answer(to: read)?.attError == own)
  }

  @Test func preparedWritesAreBounded() throws {
    var pair = try pair(23)
    let handle = try pair.characteristic(SampleTable.values).handle
    var refused: ATTErrorCode?
    for part in 0..<200 {
      let pdu = ATTPDU.prepareWriteRequest(handle, offset: UInt16(part), Data(repeating: 1, count: 18))
      pair.peripheral.received(pdu.frame, now: pair.now)
      pair.collect()
      guard case .errorResponse(_, _, let code)? = pair.toCentral.last.flatMap({ try? ATTPDU(frame: $0) })
      else { continue }
      refused = code
      break
    }
    #expect(refused == .prepareQueueFull)
    // Cancelling empties the queue.
    pair.peripheral.received(ATTPDU.executeWriteRequest(commits: false).frame, now: pair.now)
    #expect(pair.peripheral.server.prepared.isEmpty)
    #expect(!pair.peripheralLog.contains { if case .write = $0 { true } else { false } })
  }

  /// A peer that echoes other bytes than were written has not understood them: the write must not count as done.
  @Test func aWrongEchoCancelsALongWrite() throws {
    var pair = try pair(23)
    let handle = try pair.characteristic(SampleTable.values).handle
    let id = pair.send(.write(handle, bytes(40)))
    pair.collect()
    pair.loseFrames()
    let wrong = ATTPDU.prepareWriteResponse(handle, offset: 0, Data(repeating: 9, count: 18))
    pair.central.received(wrong.frame, now: pair.now)
    pair.collect()
    #expect(pair.toPeripheral.last == ATTPDU.executeWriteRequest(commits: false).frame)
    pair.central.received(ATTPDU.executeWriteResponse.frame, now: pair.now)
    pair.collect()
    guard case .failure(.radio) = pair.answer(to: id) else { throw Unexpected() }
  }

  /// A long write that the peer refuses in the middle is cancelled there, so that nothing is left in its queue.
  @Test func aRefusedPartCancelsALongWrite() throws {
    var pair = try pair(23)
    let handle = try pair.characteristic(SampleTable.values).handle
    let id = pair.send(.write(handle, bytes(40)))
    pair.collect()
    pair.loseFrames()
    let echo = ATTPDU.prepareWriteResponse(handle, offset: 0, bytes(18))
    let refusal = ATTPDU.errorResponse(
      opcode: ATTOpcode.prepareWriteRequest, handle: handle, .prepareQueueFull)
    for pdu in [echo, refusal, .executeWriteResponse] { pair.central.received(pdu.frame, now: pair.now) }
    pair.collect()
    #expect(pair.toPeripheral.last == ATTPDU.executeWriteRequest(commits: false).frame)
    #expect(pair.answer(to: id)?.attError == .prepareQueueFull)
  }
}
