import Foundation
import Locking
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// From inside each callback by itself: every method that a program has, those that end things last.
@Suite(.timeLimit(.minutes(30))) struct CallsInCallbacksTests {
  /// Runs a body at the first line that begins with a word.
  final class Trap: Sendable {
    private let state: PosixMutex<(word: String, hits: Int)>
    private let body: @Sendable () -> Void

    init(_ word: String, _ body: @escaping @Sendable () -> Void) {
      state = PosixMutex((word, 0))
      self.body = body
    }

    var hits: Int { state.withLock { $0.hits } }

    func handle(_ line: String) {
      let isFirst = state.withLock { state in
        guard line.hasPrefix(state.word) else { return false }
        state.hits += 1
        return state.hits == 1
      }
      if isFirst { body() }
    }
  }

  enum CentralCallback: String, CaseIterable, Sendable {
    case state, discovered, connected, failed, disconnected, peerConnected, peerDisconnected, name, modified
    case rssi, services, included, characteristics, descriptors, value, wrote, notifying
    case descriptor = "descriptor "
    case wroteDescriptor = "wrote descriptor"
    case ready, channel
  }

  /// Answers like a device that does everything at once.
  static func answer(_ rig: CentralRig) -> FakeCentral.Script {
    { [peer = rig.peer, sighting = rig.sighting()] central, command in
      switch command {
      case .request(let request, let id):
        central.post(.completed(id, peer, .success(FakeDatabase.reply(to: request))))
      case .openChannel(let psm, let id):
        central.post(.completed(id, peer, .success(.channel(FakeChannel(psm: psm, peer: peer)))))
      case .startScan: central.post(sighting)
      case .write: central.post(.readyToWrite(peer))
      case .connect(let peer): central.post(.connected(peer, name: nil))
      case .cancel(let peer): central.post(.disconnected(peer, nil, at: .zero))
      case .watchLinks(let filter):
        guard filter != nil else { return }
        for isUp in [true, false] {
          central.post(.hostLinkChanged(KnownPeer(id: peer, name: nil), isUp: isUp))
        }
      case .stopScan: break
      }
    }
  }

  private static func callEverything(
    _ manager: CBCentralManager, _ peripheral: CBPeripheral, _ objects: FakeDatabase.Objects,
    _ recorder: CentralRecorder
  ) {
    _ = (manager.state, manager.authorization, CBCentralManager.authorization, manager.isScanning)
    _ = CBCentralManager.supports(.extendedScanAndConnect)
    manager.scanForPeripherals(
      withServices: [objects.service.uuid], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
    manager.stopScan()
    _ = manager.retrievePeripherals(withIdentifiers: [peripheral.identifier])
    _ = manager.retrieveConnectedPeripherals(withServices: [objects.service.uuid])
    manager.registerForConnectionEvents(options: [.peripheralUUIDs: [peripheral.identifier]])
    manager.registerForConnectionEvents(options: nil)
    manager.connect(peripheral, options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
    _ = (peripheral.name, peripheral.state, peripheral.services, peripheral.ancsAuthorized)
    _ = (peripheral.description, peripheral.copy(), peripheral.hash, peripheral.identifier)
    _ = peripheral.canSendWriteWithoutResponse
    for type in [CBCharacteristicWriteType.withResponse, .withoutResponse] {
      _ = peripheral.maximumWriteValueLength(for: type)
      for characteristic in [objects.data, objects.plain] {
        peripheral.writeValue(Data([1]), for: characteristic, type: type)
        peripheral.writeValue(Data(count: 600), for: characteristic, type: type)
      }
    }
    peripheral.readRSSI()
    peripheral.discoverServices(nil)
    peripheral.discoverServices([objects.service.uuid])
    peripheral.discoverIncludedServices(nil, for: objects.service)
    peripheral.discoverCharacteristics(nil, for: objects.service)
    peripheral.discoverDescriptors(for: objects.notifying)
    peripheral.readValue(for: objects.plain)
    for descriptor in objects.notifying.descriptors ?? [] {
      peripheral.readValue(for: descriptor)
      peripheral.writeValue(Data([1]), for: descriptor)
      _ = (descriptor.value, descriptor.characteristic, descriptor.uuid)
    }
    for enabled in [true, false] { peripheral.setNotifyValue(enabled, for: objects.notifying) }
    peripheral.openL2CAPChannel(0x80)
    _ = (objects.service.characteristics, objects.service.includedServices, objects.service.peripheral)
    _ = (objects.service.isPrimary, objects.service.uuid)
    for characteristic in [objects.notifying, objects.data] {
      _ = (
        characteristic.value, characteristic.isNotifying, characteristic.service, characteristic.properties
      )
      _ = characteristic.descriptors
    }
    for channel in recorder.openChannels {
      _ = (channel.peer, channel.psm)
      channel.inputStream.open()
      channel.outputStream.open()
      channel.outputStream.close()
      channel.inputStream.close()
    }
    recorder.letGo()
    manager.cancelPeripheralConnection(peripheral)
    manager.connect(
      peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 1])
    manager.cancelPeripheralConnection(peripheral)
    manager.connect(peripheral)
    peripheral.delegate = nil
    manager.delegate = nil
    _ = (peripheral.delegate, manager.delegate)
    manager.cancelPeripheralConnection(peripheral)
    manager.scanForPeripherals(withServices: nil)
    peripheral.delegate = recorder
    manager.delegate = recorder
  }

  /// Makes a callback happen.
  private func cause(
    _ callback: CentralCallback, _ rig: CentralRig, _ peripheral: CBPeripheral,
    _ objects: FakeDatabase.Objects
  ) async {
    switch callback {
    case .state: rig.central.set(.poweredOff)
    case .discovered: rig.manager.scanForPeripherals(withServices: nil)
    case .connected: rig.manager.connect(peripheral)
    case .failed:
      await rig.post(.disconnected(rig.peer, RadioError(.peerTerminated), at: .zero))
      rig.central.setScript(nil)
      rig.manager.connect(peripheral)
      rig.central.setScript(Self.answer(rig))
      rig.central.post(.connectionFailed(rig.peer, RadioError(.connectionFailed)))
    case .disconnected: rig.central.post(.disconnected(rig.peer, RadioError(.peerTerminated), at: .zero))
    case .peerConnected, .peerDisconnected:
      rig.manager.registerForConnectionEvents(options: [.peripheralUUIDs: [rig.peer.uuid]])
    case .name: rig.central.post(.nameChanged(rig.peer, "other"))
    case .modified: rig.central.post(.servicesChanged(rig.peer, [FakeDatabase.other.handles]))
    case .rssi: peripheral.readRSSI()
    case .services: peripheral.discoverServices(nil)
    case .included: peripheral.discoverIncludedServices(nil, for: objects.service)
    case .characteristics: peripheral.discoverCharacteristics(nil, for: objects.service)
    case .descriptors: peripheral.discoverDescriptors(for: objects.notifying)
    case .value: rig.central.post(.notified(rig.peer, 3, Data([1])))
    case .wrote: peripheral.writeValue(Data([1]), for: objects.data, type: .withResponse)
    case .notifying: peripheral.setNotifyValue(true, for: objects.notifying)
    case .descriptor, .wroteDescriptor:
      peripheral.discoverDescriptors(for: objects.notifying)
      await rig.drain()
      guard let descriptor = objects.notifying.descriptors?.last else { return }
      if callback == .descriptor {
        peripheral.readValue(for: descriptor)
      } else {
        peripheral.writeValue(Data([1]), for: descriptor)
      }
    case .ready: rig.central.post(.readyToWrite(rig.peer))
    case .channel: peripheral.openL2CAPChannel(0x80)
    }
  }

  @Test(arguments: CentralCallback.allCases, QueueKind.allCases)
  func centralsTakeAllCalls(in callback: CentralCallback, kind: QueueKind) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored()
    rig.central.setScript(Self.answer(rig))
    let trap = Trap(callback.rawValue) { [manager = rig.manager, recorder = rig.recorder] in
      Self.callEverything(manager, peripheral, objects, recorder)
    }
    rig.recorder.react { trap.handle($0) }
    await cause(callback, rig, peripheral, objects)
    await rig.drain()
    rig.recorder.react(nil)
    // A link that comes up or goes down while the calls are made leaves a few hops to be run.
    await rig.drain()
    #expect(trap.hits > 0)
    #expect(rig.recorder.watch.isClean)
    #expect(peripheral.state == .disconnected)
    #expect(rig.radio.counts.counts.activities == 0)
    rig.central.setScript(nil)
  }

  /// The disconnection method of programs that know of automatic reconnection.
  @Test(arguments: QueueKind.allCases, ["connected", "disconnected, connecting", "failed"])
  func reconnectionTakesAllCalls(kind: QueueKind, word: String) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored(
      options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    rig.central.setScript(Self.answer(rig))
    let trap = Trap(word) { [manager = rig.manager, recorder = rig.recorder] in
      Self.callEverything(manager, peripheral, objects, recorder)
    }
    recorder.react { line, _ in trap.handle(line) }
    if word == "failed" { rig.central.setScript(nil) }
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    if word == "failed" {
      rig.central.setScript(Self.answer(rig))
      await rig.post(.connectionFailed(rig.peer, RadioError(.unknownPeer)))
    }
    await rig.drain()
    #expect(trap.hits > 0)
    #expect(peripheral.state == .disconnected)
    #expect(rig.radio.counts.counts.activities == 0)
    rig.central.setScript(nil)
  }

  /// Before the state is known no command is accepted, but none does harm either.
  @Test(arguments: QueueKind.allCases)
  func restorationOfACentralTakesAllCalls(kind: QueueKind) async throws {
    let program = RestoringCentral()
    try await program.start(kind)
    _ = try await program.subscribed()
    program.stop()
    let hits = PosixMutex(0)
    try await program.start(kind) { [weak program] line in
      guard let program else { return }
      guard line.hasPrefix("restored"), let manager = program.recorder.manager,
        let (peripheral, objects) = try? program.restored()
      else { return }
      hits.withLock { $0 += 1 }
      Self.callEverything(manager, peripheral, objects, program.recorder)
    }
    #expect(hits.withLock { $0 } == 1)
    #expect(program.recorder.lines.all.last == "state poweredOn")
    #expect(program.recorder.watch.isClean)
  }
}
