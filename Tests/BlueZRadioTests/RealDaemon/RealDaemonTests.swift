import BlueZRadio
import DBus
import Foundation
import Radio
import RealStack
import Testing

/// What users of bluetoothd meet: other programs, restarts, devices that change, devices that never answer.
@Suite(
  "A central and a peripheral on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct RealDaemonTests {
  /// Runs a scenario and lets go of everything afterwards.
  private func scenario(_ body: (DaemonPair) async throws -> Void) async throws {
    let pair = try await DaemonPair()
    let result: Result<Void, any Error>
    do { result = .success(try await body(pair)) } catch { result = .failure(error) }
    await pair.end()
    try result.get()
  }

  // MARK: Other programs

  @Test(
    "Notifications that another program has: they work beside it, or one sentence says so, and soon",
    arguments: ["AcquireNotify", "StartNotify"])
  func sharedNotifications(_ member: String) async throws {
    try await scenario { pair in
      try await pair.publish([DaemonPair.service(DaemonPair.first, 1)])
      try await pair.connect()
      let pushes = try #require(try await pair.discover(DaemonPair.first).last)
      let path = try await pair.path(pushes.uuid)
      let options = DBusValue.dictionary(key: .string, value: .variant, [])
      let held = try await pair.bus.call(
        .call(
          destination: "org.bluez", path: path, interface: "org.bluez.GattCharacteristic1", member: member,
          body: member == "AcquireNotify" ? [options] : []))
      let start = ContinuousClock.now
      switch try await pair.ask(.setNotify(pushes, .notify)) {
      case .success:
        #expect(try pair.peripheral.notify(Data([7]), of: LocalCharacteristicID(3), to: nil))
        let value = try await pair.centralEvents.first { event in
          if case .notified(_, pushes.handle, let value) = event { value } else { nil }
        }
        #expect(value == Data([7]))
      case .failure(.radio(let error)):
        #expect(error.code == .noResources && error.message.contains("in use by another program"))
        #expect(ContinuousClock.now - start < .seconds(60))
      case .failure(let failure): Issue.record("another answer: \(failure)")
      }
      withExtendedLifetime(held) {}
      try await pair.disconnect()
    }
  }

  // MARK: The daemon's end

  enum Moment: String, CaseIterable { case idle, scanning, connected, writing }

  @Test(
    "A daemon that is started again: the state says so, and everything works as before",
    arguments: Moment.allCases)
  func restart(_ moment: Moment) async throws {
    try await scenario { pair in
      try await pair.publish([DaemonPair.service(DaemonPair.first, 1)])
      switch moment {
      case .idle: break
      case .scanning: pair.central.startScan(ScanFilter(services: [DaemonPair.first]))
      case .connected: try await pair.connect()
      case .writing:
        try await pair.connect()
        let commands = try await pair.discover(DaemonPair.first)[1].handle
        var count = 0
        while count < 10_000,
          pair.central.writeWithoutResponse(Data(count: 20), to: commands, of: try pair.peer) == .accepted
        {
          count += 1
        }
        #expect(count > 0)
      }
      try await Guest.restartDaemon()
      try await pair.expectState(.resetting)
      try await pair.expectState(.poweredOn)
      #expect(pair.central.attMTU(of: try pair.peer) == nil)
      try await pair.publish([DaemonPair.service(DaemonPair.first, 1)])
      if moment == .scanning {
        let peer = try pair.peer
        try await pair.advertising {
          pair.central.startScan(ScanFilter(services: [DaemonPair.first]))
          try await pair.centralEvents.first { event in
            if case .discovered(let sighting) = event, sighting.peer == peer { () } else { nil }
          }
        }
        pair.central.stopScan()
      }
      try await pair.connect()
      #expect(try await pair.works(DaemonPair.first, 1, Data(moment.rawValue.utf8)))
      try await pair.disconnect()
    }
  }

  // MARK: Devices that change

  @Test(
    "A device that comes back with other services shows these, and nothing is written to the old ones",
    arguments: [false, true])
  func changedServices(isBonded: Bool) async throws {
    try await scenario { pair in
      try await pair.publish([
        DaemonPair.service(DaemonPair.first, 10, isProtected: isBonded),
        DaemonPair.service(DaemonPair.second, 20),
      ])
      try await pair.connect()
      #expect(try await pair.works(DaemonPair.first, 10, Data([1])))
      #expect(try await pair.works(DaemonPair.second, 20, Data([2])))
      let before = try await pair.discover(DaemonPair.second).map(\.handle)
      try await pair.disconnect()
      try pair.peripheral.removeAllServices()
      try await pair.publish([
        DaemonPair.service(DaemonPair.first, 30, isProtected: isBonded),
        DaemonPair.service(DaemonPair.third, 40),
        DaemonPair.service(DaemonPair.second, 50),
      ])
      try await pair.connect()
      #expect(try await pair.works(DaemonPair.second, 50, Data([5])))
      #expect(try await pair.works(DaemonPair.third, 40, Data([4])))
      #expect(try await pair.works(DaemonPair.first, 30, Data([3])))
      #expect(try await pair.discover(DaemonPair.second).map(\.handle) != before)
      try await pair.disconnect()
    }
  }

  // MARK: Pairing

  @Test("A protected value is written after one pairing, which holds")
  func pairing() async throws {
    try await scenario { pair in
      try await pair.publish([DaemonPair.service(DaemonPair.first, 1, isProtected: true)])
      for round in 1...2 as ClosedRange<UInt8> {
        try await pair.connect()
        #expect(try await pair.works(DaemonPair.first, 1, Data([round])))
        #expect(try await pair.works(DaemonPair.first, 1, Data([round, round])))
        try await pair.disconnect()
      }
    }
  }

  @Test("A bond that one side has lost ends in success or in an error, never in silence", arguments: [0, 1])
  func lostBond(adapter: Int) async throws {
    try await scenario { pair in
      try await pair.publish([DaemonPair.service(DaemonPair.first, 1, isProtected: true)])
      try await pair.connect()
      #expect(try await pair.works(DaemonPair.first, 1, Data([1])))
      try await pair.disconnect()
      let address = Guest.address(of: 1 - adapter).replacing(":", with: "_")
      let path = try ObjectPath("/org/bluez/hci\(adapter)")
      try await DaemonPair.forget(path.appending("dev_\(address)"), of: path, pair.bus)
      try await pair.connect()
      let found: [RemoteCharacteristic]
      do { found = try await pair.discover(DaemonPair.first) } catch is GATTFailure {
        // The side that has no key has ended the link.
        #expect(pair.stored(1) == Data([1]))
        return
      }
      let handle = try #require(found.first?.handle)
      switch try await pair.ask(.write(handle, Data([2]))) {
      case .success: #expect(pair.stored(1) == Data([2]))
      case .failure(.att(let code)):
        #expect([.insufficientAuthentication, .insufficientEncryption].contains(code))
        #expect(pair.stored(1) == Data([1]))
      case .failure(.radio): #expect(pair.stored(1) == Data([1]))
      }
      pair.central.cancelConnection(try pair.peer)
    }
  }
}

