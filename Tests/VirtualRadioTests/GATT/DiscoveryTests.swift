import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Discovery") struct DiscoveryTests {
  private func pair(_ mtu: Int) throws -> HostPair {
    var pair = HostPair(mtu: mtu, table: try SampleTable.make())
    pair.run()
    return pair
  }

  @Test(arguments: [23, 27, 64, 185, 247, 517])
  func findsEveryServiceAtEveryMTU(_ mtu: Int) throws {
    var pair = try pair(mtu)
    guard case .services(let services) = try pair.ask(.discoverServices(nil)).get() else {
      throw Unexpected()
    }
    #expect(
      services.map(\.uuid) == [
        GATTType.accessService, GATTType.attributeService, SampleTable.service, SampleTable.long,
        BluetoothUUID(UInt16(0x180A)),
      ])
    #expect(!services.contains { !$0.isPrimary })
    for (one, next) in zip(services, services.dropFirst()) {
      #expect(one.handles.upperBound < next.handles.lowerBound)
    }
  }

  @Test(arguments: [
    [SampleTable.long], [SampleTable.service, SampleTable.long], [SampleTable.long, SampleTable.service],
    [BluetoothUUID(UInt16(0x1234))], [], [SampleTable.secondary],
    [SampleTable.service, SampleTable.long, BluetoothUUID(UInt16(0x180A)), BluetoothUUID(UInt16(0x1234))],
  ])
  func findsServicesOfGivenTypes(_ filter: [BluetoothUUID]) throws {
    var pair = try pair(23)
    guard case .services(let all) = try pair.ask(.discoverServices(nil)).get(),
      case .services(let some) = try pair.ask(.discoverServices(filter)).get()
    else { throw Unexpected() }
    #expect(some == all.filter { filter.contains($0.uuid) })
  }

  @Test(arguments: [23, 185])
  func findsIncludedServices(_ mtu: Int) throws {
    var pair = try pair(mtu)
    guard case .services(let services) = try pair.ask(.discoverServices(nil)).get() else {
      throw Unexpected()
    }
    func included(_ index: Int, _ filter: [BluetoothUUID]? = nil) throws -> [RemoteService] {
      guard
        case .services(let found) = try pair.ask(.discoverIncludedServices(of: services[index], filter)).get()
      else { throw Unexpected() }
      return found
    }
    #expect(try included(2).map(\.uuid) == [SampleTable.secondary])
    #expect(try included(2).map(\.isPrimary) == [false])
    #expect(try included(3) == [services[2]])
    // One of the two has a long type and must be read for it.
    let both = try included(4)
    #expect(Set(both.map(\.uuid)) == [SampleTable.long, SampleTable.secondary])
    #expect(try included(4, [SampleTable.long]) == [services[3]])
    #expect(try included(0).isEmpty)
  }

  @Test(arguments: [23, 30, 185])
  func findsCharacteristicsAndTheirDescriptors(_ mtu: Int) throws {
    var pair = try pair(mtu)
    guard case .services(let services) = try pair.ask(.discoverServices([SampleTable.service])).get(),
      case .characteristics(let found) = try pair.ask(
        .discoverCharacteristics(of: services[0], nil)
      ).get()
    else { throw Unexpected() }
    #expect(
      found.map(\.uuid) == [
        SampleTable.values, SampleTable.pushes, SampleTable.fixed, SampleTable.secret, SampleTable.indicated,
      ])
    #expect(found[0].properties == [.read, .write, .writeWithoutResponse])
    #expect(found.last?.endHandle == services[0].handles.upperBound)
    for (one, next) in zip(found, found.dropFirst()) { #expect(one.endHandle == next.handle - 2) }

    let expected: [[BluetoothUUID]] = [
      [SampleTable.name.uuid], [GATTType.clientConfiguration, SampleTable.name.uuid], [],
      [GATTType.clientConfiguration], [GATTType.clientConfiguration],
    ]
    for (characteristic, uuids) in zip(found, expected) {
      guard case .descriptors(let descriptors) = try pair.ask(.discoverDescriptors(of: characteristic)).get()
      else { throw Unexpected() }
      #expect(descriptors.map(\.uuid) == uuids)
      for descriptor in descriptors where descriptor.uuid == SampleTable.name.uuid {
        #expect(try pair.ask(.read(descriptor.handle)).value == SampleTable.name.value)
      }
    }
  }

  @Test func repliesComeInTheOrderOfRequests() throws {
    var pair = try pair(23)
    let fixed = try pair.characteristic(SampleTable.fixed)
    let requests: [GATTRequest] = [
      .discoverServices(nil), .read(fixed.handle), .readRSSI, .read(0xFFF0),
      .write(fixed.handle, Data(count: 600)),
      .discoverServices([]), .read(fixed.handle),
    ]
    let ids = requests.map { pair.send($0) }
    let start = pair.centralLog.count
    pair.run()
    let answered = pair.centralLog.dropFirst(start).compactMap { output in
      if case .completed(let id, _) = output { id } else { nil }
    }
    #expect(answered == ids)
    #expect(pair.answer(to: ids[3])?.attError == .invalidHandle)
    #expect(pair.answer(to: ids[4])?.attError == .invalidAttributeValueLength)
  }

  @Test func learnsTheNameOfThePeer() throws {
    let pair = try pair(23)
    let names = pair.centralLog.compactMap { output in
      if case .deviceName(let name) = output { name } else { nil }
    }
    #expect(names == ["device"])
  }

  /// A peer that always answers the same must not keep a client busy.
  @Test func discoveryThatDoesNotGoForwardFails() throws {
    var pair = HostPair(mtu: 23)
    pair.run()
    let id = pair.send(.discoverServices(nil))
    let same = ATTPDU.readByGroupTypeResponse([
      ATTPDU.GroupValue(handles: ATTPDU.HandleRange(1, 5), value: Data([0, 0x18]))
    ])
    pair.collect()
    pair.loseFrames()
    for _ in 0..<3 {
      pair.central.received(same.frame, now: pair.now)
      pair.collect()
    }
    guard case .failure(.radio(let error)) = pair.answer(to: id) else { throw Unexpected() }
    #expect(error.code == .other)
  }
}
