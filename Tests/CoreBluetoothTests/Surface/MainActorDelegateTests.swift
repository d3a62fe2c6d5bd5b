import CoreBluetooth
import Radio
import Testing

/// Delegates that belong to the main actor, as those of programs with a user interface do, in each of the ways of Swift 6.
@Suite(.timeLimit(.minutes(30))) struct MainActorDelegateTests {
  /// The protocol's methods are checked at run time.
  @MainActor
  private final class Checked: NSObject, @preconcurrency CBCentralManagerDelegate,
    @preconcurrency CBPeripheralDelegate
  {
    var lines: [String] = []
    var peripheral: CBPeripheral?

    func centralManagerDidUpdateState(_ central: CBCentralManager) { lines.append("state \(central.state)") }

    func centralManager(
      _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
      rssi RSSI: NSNumber
    ) {
      self.peripheral = peripheral
      peripheral.delegate = self
      central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
      lines.append("connected")
      peripheral.readRSSI()
    }

    func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {
      lines.append("rssi \(RSSI)")
    }
  }

  /// The conformance belongs to the actor as well.
  @MainActor private final class Isolated: NSObject, @MainActor CBCentralManagerDelegate {
    var lines: [String] = []

    func centralManagerDidUpdateState(_ central: CBCentralManager) { lines.append("state \(central.state)") }
  }

  /// The methods belong to nobody and hand over what they are given: objects may go where they are needed.
  @MainActor private final class Handing: NSObject, CBCentralManagerDelegate {
    var peripherals: [CBPeripheral] = []
    var isTold: (() -> Void)?

    nonisolated func centralManagerDidUpdateState(_ central: CBCentralManager) {}

    nonisolated func centralManager(
      _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
      rssi RSSI: NSNumber
    ) {
      Task { @MainActor in
        peripherals.append(peripheral)
        isTold?()
      }
    }
  }

  private static func sighting(_ peer: PeerID) -> CentralEvent {
    .discovered(Sighting(peer: peer, advertisement: Advertisement(), rssi: -40, isConnectable: true))
  }

  @MainActor @Test func checkedOnesAreCalled() async throws {
    let (radio, delegate, queue, peer) = (FakeRadio(), Checked(), TestQueue(.main), PeerID(UUID()))
    let manager = CBCentralManager(delegate: delegate, queue: nil, options: [CBManagerOptionRadioKey: radio])
    await queue.drain()
    manager.scanForPeripherals(withServices: nil)
    let central = try #require(radio.central)
    central.setScript(FakeDatabase.script(peer))
    central.post(Self.sighting(peer))
    await queue.drain()
    central.post(.connected(peer, name: nil))
    await queue.drain()
    #expect(delegate.lines == ["state poweredOn", "connected", "rssi -55"])
  }

  @MainActor @Test func isolatedOnesAreCalled() async throws {
    let (radio, delegate) = (FakeRadio(), Isolated())
    let manager = CBCentralManager(delegate: delegate, queue: nil, options: [CBManagerOptionRadioKey: radio])
    await TestQueue(.main).drain()
    #expect(delegate.lines == ["state \(manager.state)"])
  }

  @MainActor @Test func objectsMayBeHandedOver() async throws {
    let (radio, delegate, queue, peer) = (FakeRadio(), Handing(), TestQueue(.serial), PeerID(UUID()))
    let manager = CBCentralManager(
      delegate: delegate, queue: queue.queue, options: [CBManagerOptionRadioKey: radio])
    await queue.drain()
    manager.scanForPeripherals(withServices: nil)
    await withCheckedContinuation { continuation in
      delegate.isTold = { continuation.resume() }
      radio.central?.post(Self.sighting(peer))
    }
    #expect(delegate.peripherals.map(\.identifier) == [peer.uuid])
  }
}
