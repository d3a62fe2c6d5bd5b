import CoreBluetooth
import Foundation
import Locking
import Radio
import Testing
import VirtualRadio

/// Notifications over a simulated link: how long they may be, and what becomes of them where the queue is full.
@Suite(.timeLimit(.minutes(30))) struct NotificationLinkTests {
  private static func value(_ number: Int, _ length: Int) -> Data {
    Data((0..<length).map { UInt8(truncatingIfNeeded: $0 == 0 ? number : $0 == 1 ? number >> 8 : $0 &* 7) })
  }

  private static func number(_ value: Data) -> Int { Int(value[0]) | Int(value[1]) << 8 }

  private final class Received: Sendable {
    private let values = PosixMutex<[Data]>([])
    var all: [Data] { values.withLock { $0 } }

    init(_ rig: AirRig, _ characteristic: CBCharacteristic) {
      rig.phone.react { [weak self] line in
        guard let self else { return }
        if line.hasPrefix("value"), let value = characteristic.value { values.withLock { $0.append(value) } }
      }
    }
  }

  /// The limit is that of the link, not of the device.
  @Test(arguments: [(517, 185, 182), (185, 517, 182), (517, 517, 512), (517, 23, 20), (247, 247, 244)])
  func valuesOfTheStatedLengthArriveWhole(deviceMTU: Int, phoneMTU: Int, limit: Int) throws {
    let rig = AirRig(
      link: LinkParameters(attMTU: deviceMTU), phoneLink: LinkParameters(attMTU: phoneMTU))
    let (peripheral, _, updates, _) = try rig.explored()
    peripheral.setNotifyValue(true, for: updates)
    try rig.run { updates.isNotifying }
    let central = try #require(rig.device.updates.subscribedCentrals?.first)
    #expect(central.maximumUpdateValueLength == limit)
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == limit)
    let received = Received(rig, updates)
    for length in [2, limit - 1, limit, limit + 1] {
      #expect(
        rig.device.manager.updateValue(
          Self.value(length, length), for: rig.device.updates, onSubscribedCentrals: [central]))
    }
    try rig.run { received.all.count == 4 }
    #expect(received.all.map(\.count) == [2, limit - 1, limit, limit])
    #expect(received.all[2] == Self.value(limit, limit))
    rig.central.cancelPeripheralConnection(peripheral)
    try rig.run { rig.device.updates.subscribedCentrals == [] }
    #expect(central.maximumUpdateValueLength == 20)
  }

  /// However short the queue and however late the program, what was taken arrives once and in order, and each refusal is followed by a signal.
  @Test(arguments: [1, 2, 20], [Duration.zero, .milliseconds(200)])
  func nothingThatWasTakenIsLost(depth: Int, lateness: Duration) throws {
    let rig = AirRig(link: LinkParameters(attMTU: 185, queueDepth: depth))
    let (peripheral, _, updates, _) = try rig.explored()
    peripheral.setNotifyValue(true, for: updates)
    try rig.run { updates.isNotifying }
    let received = Received(rig, updates)
    // The answer to the subscription has left the queue.
    try rig.clock.run(for: .seconds(1))
    let pump = Pump(rig, total: 1000)
    // Five at once, of which some do not fit.
    let taken = (0..<5).prefix { _ in pump.pushOne() }.count
    #expect(taken == min(depth, 5))
    let (clock, queue) = (rig.clock, rig.device.queue)
    rig.device.recorder.react { [weak device = rig.device] line in
      guard let device else { return }
      guard line == "ready" else { return }
      pump.noteSignal()
      if lateness == .zero { return pump.push() }
      _ = clock.schedule(after: lateness) { clock.async(on: queue) { pump.push() } }
      withExtendedLifetime(device) {}
    }
    if taken == 5 { pump.push() }
    try rig.run(within: .seconds(3600)) { received.all.count == 1000 && pump.refusals == pump.signals }
    #expect(received.all.map(Self.number) == Array(0..<1000))
    #expect(pump.refusals > 0)
  }

  /// Sends numbered values until it is refused.
  private final class Pump: Sendable {
    private let state = PosixMutex((next: 0, refusals: 0, signals: 0))
    private let manager: CBPeripheralManager
    private let characteristic: CBMutableCharacteristic
    private let total: Int

    init(_ rig: AirRig, total: Int) {
      manager = rig.device.manager
      characteristic = rig.device.updates
      self.total = total
    }

    var refusals: Int { state.withLock(\.refusals) }
    var signals: Int { state.withLock(\.signals) }

    func noteSignal() { state.withLock { $0.signals += 1 } }

    func pushOne() -> Bool {
      state.withLock { state in
        guard state.next < total else { return false }
        let value = NotificationLinkTests.value(state.next, 100)
        let isTaken = manager.updateValue(value, for: characteristic, onSubscribedCentrals: nil)
        if isTaken { state.next += 1 } else { state.refusals += 1 }
        return isTaken
      }
    }

    func push() { while pushOne() {} }
  }
}
