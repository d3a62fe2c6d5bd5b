import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Subscriptions") struct SubscriptionTests {
  private let pushes = SampleTable.attribute(2)
  private let indicated = SampleTable.attribute(5)

  private func pair(_ mtu: Int = 185, queueDepth: Int? = 8) throws -> HostPair {
    var pair = HostPair(mtu: mtu, table: try SampleTable.make(), queueDepth: queueDepth)
    pair.run()
    return pair
  }

  private func notified(_ pair: HostPair) -> [Data] {
    pair.centralLog.compactMap { if case .notified(_, let value) = $0 { value } else { nil } }
  }

  @Test func subscribingIsToldOnceAndWorksBothWays() throws {
    var pair = try pair()
    let pushed = try pair.characteristic(SampleTable.pushes)
    #expect(!pair.peripheral.isSubscribed(to: pushes))
    #expect(try pair.ask(.setNotify(pushed, .notify)).isDone)
    #expect(try pair.ask(.setNotify(pushed, .notify)).isDone)
    #expect(pair.peripheral.isSubscribed(to: pushes))
    pair.peripheral.notify(Data([1, 2]), of: pushes, now: pair.now)
    pair.run()
    #expect(notified(pair) == [Data([1, 2])])
    #expect(try pair.ask(.setNotify(pushed, .none)).isDone)
    #expect(!pair.peripheral.isSubscribed(to: pushes))
    let told = pair.peripheralLog.compactMap { output in
      switch output {
      case .subscribed: "subscribed"
      case .unsubscribed: "unsubscribed"
      default: nil
      }
    }
    #expect(told == ["subscribed", "unsubscribed"])
  }

  @Test func whatTheCharacteristicCannotDoIsRefused() throws {
    var pair = try pair()
    let pushed = try pair.characteristic(SampleTable.pushes)
    let values = try pair.characteristic(SampleTable.values)
    #expect(try pair.ask(.setNotify(pushed, .indicate)).attError == .improperlyConfigured)
    #expect(try pair.ask(.setNotify(values, .notify)).attError == .attributeNotFound)
  }

  @Test(arguments: [23, 185])
  func longValuesAreCutForTheSubscriber(_ mtu: Int) throws {
    var pair = try pair(mtu)
    #expect(try pair.ask(.setNotify(pair.characteristic(SampleTable.pushes), .notify)).isDone)
    pair.peripheral.notify(Data(repeating: 3, count: 512), of: pushes, now: pair.now)
    pair.run()
    #expect(notified(pair).map(\.count) == [mtu - 3])
  }

  @Test func indicationsGoOneByOneAndAreConfirmed() throws {
    var pair = try pair()
    #expect(try pair.ask(.setNotify(pair.characteristic(SampleTable.indicated), .indicate)).isDone)
    pair.peripheral.notify(Data([1]), of: indicated, now: pair.now)
    pair.peripheral.notify(Data([2]), of: indicated, now: pair.now)
    pair.collect()
    #expect(pair.toCentral.count == 1)
    pair.run()
    #expect(notified(pair) == [Data([1]), Data([2])])
  }

  @Test func anIndicationWithoutConfirmationEndsTheLink() throws {
    var pair = try pair()
    #expect(try pair.ask(.setNotify(pair.characteristic(SampleTable.indicated), .indicate)).isDone)
    pair.peripheral.notify(Data([1]), of: indicated, now: pair.now)
    pair.collect()
    pair.loseFrames()
    #expect(pair.peripheral.nextDeadline() == .seconds(30))
    pair.advance(by: .seconds(30))
    #expect(pair.peripheralLog.contains { if case .terminate = $0 { true } else { false } })
  }

  /// Refused values are announced to be welcome again exactly once, when a frame has gone.
  @Test(arguments: [1, 2, 8])
  func fullQueuesRefuseAndAnnounceOnce(_ depth: Int) throws {
    var pair = try pair(queueDepth: depth)
    #expect(try pair.ask(.setNotify(pair.characteristic(SampleTable.pushes), .notify)).isDone)
    var taken = 0
    while pair.peripheral.canNotify(pushes) {
      pair.peripheral.notify(Data([UInt8(taken)]), of: pushes, now: pair.now)
      taken += 1
    }
    #expect(taken == depth)
    #expect(pair.peripheral.canNotify(pushes) == false)
    let ready = { (pair: HostPair) in
      pair.peripheralLog.filter { if case .readyToNotify = $0 { true } else { false } }.count
    }
    pair.collect()
    #expect(ready(pair) == 0)
    pair.run()
    #expect(ready(pair) == 1)
    #expect(notified(pair).count == depth)
    pair.peripheral.completed(1, now: pair.now)
    pair.run()
    #expect(ready(pair) == 1)
  }

  @Test func indicationsFillTheQueueSooner() throws {
    var pair = try pair(queueDepth: 8)
    #expect(try pair.ask(.setNotify(pair.characteristic(SampleTable.indicated), .indicate)).isDone)
    var taken = 0
    while pair.peripheral.canNotify(indicated), taken < 100 {
      pair.peripheral.notify(Data([UInt8(taken)]), of: indicated, now: pair.now)
      taken += 1
    }
    #expect((2...8).contains(taken))
    pair.run()
    #expect(notified(pair).count == taken)
    #expect(pair.peripheralLog.filter { if case .readyToNotify = $0 { true } else { false } }.count == 1)
  }

  @Test func changedServicesAreTold() throws {
    var pair = try pair()
    // No program asks for anything: the host subscribes.
    pair.advance(by: GATTClient.quietTime)
    var table = try SampleTable.make()
    let removed = table.remove(LocalServiceID(3), client: 9)
    let gone = try #require(removed)
    pair.peripheral.replaceTable(table, changed: gone, now: pair.now)
    pair.run()
    let changes = pair.centralLog.compactMap { output in
      if case .servicesChanged(let ranges) = output { ranges } else { nil }
    }
    #expect(changes == [[gone]])
    guard case .services(let services) = try pair.ask(.discoverServices([SampleTable.long])).get() else {
      throw Unexpected()
    }
    #expect(services.isEmpty)
  }

  /// Handles are not given out again: a client that has not heard of the change reaches nothing else.
  @Test func removedHandlesStayUnused() throws {
    var table = try SampleTable.make()
    let removed = table.remove(LocalServiceID(4), client: 9)
    let old = try #require(removed)
    let new = try table.add(SampleTable.services[3], client: 9)
    #expect(new.lowerBound > old.upperBound)
    #expect(table.attributes(in: old).isEmpty)
  }

  @Test func servicesThatCannotBeAreRefused() throws {
    var table = try SampleTable.make()
    #expect(throws: RadioError.self) { try table.add(SampleTable.services[0], client: 9) }
    for uuid in [GATTType.accessService, GATTType.attributeService] {
      let reserved = LocalService(id: LocalServiceID(50), uuid: uuid, isPrimary: true, characteristics: [])
      let error = #expect(throws: RadioError.self) { try table.add(reserved, client: 9) }
      #expect(error?.code == .uuidNotAllowed)
    }
    let orphan = LocalService(
      id: LocalServiceID(51), uuid: SampleTable.long, isPrimary: true, includedServices: [LocalServiceID(99)],
      characteristics: [])
    #expect(throws: RadioError.self) { try table.add(orphan, client: 9) }
  }
}
