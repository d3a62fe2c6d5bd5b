import CoreBluetooth
import Radio
import Testing

/// Subscribers, and values that are pushed to them.
@Suite(.timeLimit(.minutes(30))) struct UpdateTests {
  @Test func knowsItsSubscribers() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    let id = local.characteristics[1].id
    let second = PeerID(UUID())
    #expect(example.updates.subscribedCentrals == [])
    await rig.post(
      .subscribed(central: rig.central, id), .subscribed(central: second, id),
      .subscribed(central: second, id), .unsubscribed(central: PeerID(UUID()), id))
    #expect(example.updates.subscribedCentrals?.map(\.identifier) == [rig.central.uuid, second.uuid])
    await rig.post(.unsubscribed(central: rig.central, id))
    #expect(example.updates.subscribedCentrals?.map(\.identifier) == [second.uuid])
    #expect(rig.recorder.lines.all == ["subscribed AA02", "subscribed AA02", "unsubscribed AA02"])
    let central = try #require(example.updates.subscribedCentrals?.first)
    for (mtu, limit) in [(23, 20), (185, 182), (517, 512)] {
      rig.peripheral.setMTU(mtu)
      #expect(central.maximumUpdateValueLength == limit)
    }
    rig.peripheral.setMTU(nil)
    #expect(central.maximumUpdateValueLength == 20)
    rig.manager.remove(example.service)
    #expect(example.updates.subscribedCentrals == [])
  }

  @Test func updatesUntilTheQueueIsFull() async throws {
    let rig = try await PeripheralRig()
    let example = LocalExample()
    let local = try await rig.add(example.service)
    let id = local.characteristics[1].id
    await rig.post(.subscribed(central: rig.central, id))
    let central = try #require(example.updates.subscribedCentrals?.first)
    #expect(rig.manager.updateValue(Data([1]), for: example.updates, onSubscribedCentrals: nil))
    #expect(rig.manager.updateValue(Data([2]), for: example.updates, onSubscribedCentrals: [central]))
    rig.peripheral.setRoom(false)
    #expect(!rig.manager.updateValue(Data([3]), for: example.updates, onSubscribedCentrals: nil))
    rig.peripheral.setRoom(true)
    await rig.post(.readyToNotify)
    #expect(rig.recorder.lines.all.last == "ready")
    #expect(
      rig.peripheral.commands == [.notify(Data([1]), id, nil), .notify(Data([2]), id, [rig.central])])
    let stranger = CBMutableCharacteristic(
      type: CBUUID(string: "AA02"), properties: .notify, value: nil, permissions: [])
    #expect(!rig.manager.updateValue(Data(), for: stranger, onSubscribedCentrals: nil))
    #expect(rig.log.all.count == 1)
  }
}
