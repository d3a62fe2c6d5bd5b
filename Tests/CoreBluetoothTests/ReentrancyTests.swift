import CoreBluetooth
import Radio
import Locking
import Synchronization
import Testing

/// Every public method from inside every callback, and from other threads at the same time.
@Suite(.timeLimit(.minutes(30))) struct ReentrancyTests {
  /// Calls everything that a central program can call.
  private static func callEverything(
    _ manager: CBCentralManager, _ peripheral: CBPeripheral, _ objects: FakeDatabase.Objects,
    _ recorder: CentralRecorder
  ) {
    manager.delegate = nil
    manager.delegate = recorder
    peripheral.delegate = nil
    peripheral.delegate = recorder
    _ = (manager.state, manager.isScanning, manager.delegate)
    manager.stopScan()
    _ = manager.retrievePeripherals(withIdentifiers: [peripheral.identifier])
    _ = manager.retrieveConnectedPeripherals(withServices: [objects.service.uuid])
    manager.connect(peripheral)
    manager.registerForConnectionEvents(options: [.peripheralUUIDs: [peripheral.identifier]])
    _ = (peripheral.name, peripheral.state, peripheral.services, peripheral.description, peripheral.delegate)
    _ = (peripheral.canSendWriteWithoutResponse, peripheral.maximumWriteValueLength(for: .withoutResponse))
    peripheral.readRSSI()
    peripheral.discoverServices(nil)
    peripheral.discoverIncludedServices(nil, for: objects.service)
    peripheral.discoverCharacteristics(nil, for: objects.service)
    peripheral.discoverDescriptors(for: objects.notifying)
    peripheral.readValue(for: objects.plain)
    for descriptor in objects.notifying.descriptors ?? [] {
      peripheral.readValue(for: descriptor)
      peripheral.writeValue(Data([1]), for: descriptor)
    }
    peripheral.writeValue(Data([1]), for: objects.data, type: .withoutResponse)
    peripheral.writeValue(Data([1]), for: objects.data, type: .withResponse)
    peripheral.writeValue(Data(count: 600), for: objects.data, type: .withResponse)
    peripheral.setNotifyValue(true, for: objects.notifying)
    peripheral.openL2CAPChannel(0x80)
    _ = (objects.service.characteristics, objects.service.includedServices, objects.service.peripheral)
    _ = (objects.notifying.value, objects.notifying.isNotifying, objects.notifying.service)
    manager.scanForPeripherals(withServices: nil)
  }

  @Test(arguments: QueueKind.allCases)
  func centralsTakeCallsAnywhere(kind: QueueKind) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored()
    let channelRoom = Atomic<Int>(200)
    rig.central.setScript { central, command in
      switch command {
      case .request(let request, let id):
        central.post(.completed(id, rig.peer, .success(FakeDatabase.reply(to: request))))
      case .openChannel(let psm, let id):
        guard channelRoom.subtract(1, ordering: .relaxed).newValue > 0 else {
          return central.post(.completed(id, rig.peer, .failure(.radio(RadioError(.noResources)))))
        }
        central.post(.completed(id, rig.peer, .success(.channel(FakeChannel(psm: psm, peer: rig.peer)))))
      case .startScan: central.post(rig.sighting())
      case .write: central.post(.readyToWrite(rig.peer))
      case .connect(let peer): central.post(.connected(peer, name: nil))
      case .cancel(let peer): central.post(.disconnected(peer, nil, at: .zero))
      case .watchLinks(let filter):
        guard filter != nil else { return }
        central.post(.hostLinkChanged(KnownPeer(id: rig.peer, name: nil), isUp: true))
        central.post(.hostLinkChanged(KnownPeer(id: rig.peer, name: nil), isUp: false))
      case .stopScan: break
      }
    }
    let seen = PosixMutex<[String: Int]>([:])
    rig.recorder.react { [manager = rig.manager, recorder = rig.recorder] line in
      let word = String(line.prefix { $0 != " " && $0 != "," })
      // Twice for each kind of callback: each call makes more of them.
      let isFresh = seen.withLock { seen in
        seen[word, default: 0] += 1
        return (seen[word] ?? 0) <= 2
      }
      guard isFresh else { return }
      Self.callEverything(manager, peripheral, objects, recorder)
    }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<20 { Self.callEverything(rig.manager, peripheral, objects, rig.recorder) }
        }
      }
      group.addTask {
        for i in 0..<200 as Range<UInt8> { rig.central.post(.notified(rig.peer, 3, Data([i]))) }
        rig.central.post(.nameChanged(rig.peer, "other"))
        rig.central.post(.mtuChanged(rig.peer, 247))
      }
    }
    await rig.drain()
    await rig.post(.servicesChanged(rig.peer, [100...110]))
    rig.manager.cancelPeripheralConnection(peripheral)
    await rig.drain()
    rig.central.set(.poweredOff)
    rig.central.set(.poweredOn)
    await rig.drain()
    rig.recorder.react(nil)
    rig.central.setScript(nil)
    await rig.drain()
    let kinds = seen.withLock { Set($0.keys) }
    #expect(
      kinds.isSuperset(of: [
        "discovered", "connected", "disconnected", "name", "modified", "rssi", "services", "included",
        "characteristics", "descriptors", "value", "wrote", "notifying", "descriptor", "ready", "channel",
        "state", "peerConnected", "peerDisconnected",
      ]))
    #expect(rig.recorder.watch.isClean)
    #expect(rig.radio.counts.counts.activities == 0)
  }

  private static func callEverything(
    _ manager: CBPeripheralManager, _ example: LocalExample, _ extra: CBMutableService,
    _ recorder: PeripheralRecorder, _ request: CBATTRequest?
  ) {
    manager.delegate = nil
    manager.delegate = recorder
    _ = (manager.state, manager.isAdvertising, manager.delegate)
    manager.startAdvertising(nil)
    manager.add(example.service)
    manager.add(extra)
    _ = manager.updateValue(Data([1]), for: example.updates, onSubscribedCentrals: nil)
    for central in example.updates.subscribedCentrals ?? [] {
      manager.setDesiredConnectionLatency(.low, for: central)
      _ = central.maximumUpdateValueLength
    }
    if let request {
      request.value = Data([1])
      manager.respond(to: request, withResult: .success)
    }
    manager.publishL2CAPChannel(withEncryption: false)
    manager.unpublishL2CAPChannel(0x80)
    manager.remove(extra)
    manager.stopAdvertising()
  }

  @Test(arguments: QueueKind.allCases)
  func peripheralsTakeCallsAnywhere(kind: QueueKind) async throws {
    let rig = try await PeripheralRig(kind)
    let example = LocalExample()
    let local = try await rig.add(example.service)
    let extra = CBMutableService(type: CBUUID(string: "4321"), primary: true)
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
    let seen = PosixMutex<[String: Int]>([:])
    rig.recorder.react { [manager = rig.manager, recorder = rig.recorder] line in
      let word = String(line.prefix { $0 != " " })
      let isFresh = seen.withLock { seen in
        seen[word, default: 0] += 1
        return (seen[word] ?? 0) <= 2
      }
      guard isFresh else { return }
      Self.callEverything(manager, example, extra, recorder, recorder.requests.last)
    }
    let (data, updates) = (local.characteristics[0].id, local.characteristics[1].id)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<20 { Self.callEverything(rig.manager, example, extra, rig.recorder, nil) }
        }
      }
      group.addTask {
        for i in 0..<100 as Range<UInt64> {
          rig.peripheral.post(.subscribed(central: rig.central, updates))
          rig.peripheral.post(.read(ServerRequestID(i), central: rig.central, data, offset: 0))
          let write = ServerWrite(characteristic: data, offset: 0, value: Data([1]))
          rig.peripheral.post(
            .write(ServerRequestID(1000 + i), central: rig.central, [write], needsResponse: true))
          rig.peripheral.post(.unsubscribed(central: rig.central, updates))
        }
        rig.peripheral.post(
          .channelOpened(central: rig.central, 0x80, FakeChannel(psm: 0x80, peer: rig.central)))
      }
    }
    await rig.drain()
    rig.peripheral.set(.poweredOff)
    await rig.drain()
    rig.recorder.react(nil)
    rig.peripheral.setScript(nil)
    await rig.drain()
    #expect(
      seen.withLock { Set($0.keys) }.isSuperset(of: [
        "added", "advertising", "published", "unpublished", "subscribed", "unsubscribed", "read", "write",
        "ready",
        "channel", "state",
      ]))
    #expect(rig.recorder.watch.isClean)
    #expect(rig.radio.counts.counts.activities == 0)
  }
}
