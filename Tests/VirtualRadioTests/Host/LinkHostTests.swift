import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Host of a link") struct LinkHostTests {
  private func pair(queueDepth: Int? = 8, table: AttributeTable? = nil) throws -> HostPair {
    var pair = HostPair(table: try table ?? SampleTable.make(), queueDepth: queueDepth)
    pair.run()
    return pair
  }

  private func readyCount(_ pair: HostPair) -> Int {
    pair.centralLog.filter { if case .readyToWrite = $0 { true } else { false } }.count
  }

  private func terminations(_ log: [LinkHost.Output]) -> [RadioError.Code] {
    log.compactMap { if case .terminate(let error) = $0 { error.code } else { nil } }
  }

  // MARK: Write Commands

  /// Room is announced exactly once for each time without, whether it was noticed by a refusal or by asking.
  @Test(arguments: [1, 2, 30], [true, false])
  func readyComesOncePerNotReady(_ depth: Int, _ byAsking: Bool) throws {
    var pair = try pair(queueDepth: depth)
    let handle = try pair.characteristic(SampleTable.values).handle
    for round in 1...3 {
      var taken = 0
      while pair.central.writeWithoutResponse(Data([UInt8(round)]), to: handle) == .accepted { taken += 1 }
      #expect(taken == depth)
      if byAsking { #expect(pair.central.canWriteWithoutResponse() == false) }
      #expect(pair.central.writeWithoutResponse(Data([0]), to: handle) == .notReady)
      pair.collect()
      #expect(readyCount(pair) == round - 1)
      pair.run()
      #expect(readyCount(pair) == round)
      #expect(pair.central.canWriteWithoutResponse() == true)
    }
    // Nobody was refused since: nothing is to be announced.
    #expect(pair.central.writeWithoutResponse(Data([0]), to: handle) == .accepted)
    pair.run()
    #expect(readyCount(pair) == 3)
  }

  @Test func nothingThatWasTakenIsLost() throws {
    var pair = try pair(queueDepth: 5)
    let handle = try pair.characteristic(SampleTable.values).handle
    var next = 0
    while next < 5_000 {
      let value = Data([UInt8(next & 0xFF), UInt8(next >> 8)])
      if pair.central.writeWithoutResponse(value, to: handle) == .accepted { next += 1 } else { pair.run() }
    }
    pair.run()
    let arrived = pair.peripheralLog.compactMap { output -> Int? in
      guard case .write(_, _, let writes, false) = output, let value = writes.first?.value else { return nil }
      return value.reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    #expect(arrived == Array(0..<5_000))
  }

  /// Requests, answers and signalling are not held up by a full queue.
  @Test func requestsPassAFullQueue() throws {
    var pair = try pair(queueDepth: 2)
    let handle = try pair.characteristic(SampleTable.values).handle
    while pair.central.writeWithoutResponse(Data([1]), to: handle) == .accepted {}
    let id = pair.send(.read(handle))
    pair.collect()
    #expect(pair.toPeripheral.last == ATTPDU.readRequest(handle).frame)
    pair.run()
    #expect(pair.answer(to: id)?.value == Data())
  }

  // MARK: Rules of ATT

  @Test func oneTransactionAtATime() throws {
    var pair = try pair()
    let handle = try pair.characteristic(SampleTable.values).handle
    for _ in 0..<3 { _ = pair.send(.read(handle)) }
    pair.collect()
    #expect(pair.toPeripheral.count == 1)
  }

  @Test func aSilentPeerEndsTheBearerAfter30Seconds() throws {
    var pair = try pair()
    let handle = try pair.characteristic(SampleTable.values).handle
    pair.stored = nil
    let id = pair.send(.read(handle))
    pair.run()
    pair.advance(by: .milliseconds(29_999))
    #expect(terminations(pair.centralLog).isEmpty)
    pair.advance(by: .milliseconds(1))
    #expect(terminations(pair.centralLog) == [.timeout])
    #expect(pair.answer(to: id) == nil)
  }

  @Test func aRequestDuringARequestEndsTheBearer() throws {
    var pair = try pair()
    pair.stored = nil
    let handle = try pair.characteristic(SampleTable.values).handle
    pair.peripheral.received(ATTPDU.readRequest(handle).frame, now: pair.now)
    pair.peripheral.received(ATTPDU.readRequest(handle).frame, now: pair.now)
    pair.collect()
    #expect(terminations(pair.peripheralLog) == [.other])
  }

  @Test func anAnswerToAnotherRequestEndsTheBearer() throws {
    var pair = try pair()
    _ = pair.send(.read(3))
    pair.collect()
    pair.central.received(ATTPDU.writeResponse.frame, now: pair.now)
    pair.collect()
    #expect(terminations(pair.centralLog) == [.other])
  }

  @Test func unknownRequestsAreRefusedAndUnknownCommandsIgnored() throws {
    var pair = try pair()
    pair.peripheral.received(ATTPDUTests.frame([0x20, 1, 0, 2, 0]), now: pair.now)
    pair.peripheral.received(ATTPDUTests.frame([0x0A, 1]), now: pair.now)
    pair.peripheral.received(ATTPDUTests.frame([0xD2, 1, 0, 0, 0]), now: pair.now)
    pair.peripheral.received(ATTPDUTests.frame([0x23, 1, 0, 0, 0]), now: pair.now)
    pair.collect()
    #expect(
      pair.toCentral == [
        ATTPDU.errorResponse(opcode: 0x20, handle: 0, .requestNotSupported).frame,
        ATTPDU.errorResponse(opcode: 0x0A, handle: 0, .invalidPDU).frame,
      ])
  }

  @Test func aLateMTUExchangeIsToldToBothSides() throws {
    let parameters = LinkParameters(attMTU: 185, mtuExchangeDelay: .seconds(2))
    var host = LinkHost(
      side: .central, parameters: parameters, table: AttributeTable(deviceName: ""), firstServerRequest: 0,
      now: .seconds(10))
    #expect(host.mtu == 23)
    #expect(host.nextDeadline() == .seconds(12))
    host.timeElapsed(now: .seconds(12))
    // The name is being read; the exchange follows its answer.
    host.received(
      ATTPDU.errorResponse(opcode: ATTOpcode.readByTypeRequest, handle: 1, .attributeNotFound).frame,
      now: .seconds(12))
    host.received(ATTPDU.exchangeMTUResponse(517).frame, now: .seconds(12))
    #expect(host.mtu == 185)
    #expect(host.outputs.contains { if case .mtuChanged(185) = $0 { true } else { false } })
  }

  // MARK: Garbage

  /// Whatever arrives, a host answers a bounded number of frames and goes on.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func garbageNeitherTrapsNorGrows(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var pair = try pair()
    pair.peripheral.acceptedPSMs = [0x80: false]
    let channels: [UInt16] = [4, 4, 4, 5, 5, 6, 0x40, 0x41, 0x7F, 0, 0xFFFF]
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...30, using: &generator)
      var payload = (0..<count).map { _ in UInt8.random(in: 0...0x1F, using: &generator) }
      if Bool.random(using: &generator) { payload = payload.map { $0 &* 37 } }
      var frame = L2CAPFrame.make(
        cid: channels.randomElement(using: &generator) ?? 4, capacity: payload.count
      ) { $0 += payload }
      if Int.random(in: 0..<20, using: &generator) == 0 { frame.removeLast() }
      pair.peripheral.received(frame, now: pair.now)
      pair.central.received(frame, now: pair.now)
      pair.collect()
      #expect(pair.toCentral.count <= 4 && pair.toPeripheral.count <= 4)
      pair.peripheral.completed(pair.toCentral.count, now: pair.now)
      pair.central.completed(pair.toPeripheral.count, now: pair.now)
      pair.loseFrames()
    }
    #expect(pair.peripheral.channels.cids.count <= ChannelTable.limit)
    #expect(pair.peripheral.server.prepared.count <= GATTServer.prepareQueueLimit)
  }

  @Test func afterTheEndNothingHappens() throws {
    var pair = try pair()
    let handle = try pair.characteristic(SampleTable.values).handle
    pair.central.end(RadioError(.supervisionTimeout))
    #expect(pair.central.writeWithoutResponse(Data([1]), to: handle) == .notConnected)
    #expect(pair.central.canWriteWithoutResponse() == false)
    _ = pair.send(.read(handle))
    pair.central.received(ATTPDU.notification(handle, Data()).frame, now: pair.now)
    pair.collect()
    #expect(pair.toPeripheral.isEmpty)
    #expect(pair.central.nextDeadline() == nil)
  }
}
