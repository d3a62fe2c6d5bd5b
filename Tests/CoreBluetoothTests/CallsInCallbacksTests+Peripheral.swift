import Foundation
import Locking
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

extension CallsInCallbacksTests {
  enum PeripheralCallback: String, CaseIterable, Sendable {
    case state, advertising, added, subscribed, unsubscribed, read, write, ready, published, unpublished
    case channel
  }

  private static func callEverything(
    _ manager: CBPeripheralManager, _ example: LocalExample, _ recorder: PeripheralRecorder
  ) {
    _ = (manager.state, manager.isAdvertising, manager.authorization)
    let request = recorder.requests.last
    if let request {
      _ = (request.central, request.characteristic, request.offset, request.value)
      request.value = Data([1])
      for _ in 0..<2 { manager.respond(to: request, withResult: .success) }
    }
    manager.stopAdvertising()
    manager.startAdvertising(nil)
    manager.startAdvertising([CBAdvertisementDataLocalNameKey: "again"])
    let extra = CBMutableService(type: CBUUID(string: "4321"), primary: true)
    extra.characteristics = [
      CBMutableCharacteristic(
        type: CBUUID(string: "4322"), properties: .read, value: Data([1]), permissions: .readable)
    ]
    manager.add(extra)
    for centrals in [nil, example.updates.subscribedCentrals] {
      _ = manager.updateValue(Data([1]), for: example.updates, onSubscribedCentrals: centrals)
    }
    for central in example.updates.subscribedCentrals ?? [] {
      manager.setDesiredConnectionLatency(.low, for: central)
      _ = (central.maximumUpdateValueLength, central.identifier)
    }
    manager.publishL2CAPChannel(withEncryption: true)
    manager.unpublishL2CAPChannel(0x80)
    for channel in recorder.channels {
      _ = (channel.peer, channel.psm)
      channel.inputStream.open()
      channel.outputStream.open()
      channel.inputStream.close()
      channel.outputStream.close()
    }
    manager.remove(extra)
    manager.remove(example.service)
    manager.removeAllServices()
    manager.add(example.service)
    recorder.letGo()
    manager.delegate = nil
    _ = manager.delegate
    manager.stopAdvertising()
    manager.delegate = recorder
  }

  @Test(arguments: PeripheralCallback.allCases, QueueKind.allCases)
  func peripheralsTakeAllCalls(in callback: PeripheralCallback, kind: QueueKind) async throws {
    let rig = try await PeripheralRig(kind)
    let example = LocalExample()
    let local = try await rig.add(example.service)
    let (data, updates) = (local.characteristics[0].id, local.characteristics[1].id)
    rig.peripheral.setScript { peripheral, command in
      switch command {
      case .add(let service): peripheral.post(.serviceAdded(service.id, .success(())))
      case .startAdvertising: peripheral.post(.advertisingStarted(.success(())))
      case .publish: peripheral.post(.channelPublished(.success(0x80)))
      case .unpublish(let psm): peripheral.post(.channelUnpublished(psm, .success(())))
      case .notify: peripheral.post(.readyToNotify)
      default: break
      }
    }
    await rig.post(.subscribed(central: rig.central, updates))
    let trap = Trap(callback.rawValue) { [manager = rig.manager, recorder = rig.recorder] in
      Self.callEverything(manager, example, recorder)
    }
    rig.recorder.react { trap.handle($0) }
    let write = ServerWrite(characteristic: data, offset: 0, value: Data([1]))
    switch callback {
    case .state: rig.peripheral.set(.poweredOff)
    case .advertising: rig.manager.startAdvertising(nil)
    case .added: rig.manager.add(CBMutableService(type: CBUUID(string: "5555"), primary: true))
    case .subscribed: rig.peripheral.post(.subscribed(central: PeerID(UUID()), updates))
    case .unsubscribed: rig.peripheral.post(.unsubscribed(central: rig.central, updates))
    case .read: rig.peripheral.post(.read(ServerRequestID(1), central: rig.central, data, offset: 0))
    case .write:
      rig.peripheral.post(.write(ServerRequestID(2), central: rig.central, [write], needsResponse: true))
    case .ready: rig.peripheral.post(.readyToNotify)
    case .published: rig.manager.publishL2CAPChannel(withEncryption: false)
    case .unpublished: rig.manager.unpublishL2CAPChannel(0x80)
    case .channel:
      let channel = FakeChannel(psm: 0x80, peer: rig.central)
      rig.peripheral.post(.channelOpened(central: rig.central, 0x80, channel))
    }
    await rig.drain()
    rig.recorder.react(nil)
    await rig.drain()
    #expect(trap.hits > 0)
    #expect(rig.recorder.watch.isClean)
    #expect(rig.radio.counts.counts.activities == 0)
    rig.peripheral.setScript(nil)
  }

  @Test(arguments: QueueKind.allCases)
  func restorationOfAPeripheralTakesAllCalls(kind: QueueKind) async throws {
    let program = RestoringPeripheral()
    try await program.start(kind)
    try await program.add(LocalExample().service)
    program.stop()
    let hits = PosixMutex(0)
    try await program.start(kind) { [weak program] line in
      guard let program else { return }
      guard line.hasPrefix("restored"), let manager = program.recorder.manager else { return }
      hits.withLock { $0 += 1 }
      Self.callEverything(manager, LocalExample(), program.recorder)
    }
    #expect(hits.withLock { $0 } == 1)
    #expect(program.recorder.lines.all.last == "state poweredOn")
    #expect(program.recorder.watch.isClean)
  }
}
