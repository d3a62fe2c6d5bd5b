import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Faults on the air") struct AirFaultTests {
  private func rig(_ words: String, _ link: LinkParameters = LinkParameters()) throws -> AirRig {
    AirRig(link, faults: try FaultPlan(parsing: words))
  }

  private func numbered(_ count: Int) -> [Data] {
    (0..<count).map {
      Data(
        [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] + [UInt8](repeating: 1, count: 98)
      )
    }
  }

  @Test(arguments: [
    ("drop@5000", RadioError.Code.supervisionTimeout), ("hangup@5000", .peerTerminated),
    ("drop-in-frame@5000", .supervisionTimeout),
  ])
  func theLinkEndsWhereTheScriptSays(_ words: String, _ code: RadioError.Code) throws {
    let rig = try rig(words)
    let values = try rig.connectAndFind()
    try rig.pour(numbered(1_000), to: values.handle, within: .seconds(20))
    try rig.run(within: .seconds(20)) { rig.disconnection != nil }
    #expect(rig.disconnection?.error?.code == code)
    let arrived = rig.commands
    #expect(arrived.count >= 50 && arrived.count < 1_000)
    #expect(arrived == Array(numbered(1_000).prefix(arrived.count)))
    // Once is once: the next link holds.
    try rig.connect()
    try rig.pour(numbered(100), to: values.handle)
    try rig.runToRest()
    #expect(rig.commands.count == arrived.count + 100)
  }

  @Test func anOverflowDropsWriteCommandsWithoutAWord() throws {
    let rig = try rig("overflow@1000:7")
    let values = try rig.connectAndFind()
    try rig.pour(numbered(100), to: values.handle)
    try rig.runToRest()
    #expect(rig.commands.count == 93)
    #expect(Set(rig.commands).isSubset(of: Set(numbered(100))))
    #expect(rig.disconnection == nil)
  }

  @Test func aFrozenPeerAnswersLater() throws {
    let rig = try rig("freeze@100:5s")
    let values = try rig.connectAndFind()
    try rig.ask(.write(values.handle, Data(count: 50)))
    let start = rig.clock.now
    try rig.ask(.write(values.handle, Data(count: 50)))
    #expect(rig.clock.now - start > .seconds(4))
    #expect(rig.disconnection == nil)
  }

  @Test func aPeerFrozenForGoodEndsTheLinkByTheATTTimeout() throws {
    let rig = try rig("freeze@100")
    let values = try rig.connectAndFind()
    try rig.ask(.write(values.handle, Data(count: 50)))
    rig.central.request(.write(values.handle, Data(count: 50)), of: rig.peer, id: RequestID(999))
    let start = rig.clock.now
    try rig.run(within: .seconds(60)) { rig.disconnection != nil }
    #expect(rig.disconnection?.error?.code == .timeout)
    #expect(rig.clock.now - start >= .seconds(30))
  }

  @Test func aRebootLosesTheLinkAndTheServices() throws {
    let rig = try rig("reboot@5000:3s")
    let values = try rig.connectAndFind()
    try rig.pour(numbered(200), to: values.handle, within: .seconds(10))
    try rig.run(within: .seconds(10)) { rig.disconnection != nil }
    #expect(rig.disconnection?.error?.code == .supervisionTimeout)
    try rig.run(within: .seconds(10)) { rig.peripheral.adapterState == .poweredOn }
    let states = rig.peripheralEvents.all.compactMap { event in
      if case .adapterStateChanged(let state) = event { state } else { nil }
    }
    #expect(states == [.poweredOn, .resetting, .poweredOn])
    // Nothing is advertised until the device's program has started again.
    rig.central.connect(rig.peer)
    try rig.runToRest()
    #expect(rig.central.attMTU(of: rig.peer) == nil)
    rig.publish()
    try rig.run(within: .seconds(10)) { rig.central.attMTU(of: rig.peer) != nil }
    #expect(try rig.find(0xFFF1).properties.contains(.writeWithoutResponse))
  }

  @Test func aLateSignalHoldsTheWriterBackThatLong() throws {
    let rig = try rig("late-ready@0:2s", LinkParameters(queueDepth: 4))
    let values = try rig.connectAndFind()
    try rig.runToRest()
    let start = rig.clock.now
    while rig.central.writeWithoutResponse(Data([1]), to: values.handle, of: rig.peer) == .accepted {}
    let ready = { rig.count { if case .readyToWrite = $0 { true } else { false } } }
    try rig.run(within: .milliseconds(1_900)) { ready() > 0 }
    #expect(ready() == 0)
    #expect(rig.central.writeWithoutResponse(Data([1]), to: values.handle, of: rig.peer) == .notReady)
    try rig.run(within: .seconds(2)) { ready() > 0 }
    #expect(ready() == 1)
    #expect(rig.clock.now - start >= .seconds(2))
    #expect(rig.central.canWriteWithoutResponse(to: rig.peer))
  }

  /// The signal is lost, but what can be asked tells the truth, and the next signal comes.
  @Test func aLostSignalLeavesTheTruthToBeAsked() throws {
    let rig = try rig("lost-ready@0", LinkParameters(queueDepth: 4))
    let values = try rig.connectAndFind()
    try rig.runToRest()
    let ready = { rig.count { if case .readyToWrite = $0 { true } else { false } } }
    while rig.central.writeWithoutResponse(Data([1]), to: values.handle, of: rig.peer) == .accepted {}
    try rig.runToRest()
    #expect(ready() == 0)
    #expect(rig.central.canWriteWithoutResponse(to: rig.peer))
    while rig.central.writeWithoutResponse(Data([1]), to: values.handle, of: rig.peer) == .accepted {}
    try rig.runToRest()
    #expect(ready() == 1)
    #expect(rig.commands.count == 8)
  }

  /// A fresh link that takes nothing for a while; its end is told, or can only be asked.
  @Test(arguments: [true, false])
  func aLinkMayTakeNothingAtFirst(_ isAnnounced: Bool) throws {
    let rig = try rig("")
    rig.air.setStartHold(.seconds(2), isAnnounced: isAnnounced, of: rig.phone)
    let values = try rig.connectAndFind()
    let ready = { rig.count { if case .readyToWrite = $0 { true } else { false } } }
    #expect(!rig.central.canWriteWithoutResponse(to: rig.peer))
    #expect(rig.central.writeWithoutResponse(Data([1]), to: values.handle, of: rig.peer) == .notReady)
    try rig.run(within: .seconds(1)) { ready() > 0 }
    #expect(!rig.central.canWriteWithoutResponse(to: rig.peer))
    try rig.runToRest()
    #expect(ready() == (isAnnounced ? 1 : 0))
    #expect(rig.central.canWriteWithoutResponse(to: rig.peer))
    #expect(rig.central.writeWithoutResponse(Data([1]), to: values.handle, of: rig.peer) == .accepted)
  }

  @Test func notificationsAreLostOnTheWayToTheProgram() throws {
    let rig = try rig("lose-notify@0:2")
    let pushes = try rig.connectAndFind(0xFFF2)
    try rig.ask(.setNotify(pushes, .notify))
    // Octets are counted at the device: the script begins with the first that arrive.
    try rig.ask(.write(try rig.find(0xFFF1).handle, Data([1])))
    for number in 0..<5 as Range<UInt8> {
      #expect(rig.peripheral.notify(Data([number]), of: AirRig.pushes, to: nil))
    }
    try rig.runToRest()
    let arrived = rig.centralEvents.all.compactMap { event in
      if case .notified(_, _, let value) = event { value } else { nil }
    }
    #expect(arrived == [Data([2]), Data([3]), Data([4])])
  }

  @Test func theMTUChangesOnBothSides() throws {
    let rig = try rig("mtu@1000=60")
    let values = try rig.connectAndFind()
    try rig.pour(numbered(20), to: values.handle)
    try rig.runToRest()
    #expect(rig.central.attMTU(of: rig.peer) == 60)
    #expect(rig.peripheral.attMTU(of: rig.phone.peerID) == 60)
    #expect(
      rig.centralEvents.all.contains { if case .mtuChanged(_, 60) = $0 { true } else { false } })
    #expect(
      rig.central.writeWithoutResponse(Data(count: 58), to: values.handle, of: rig.peer)
        == .tooLong(limit: 57))
  }

  /// Every few bytes the link ends, until all of it is across: nothing is doubled or reordered within a link.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func randomDropsNeverMixValuesUp(_ seed: UInt64) throws {
    let rig = try rig("drop~0.02,overflow~0.05,seed=\(seed)")
    let values = try rig.connectAndFind()
    for _ in 0..<10 {
      let start = rig.commands.count
      try rig.pour(numbered(200), to: values.handle, within: .seconds(5))
      try rig.run(within: .seconds(5)) { rig.central.attMTU(of: rig.peer) == nil }
      let numbers = rig.commands.dropFirst(start).map { Int($0[0]) | Int($0[1]) << 8 }
      #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
      if rig.central.attMTU(of: rig.peer) == nil { try rig.connect() }
    }
  }
}