/// Three adapters: a central and two devices, of which one never answers.
@Suite(
  "Several devices on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct SeveralDevicesTests {
  @Test("A connection that never comes does not stand in the way of another", arguments: [false, true])
  func pending(isKnown: Bool) async throws {
    let pair = try await DaemonPair()
    try await pair.publish([DaemonPair.service(DaemonPair.first, 1)])
    let absent = try #require(
      BlueZRadio.identifiers(ofAddress: Guest.address(of: 2)).map { PeerID($0) }.first)
    if isKnown {
      // The daemon has heard it before it was switched off.
      pair.central.startScan(ScanFilter())
      try await {
        let events = Arrivals<PeripheralEvent>()
        let radio = try BlueZRadio(adapter: "hci2")
        let device = radio.makePeripheral { events.put($0) }
        try await events.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
        device.startAdvertising(Advertisement(localName: "absent"))
        defer { device.stopAdvertising() }
        try await Guest.repeatingAdvertising(of: ["hci2"]) {
          try await pair.centralEvents.first { event in
            if case .discovered(let sighting) = event, sighting.peer == absent { () } else { nil }
          }
        }
      }()
      pair.central.stopScan()
    }
    try await Guest.setPowered("hci2", false)
    pair.central.connect(absent)
    try await pair.connect()
    #expect(try await pair.works(DaemonPair.first, 1, Data([1])))
    pair.central.cancelConnection(absent)
    let end = try await pair.centralEvents.first { event -> RadioError?? in
      switch event {
      case .disconnected(absent, let error, _): .some(error)
      case .connectionFailed(absent, let error): .some(error)
      default: nil
      }
    }
    #expect(end == .some(nil))
    #expect(try await pair.works(DaemonPair.first, 1, Data([2])))
    try await pair.disconnect()
    try await Guest.setPowered("hci2", true)
    await pair.end()
  }
}
