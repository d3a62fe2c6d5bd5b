import Foundation
import Radio
import Testing

@testable import CoreBluetooth

/// What belongs to an earlier link or scan says nothing about the present one.
@Suite(.timeLimit(.minutes(30))) struct EarlierLinkTests {
  /// How the earlier link has ended.
  enum End: CaseIterable {
    case cancelled, lost, madeAgain, poweredOff
  }

  /// Where one adapter's link serves another program too, it stays, and the answer to a request of before may come after all.
  @Test(arguments: End.allCases)
  func aLateAnswerCompletesNoRequest(end: End) async throws {
    let rig = try await CentralRig()
    let options = end == .madeAgain ? [CBConnectPeripheralOptionEnableAutoReconnect: true] : nil
    let peripheral = try await rig.connected(options: options)
    let recorder = ReconnectionRecorder()
    rig.manager.delegate = recorder
    _ = rig.central.takeCommands()
    for _ in 0..<3 { peripheral.readRSSI() }
    let old = rig.takeRequests()
    try #require(old.count == 3)
    switch end {
    case .cancelled:
      rig.manager.cancelPeripheralConnection(peripheral)
      await rig.post(.disconnected(rig.peer, nil, at: .zero))
    case .lost, .madeAgain:
      await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    case .poweredOff:
      rig.central.set(.poweredOff)
      rig.central.set(.poweredOn)
      await rig.drain()
    }
    rig.manager.connect(peripheral)
    await rig.post(.connected(rig.peer, name: nil))
    try #require(peripheral.state == .connected)
    peripheral.discoverServices(nil)
    for _ in 0..<4 { peripheral.readRSSI() }
    let new = rig.takeRequests()
    #expect(new.count == 5)
    _ = rig.recorder.lines.take()
    for id in old { rig.central.post(.completed(id, rig.peer, .success(.rssi(-99)))) }
    await rig.drain()
    #expect(rig.recorder.lines.all == [])
    for id in new.dropFirst() { rig.central.post(.completed(id, rig.peer, .success(.rssi(-55)))) }
    await rig.drain()
    #expect(rig.recorder.lines.all == Array(repeating: "rssi -55", count: 4))
  }

  @Test func whatAnEarlierScanHasSeenIsNoHit() async throws {
    let rig = try await CentralRig()
    let (wanted, other) = (BluetoothUUID(0x180D as UInt16), BluetoothUUID(0x180F as UInt16))
    rig.manager.scanForPeripherals(withServices: nil)
    rig.queue.queue.suspend()
    rig.central.post(rig.sighting("seen before", of: PeerID(UUID()), services: [other]))
    rig.manager.stopScan()
    rig.manager.scanForPeripherals(withServices: [CBUUID(string: "180D")])
    rig.central.post(rig.sighting("hit", services: [other, wanted]))
    rig.queue.queue.resume()
    await rig.drain()
    #expect(rig.recorder.lines.all == ["state poweredOn", "discovered hit -40"])
  }

  /// A cancellation after the link was lost and before it is asked for again, as another thread may make it.
  @Test(arguments: [false, true])
  func aCancellationBeforeTheReconnectionCounts(cancels: Bool) async throws {
    final class Delegate: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
      // Set before the callback, read after it.
      var cancels = false
      var reconnects: [Bool] = []
      func centralManagerDidUpdateState(_ central: CBCentralManager) {}
      func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
      ) {
        if cancels { central.cancelPeripheralConnection(peripheral) }
        reconnects.append(central.core.reconnect(peripheral))
      }
    }
    let rig = try await CentralRig()
    let peripheral = try await rig.connected(options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
    let delegate = Delegate()
    delegate.cancels = cancels
    rig.manager.delegate = delegate
    _ = rig.central.takeCommands()
    await rig.post(.disconnected(rig.peer, RadioError(.supervisionTimeout), at: .zero))
    #expect(delegate.reconnects == [!cancels])
    #expect(rig.central.commands == (cancels ? [] : [.connect(rig.peer)]))
    #expect(peripheral.state == (cancels ? .disconnected : .connecting))
  }
}
