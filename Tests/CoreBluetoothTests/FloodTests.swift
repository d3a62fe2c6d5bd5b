import Foundation
import Radio
import Testing

@testable import CoreBluetooth

/// Programs whose queue is busy while the other side goes on.
@Suite(.timeLimit(.minutes(30))) struct FloodTests {
  /// Queues that a test can hold up.
  private static let queues: [QueueKind] = [.serial, .concurrent]

  private static func value(_ number: Int) -> Data { Data([UInt8(number & 0xFF), UInt8(number >> 8)]) }

  @Test(arguments: queues) func notificationsWaitForTheirProgram(kind: QueueKind) async throws {
    let rig = try await CentralRig(kind)
    _ = try await rig.explored()
    rig.queue.queue.suspend()
    for i in 0..<500 { rig.central.post(.notified(rig.peer, 3, Self.value(i))) }
    rig.queue.queue.resume()
    await rig.drain()
    #expect(rig.recorder.lines.all == (0..<500).map { "value \($0 & 0xFF),\($0 >> 8)" })
    #expect(rig.recorder.watch.isClean)
  }

  /// Beyond what may wait, the program learns that something is missing, after everything that is not.
  @Test func aFloodOfNotificationsEndsTheLink() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    let most = CentralIntakeRules.mostNotifications
    rig.queue.queue.suspend()
    for i in 0..<most + 1000 { rig.central.post(.notified(rig.peer, 3, Self.value(i))) }
    rig.queue.queue.resume()
    await rig.drain()
    #expect(rig.recorder.lines.take() == (0..<most).map { "value \($0 & 0xFF),\($0 >> 8)" })
    #expect(rig.central.takeCommands() == [.cancel(rig.peer)])
    peripheral.readValue(for: objects.plain)
    // What still comes before the link has ended would hide the gap.
    await rig.post(.notified(rig.peer, 3, Self.value(0)), .disconnected(rig.peer, nil, at: .zero))
    #expect(rig.recorder.lines.take() == ["disconnected, disconnected link error 4"])
    #expect(rig.central.commands == [])
    #expect(rig.log.all.filter { $0.contains("its link ends") }.count == 1)
    // The next link is a link like any other.
    rig.manager.connect(peripheral)
    await rig.post(.connected(rig.peer, name: nil))
    rig.central.setScript(FakeDatabase.script(rig.peer))
    peripheral.discoverServices(nil)
    await rig.drain()
    let service = try #require(peripheral.services?.first)
    peripheral.discoverCharacteristics(nil, for: service)
    await rig.drain()
    _ = rig.recorder.lines.take()
    await rig.post(.notified(rig.peer, 3, Self.value(7)))
    #expect(rig.recorder.lines.all == ["value 7,0"])
  }

  @Test func aFloodIsALossForAutomaticReconnection() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected(options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    rig.queue.queue.suspend()
    for _ in 0...CentralIntakeRules.mostNotifications { rig.central.post(.notified(rig.peer, 3, Data())) }
    rig.queue.queue.resume()
    await rig.drain()
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(recorder.lines.all == ["disconnected, connecting, reconnecting error 4"])
    #expect(peripheral.state == .connecting)
  }

  @Test func sightingsThatDoNotFitAreLeftOut() async throws {
    let rig = try await CentralRig(holds: false)
    rig.manager.scanForPeripherals(withServices: nil)
    for _ in 0..<2 {
      rig.queue.queue.suspend()
      for _ in 0..<CentralIntakeRules.mostSightings + 100 { rig.central.post(rig.sighting()) }
      rig.queue.queue.resume()
      await rig.drain()
      let count = rig.recorder.lines.take().filter { $0.hasPrefix("discovered") }.count
      #expect(count == CentralIntakeRules.mostSightings)
    }
  }

  /// A radio tells of a device once a scan; one that was left out would never be heard of.
  @Test(arguments: [false, true])
  func aScanBeginsAnewWhereSightingsWereLeftOut(allowsDuplicates: Bool) async throws {
    let rig = try await CentralRig(holds: false)
    rig.manager.scanForPeripherals(
      withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: allowsDuplicates])
    let scan = FakeCentral.Command.startScan(ScanFilter(allowDuplicates: allowsDuplicates))
    #expect(rig.central.takeCommands() == [scan])
    let most = CentralIntakeRules.mostSightings
    for (surplus, isOn) in [(0, true), (100, true), (100, true), (100, false)] {
      rig.queue.queue.suspend()
      for _ in 0..<most + surplus { rig.central.post(rig.sighting()) }
      if !isOn { rig.manager.stopScan() }
      rig.queue.queue.resume()
      await rig.drain()
      let again = surplus > 0 && isOn && !allowsDuplicates
      #expect(rig.central.takeCommands() == (isOn ? again ? [scan] : [] : [.stopScan]))
    }
  }

  /// The program does not know of the link, and is not told of its end.
  @Test func aFloodDuringTheComparisonEndsTheLinkToo() async throws {
    let rig = try await CentralRig()
    let (peripheral, _) = try await rig.explored(options: [
      CBConnectPeripheralOptionEnableAutoReconnect: true
    ])
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    await rig.post(.connected(rig.peer, name: nil))
    try #require(rig.takeRequests().count == 1)
    rig.queue.queue.suspend()
    for _ in 0...CentralIntakeRules.mostNotifications { rig.central.post(.notified(rig.peer, 3, Data())) }
    rig.queue.queue.resume()
    await rig.drain()
    #expect(rig.central.takeCommands() == [.cancel(rig.peer)])
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(rig.central.takeCommands() == [.connect(rig.peer)])
    #expect(recorder.lines.all == ["disconnected, connecting, reconnecting error 6"])
    rig.central.setScript(FakeDatabase.script(rig.peer))
    await rig.post(.connected(rig.peer, name: nil))
    #expect(peripheral.state == .connected)
    // Its end is no longer the flood's.
    rig.manager.cancelPeripheralConnection(peripheral)
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(recorder.lines.all.last == "disconnected, disconnected, for good")
  }

  @Test func channelsThatDoNotFitEnd() async throws {
    final class Channels: @unchecked Sendable {
      // Changed by one thread.
      var all: [Weakly] = []
      struct Weakly { weak var channel: FakeChannel? }
    }
    let rig = try await PeripheralRig()
    let most = PeripheralIntakeRules.mostChannels
    for _ in 0..<2 {
      let channels = Channels()
      rig.queue.queue.suspend()
      for _ in 0..<most + 10 {
        let channel = FakeChannel(psm: 0x80, peer: rig.central)
        channels.all.append(Channels.Weakly(channel: channel))
        rig.peripheral.post(.channelOpened(central: rig.central, 0x80, channel))
      }
      #expect(channels.all.map { $0.channel != nil } == (0..<most + 10).map { $0 < most })
      rig.queue.queue.resume()
      await rig.drain()
      #expect(rig.recorder.lines.take() == Array(repeating: "channel 128", count: most))
      rig.recorder.letGo()
    }
  }

  @Test func writesWithoutResponseThatDoNotFitAreDroppedWithAWord() async throws {
    let rig = try await PeripheralRig()
    let local = try await rig.add(LocalExample().service)
    let data = local.characteristics[0].id
    let most = PeripheralIntakeRules.mostCommands
    rig.queue.queue.suspend()
    for i in 0..<most + 100 {
      let write = ServerWrite(characteristic: data, offset: 0, value: Data([1]))
      rig.peripheral.post(
        .write(ServerRequestID(UInt64(i)), central: rig.central, [write], needsResponse: false))
    }
    let write = ServerWrite(characteristic: data, offset: 0, value: Data([1, 2]))
    rig.peripheral.post(.write(ServerRequestID(0), central: rig.central, [write], needsResponse: true))
    rig.queue.queue.resume()
    await rig.drain()
    let lines = rig.recorder.lines.all
    #expect(lines.count == most + 1)
    #expect(lines.last == "write AA01+0:2")
    #expect(rig.log.all.filter { $0.contains("were dropped") }.count == 1)
  }

  /// The rules by themselves, for several devices at once.
  @Test func eachDeviceHasItsOwnRoom() {
    let (loud, quiet) = (PeerID(UUID()), PeerID(UUID()))
    var rules = CentralIntakeRules()
    func take(_ event: CentralEvent) -> CentralIntakeRules.Admission { rules.take(event) }
    for _ in 0..<CentralIntakeRules.mostNotifications { _ = take(.notified(loud, 3, Data())) }
    #expect(take(.notified(loud, 3, Data())) == .overrun(loud))
    #expect(take(.notified(loud, 3, Data())) == .dropped)
    #expect(take(.notified(quiet, 3, Data())) == .taken)
    #expect(take(.readyToWrite(loud)) == .taken)
    // Room alone does not close the gap; the end of the link does.
    rules.handled(.notified(loud, 3, Data()))
    #expect(take(.notified(loud, 3, Data())) == .dropped)
    #expect(take(.disconnected(loud, nil, at: .zero)) == .taken)
    #expect(take(.notified(loud, 3, Data())) == .taken)
    #expect(take(.notified(loud, 3, Data())) == .overrun(loud))
    #expect(take(.adapterStateChanged(.poweredOff)) == .taken)
    rules.handled(.notified(loud, 3, Data()))
    #expect(take(.notified(loud, 3, Data())) == .taken)
  }
}
