import CoreBluetooth
import Locking
import Radio
import Testing
import VirtualRadio

@Suite(.timeLimit(.minutes(30))) struct ConnectionTests {
  @Test(arguments: QueueKind.allCases)
  func goesThroughItsStates(kind: QueueKind) async throws {
    let rig = try await CentralRig(kind)
    let peripheral = try await rig.discovered()
    #expect(peripheral.state == .disconnected)
    rig.manager.connect(peripheral)
    #expect(peripheral.state == .connecting)
    await rig.post(.connected(rig.peer, name: "device"))
    #expect(peripheral.state == .connected)
    #expect(peripheral.name == "device")
    rig.manager.cancelPeripheralConnection(peripheral)
    #expect(peripheral.state == .disconnecting)
    await rig.post(.disconnected(rig.peer, nil, at: .seconds(99)))
    #expect(peripheral.state == .disconnected)
    #expect(
      rig.recorder.lines.all.suffix(2) == ["connected, connected", "disconnected, disconnected"])
    #expect(rig.central.commands.suffix(2) == [.connect(rig.peer), .cancel(rig.peer)])
    #expect(rig.recorder.watch.isClean)
  }

  @Test func cancelsAPendingConnection() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    rig.manager.connect(peripheral)
    rig.manager.cancelPeripheralConnection(peripheral)
    rig.manager.cancelPeripheralConnection(peripheral)
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(rig.recorder.lines.all.last == "disconnected, disconnected")
    #expect(rig.recorder.lines.all.filter { $0.hasPrefix("disconnected") }.count == 1)
    #expect(rig.central.commands.filter { $0 == .cancel(rig.peer) }.count == 1)
  }

  @Test func cancelsNothingWhereNothingIs() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    _ = rig.recorder.lines.take()
    rig.manager.cancelPeripheralConnection(peripheral)
    await rig.drain()
    #expect(rig.recorder.lines.all == [])
    #expect(peripheral.state == .disconnected)
  }

  /// What the radio had posted before it heard of the cancellation.
  @Test(arguments: [
    ("link came up", "disconnected, disconnected"),
    ("link was lost", "disconnected, disconnected link error 6"),
    ("connection failed", "disconnected, disconnected"),
  ])
  func cancelsWhileAnEventIsOnItsWay(what: String, told: String) async throws {
    let rig = try await CentralRig()
    let peripheral = what == "link was lost" ? try await rig.connected() : try await rig.discovered()
    if what != "link was lost" { rig.manager.connect(peripheral) }
    _ = rig.recorder.lines.take()
    rig.queue.queue.suspend()
    switch what {
    case "link came up": rig.central.post(.connected(rig.peer, name: nil))
    case "link was lost":
      rig.central.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    default: rig.central.post(.connectionFailed(rig.peer, RadioError(.connectionFailed)))
    }
    rig.manager.cancelPeripheralConnection(peripheral)
    rig.queue.queue.resume()
    await rig.drain()
    if what == "link came up" {
      #expect(rig.recorder.lines.all == [])
      await rig.post(.disconnected(rig.peer, nil, at: .zero))
    }
    #expect(rig.recorder.lines.all == [told])
    #expect(peripheral.state == .disconnected)
  }

  @Test func connectsAgainAfterTheOldLinkHasEnded() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected()
    _ = rig.central.takeCommands()
    rig.manager.cancelPeripheralConnection(peripheral)
    rig.manager.connect(peripheral)
    #expect(peripheral.state == .connecting)
    #expect(rig.central.commands == [.cancel(rig.peer)])
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(rig.central.commands == [.cancel(rig.peer), .connect(rig.peer)])
    #expect(rig.recorder.lines.all.last == "disconnected, connecting")
    await rig.post(.connected(rig.peer, name: nil))
    #expect(rig.recorder.lines.all.last == "connected, connected")
  }

  @Test func tellsAgainWhereTheLinkIsUp() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected()
    _ = rig.recorder.lines.take()
    rig.manager.connect(peripheral)
    #expect(peripheral.state == .connected)
    await rig.drain()
    #expect(rig.recorder.lines.all == ["connected, connected"])
  }

  @Test(arguments: [
    (RadioError.Code.supervisionTimeout, 6), (.peerTerminated, 7), (.connectionFailed, 10),
  ])
  func reportsWhyALinkEnded(code: RadioError.Code, number: Int) async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    peripheral.readValue(for: objects.plain)
    let request = try #require(rig.takeRequests().first)
    await rig.post(
      .disconnected(rig.peer, RadioError(code), at: .zero),
      .completed(request, rig.peer, .success(.value(Data([1])))), .notified(rig.peer, 3, Data([1])),
      .readyToWrite(rig.peer))
    #expect(rig.recorder.lines.all == ["disconnected, disconnected link error \(number)"])
    #expect(peripheral.services == nil)
  }

  @Test func reportsAFailedConnection() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    rig.manager.connect(peripheral)
    await rig.post(.connectionFailed(rig.peer, RadioError(.connectionLimit)))
    #expect(rig.recorder.lines.all.last == "failed, disconnected link error 11")
    rig.manager.connect(peripheral)
    #expect(peripheral.state == .connecting)
  }

  @Test func refusesTheObjectOfAnotherManager() async throws {
    let rig = try await CentralRig()
    let other = try await CentralRig()
    let foreign = try await other.discovered()
    _ = rig.central.takeCommands()
    rig.manager.connect(foreign)
    rig.manager.cancelPeripheralConnection(foreign)
    #expect(rig.central.commands == [])
    #expect(foreign.state == .disconnected)
    #expect(rig.log.all.filter { $0.contains("does not know that peripheral") }.count == 2)
  }

  /// A device that never answers keeps no other from being connected to.
  @Test(arguments: [false, true]) func aPendingConnectionHoldsNobodyUp(cancelsFirst: Bool) throws {
    let rig = AirRig()
    let absentRadio = rig.air.makeRadio(name: "absent")
    let absentDevice = absentRadio.makePeripheral { _ in }
    absentDevice.startAdvertising(Advertisement(localName: "absent"))
    try rig.run {
      rig.device.recorder.lines.all.contains("advertising true") && rig.central.state == .poweredOn
    }
    rig.central.scanForPeripherals(withServices: nil)
    try rig.run { rig.phone.peripherals.count == 2 }
    rig.central.stopScan()
    rig.air.setInReach(false, of: absentRadio)
    let absent = try #require(rig.phone.peripherals.first { $0.name == "absent" })
    let present = try #require(rig.phone.peripherals.first { $0.name == "device" })
    _ = rig.phone.lines.take()
    rig.central.connect(absent)
    try rig.clock.run(for: .milliseconds(100))
    rig.central.connect(present)
    if cancelsFirst { rig.central.cancelPeripheralConnection(absent) }
    try rig.clock.run(for: .seconds(3600))
    #expect(present.state == .connected)
    #expect(absent.state == (cancelsFirst ? .disconnected : .connecting))
    if !cancelsFirst { rig.central.cancelPeripheralConnection(absent) }
    try rig.clock.run(for: .seconds(3600))
    let expected = ["connected, connected", "disconnected, disconnected"]
    #expect(rig.phone.lines.all == (cancelsFirst ? expected.reversed() : expected))
    #expect(absent.state == .disconnected)
    #expect(present.state == .connected)
    // Nor is it connected to later.
    rig.air.setInReach(true, of: absentRadio)
    try rig.clock.run(for: .seconds(60))
    #expect(rig.phone.lines.all.count == 2)
  }

  // MARK: The two methods that tell of a disconnection

  private final class Told: Sendable {
    let lines = Lines()
    let time = PosixMutex<CFAbsoluteTime?>(nil)
  }

  private class Base: NSObject, @unchecked Sendable {
    let told = Told()
    func centralManagerDidUpdateState(_ central: CBCentralManager) {}
  }

  private final class Legacy: Base, CBCentralManagerDelegate, @unchecked Sendable {
    func centralManager(
      _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) { told.lines.append("legacy") }
  }

  private final class Modern: Base, CBCentralManagerDelegate, @unchecked Sendable {
    func centralManager(
      _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral,
      timestamp: CFAbsoluteTime, isReconnecting: Bool, error: (any Error)?
    ) {
      told.lines.append("modern \(isReconnecting)")
      told.time.withLock { $0 = timestamp }
    }
  }

  private final class Both: Base, CBCentralManagerDelegate, @unchecked Sendable {
    func centralManager(
      _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) { told.lines.append("legacy") }

    func centralManager(
      _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral,
      timestamp: CFAbsoluteTime, isReconnecting: Bool, error: (any Error)?
    ) { told.lines.append("modern") }
  }

  private final class Neither: Base, CBCentralManagerDelegate, @unchecked Sendable {}

  @Test(arguments: [
    ("legacy", ["legacy"]), ("modern", ["modern false"]), ("both", ["legacy"]), ("neither", []),
  ])
  func callsOneOfTheTwo(which: String, expected: [String]) async throws {
    let rig = try await CentralRig()
    let delegate: any Base & CBCentralManagerDelegate =
      switch which {
      case "legacy": Legacy()
      case "modern": Modern()
      case "both": Both()
      default: Neither()
      }
    _ = try await rig.connected()
    rig.manager.delegate = delegate
    rig.radio.counts.now = .seconds(200)
    let before = CFAbsoluteTimeGetCurrent()
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .seconds(196)))
    let after = CFAbsoluteTimeGetCurrent()
    #expect(delegate.told.lines.all == expected)
    if let time = delegate.told.time.withLock({ $0 }) {
      // Four seconds ago on the radio's clock.
      #expect((before - 0.001...after + 0.001).contains(time + 4))
    }
  }
}
