import CoreBluetooth
import Locking
import Radio
import Testing

/// Forms that programs for Apple's framework use, beyond what the other suites call.
@Suite(.timeLimit(.minutes(30))) struct SurfaceTests {
  private final class Bare: NSObject, CBCentralManagerDelegate, CBPeripheralManagerDelegate,
    CBPeripheralDelegate
  {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {}
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}
  }

  /// A delegate that implements next to nothing survives everything that can be told.
  @Test func delegatesNeedOneMethodOrNone() async throws {
    let bare = Bare()
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.manager.delegate = bare
    peripheral.delegate = bare
    rig.central.setScript(FakeDatabase.script(rig.peer))
    peripheral.readRSSI()
    peripheral.discoverServices(nil)
    peripheral.discoverIncludedServices(nil, for: objects.service)
    peripheral.discoverCharacteristics(nil, for: objects.service)
    peripheral.discoverDescriptors(for: objects.notifying)
    peripheral.readValue(for: objects.plain)
    peripheral.writeValue(Data([1]), for: objects.data, type: .withResponse)
    peripheral.setNotifyValue(true, for: objects.notifying)
    peripheral.openL2CAPChannel(0x80)
    await rig.drain()
    for descriptor in objects.notifying.descriptors ?? [] {
      peripheral.readValue(for: descriptor)
      peripheral.writeValue(Data([1]), for: descriptor)
    }
    rig.manager.scanForPeripherals(withServices: nil)
    await rig.post(
      rig.sighting(), .nameChanged(rig.peer, "other"), .readyToWrite(rig.peer),
      .servicesChanged(rig.peer, [1...0xFFFF]), .notified(rig.peer, 3, Data([1])),
      .disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(peripheral.state == .disconnected)
    #expect(peripheral.name == "other")
    rig.manager.connect(peripheral)
    await rig.post(.connectionFailed(rig.peer, RadioError(.connectionFailed)))
    #expect(peripheral.state == .disconnected)

    let local = try await PeripheralRig()
    local.manager.delegate = bare
    let example = LocalExample()
    local.manager.add(example.service)
    guard case .add(let service)? = local.peripheral.commands.first else {
      Issue.record("no service was added")
      return
    }
    local.manager.startAdvertising(nil)
    await local.post(
      .serviceAdded(service.id, .success(())), .advertisingStarted(.success(())),
      .subscribed(central: local.central, service.characteristics[1].id), .readyToNotify,
      .unsubscribed(central: local.central, service.characteristics[1].id),
      .channelPublished(.success(0x80)), .channelUnpublished(0x80, .success(())),
      .channelOpened(central: local.central, 0x80, FakeChannel(psm: 0x80, peer: local.central)))
    #expect(local.manager.isAdvertising)
    #expect(local.manager.delegate === bare)
  }

  /// Methods that a class adds where it conforms are called; those that its subclass adds are not, which the page says.
  @Test func methodsBelongWhereTheConformanceIs() async throws {
    class Parent: NSObject, CBCentralManagerDelegate {
      let lines = Lines()
      func centralManagerDidUpdateState(_ central: CBCentralManager) { lines.append("parent") }
      func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        lines.append("parent connected")
      }
    }
    final class Child: Parent {
      override func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        lines.append("child connected")
      }
      func centralManager(
        _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
      ) { lines.append("child failed") }
    }
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    let child = Child()
    rig.manager.delegate = child
    rig.manager.connect(peripheral)
    await rig.post(.connectionFailed(rig.peer, RadioError(.connectionFailed)))
    rig.manager.connect(peripheral)
    await rig.post(.connected(rig.peer, name: nil))
    #expect(child.lines.all == ["child connected"])
  }

  /// In a process that is told of no radio, for a manager without options would take that of the host.
  @Test func managersAreMadeInThreeWays() async {
    await #expect(processExitsWith: .success) {
      unsafe setenv("COREBLUETOOTH_RADIO", "none", 1)
      let silence: [String: Any] = [
        CBManagerOptionRadioKey: FakeRadio(), CBManagerOptionLogHandlerKey: CBLogHandler { _ in },
      ]
      let centrals = [
        CBCentralManager(), CBCentralManager(delegate: nil, queue: nil),
        CBCentralManager(delegate: nil, queue: .global(), options: silence),
      ]
      let peripherals = [
        CBPeripheralManager(), CBPeripheralManager(delegate: nil, queue: nil),
        CBPeripheralManager(delegate: nil, queue: .global(), options: silence),
      ]
      precondition(centrals.allSatisfy { $0.delegate == nil && !$0.isScanning })
      precondition(peripherals.allSatisfy { $0.delegate == nil && !$0.isAdvertising })
    }
  }

  /// What belongs to a radio cannot be asked of a type.
  @Test func typesPromiseNothingOfARadio() {
    #expect(!CBCentralManager.supports(.extendedScanAndConnect))
    #expect(CBCentralManager.supports([]))
    #expect(CBManager.authorization == .allowedAlways)
    #expect(CBCentralManager.authorization == .allowedAlways)
  }

  @Test func copiesOfPeersAndUUIDsAreThemselves() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    #expect(peripheral.copy() as AnyObject === peripheral)
    #expect(peripheral.identifier == rig.peer.uuid)
    let uuid = CBUUID(string: "180D")
    #expect(uuid.copy() as AnyObject === uuid)
    #expect([uuid: 1][CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")] == 1)
  }
}
