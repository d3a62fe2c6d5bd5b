import CoreBluetooth
import Radio
import Testing

/// Reads and writes of centrals, and their answers.
@Suite(.timeLimit(.minutes(30))) struct ServerRequestTests {
  @Test func answersReads() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    await rig.post(
      .read(ServerRequestID(1), central: rig.central, local.characteristics[0].id, offset: 0),
      .read(ServerRequestID(2), central: rig.central, local.characteristics[0].id, offset: 22),
      .read(ServerRequestID(3), central: rig.central, LocalCharacteristicID(99), offset: 0))
    #expect(rig.recorder.lines.all == ["read AA01 from 0", "read AA01 from 22"])
    let requests = rig.recorder.requests
    try #require(requests.count == 2)
    #expect(requests[0].characteristic === example.data)
    #expect(requests[0].central === requests[1].central)
    #expect(requests[0].central.identifier == rig.central.uuid)
    #expect(requests[0].value == nil)
    requests[0].value = Data([7])
    rig.manager.respond(to: requests[0], withResult: .success)
    rig.manager.respond(to: requests[0], withResult: .success)
    rig.manager.respond(to: requests[1], withResult: .invalidOffset)
    #expect(
      rig.peripheral.commands == [
        .refuseRead(ServerRequestID(3), .attributeNotFound), .respondRead(ServerRequestID(1), Data([7])),
        .refuseRead(ServerRequestID(2), .invalidOffset),
      ])
    #expect(rig.log.all.filter { $0.contains("once") }.count == 1)
  }

  @Test func answersBatchesAsOne() async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let id = local.characteristics[0].id
    let parts = [0, 18, 36].map { ServerWrite(characteristic: id, offset: $0, value: Data(count: 18)) }
    await rig.post(
      .write(ServerRequestID(1), central: rig.central, parts, needsResponse: true),
      .write(ServerRequestID(2), central: rig.central, [parts[0]], needsResponse: false),
      .write(ServerRequestID(3), central: rig.central, [parts[0]], needsResponse: true))
    #expect(
      rig.recorder.lines.all == [
        "write AA01+0:18 AA01+18:18 AA01+36:18", "write AA01+0:18", "write AA01+0:18",
      ])
    let requests = rig.recorder.requests
    try #require(requests.count == 5)
    rig.manager.respond(to: requests[0], withResult: .success)
    rig.manager.respond(to: requests[1], withResult: .success)
    rig.manager.respond(to: requests[3], withResult: .success)
    rig.manager.respond(to: requests[4], withResult: try #require(CBATTError.Code(rawValue: 0x80)))
    #expect(
      rig.peripheral.commands == [
        .respondWrites(ServerRequestID(1), nil), .respondWrites(ServerRequestID(2), nil),
        .respondWrites(ServerRequestID(3), ATTErrorCode(rawValue: 0x80)),
      ])
    #expect(rig.log.all.count == 1)
  }

  /// What a central has prepared for several characteristics comes as one array, and is taken or refused as a whole.
  @Test(arguments: [CBATTError.Code.success, .insufficientResources])
  func answersReliableWritesOverSeveralCharacteristicsAsOne(result: CBATTError.Code) async throws {
    let rig = try await PeripheralRig()
    let (settings, limits) = (LocalExample.written("AA01"), LocalExample.written("AA02"))
    let service = CBMutableService(type: CBUUID(string: "1234"), primary: true)
    service.characteristics = [settings, limits]
    let ids = try await rig.add(service).characteristics.map(\.id)
    try #require(ids.count == 2)
    let parts = [(ids[0], 0, 18), (ids[1], 0, 2), (ids[0], 18, 4), (ids[1], 2, 1)]
    await rig.post(
      .write(
        ServerRequestID(7), central: rig.central,
        parts.map { ServerWrite(characteristic: $0.0, offset: $0.1, value: Data(count: $0.2)) },
        needsResponse: true))
    #expect(rig.recorder.lines.all == ["write AA01+0:18 AA02+0:2 AA01+18:4 AA02+2:1"])
    let requests = rig.recorder.requests
    #expect(
      requests.map { $0.characteristic === settings } == [true, false, true, false]
        && requests.allSatisfy { $0.central === requests[0].central })
    rig.manager.respond(to: try #require(requests.first), withResult: result)
    rig.recorder.letGo()
    let code = result == .success ? nil : ATTErrorCode(rawValue: UInt8(result.rawValue))
    #expect(rig.peripheral.commands == [.respondWrites(ServerRequestID(7), code)])
    #expect(rig.log.all == [])
  }

  /// Nobody can answer a request that was let go of: the peer must not wait for its whole transaction time.
  @Test func answersForThoseWhoForget() async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let id = local.characteristics[0].id
    let write = ServerWrite(characteristic: id, offset: 0, value: Data([1]))
    await rig.post(
      .read(ServerRequestID(1), central: rig.central, id, offset: 0),
      .write(ServerRequestID(2), central: rig.central, [write, write], needsResponse: true),
      .write(ServerRequestID(3), central: rig.central, [write], needsResponse: false))
    #expect(rig.peripheral.commands == [])
    rig.recorder.letGo()
    #expect(
      rig.peripheral.commands == [
        .refuseRead(ServerRequestID(1), .unlikelyError), .respondWrites(ServerRequestID(2), .unlikelyError),
        .respondWrites(ServerRequestID(3), nil),
      ])
    #expect(rig.log.all.count == 2)
  }

  private final class Bare: NSObject, CBPeripheralManagerDelegate {
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}
  }

  @Test(arguments: [true, false])
  func refusesForADelegateThatDoesNotAnswer(hasDelegate: Bool) async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let bare = Bare()
    rig.manager.delegate = hasDelegate ? bare : nil
    let id = local.characteristics[0].id
    await rig.post(
      .read(ServerRequestID(1), central: rig.central, id, offset: 0),
      .write(
        ServerRequestID(2), central: rig.central, [ServerWrite(characteristic: id, offset: 0, value: Data())],
        needsResponse: true))
    #expect(
      rig.peripheral.commands == [
        .refuseRead(ServerRequestID(1), .requestNotSupported),
        .respondWrites(ServerRequestID(2), .requestNotSupported),
      ])
    withExtendedLifetime(bare) {}
  }

  @Test func refusesTheRequestOfAnotherManager() async throws {
    let (rig, other) = (try await PeripheralRig(), try await PeripheralRig())
    let local = try await other.add(LocalExample().service)
    await other.post(
      .read(ServerRequestID(1), central: other.central, local.characteristics[0].id, offset: 0))
    let request = try #require(other.recorder.requests.first)
    rig.manager.respond(to: request, withResult: .success)
    #expect(rig.peripheral.commands == [])
    #expect(other.peripheral.commands == [])
    #expect(rig.log.all.count == 1)
  }
}
