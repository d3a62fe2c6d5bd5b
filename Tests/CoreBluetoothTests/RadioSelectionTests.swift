import CoreBluetooth
import Radio
import Testing

@Suite struct RadioSelectionTests {
  /// What names no radio: the program learns it from the state, the person from one line.
  @Test(arguments: ["no such radio", ""])
  func isUnsupportedWithoutARadio(words: String) async throws {
    let (recorder, peripheralRecorder) = (CentralRecorder(), PeripheralRecorder())
    let log = Lines()
    let queue = TestQueue(.serial)
    let options: [String: Any] = [
      CBManagerOptionRadioKey: words, CBManagerOptionLogHandlerKey: log.handler,
    ]
    let central = CBCentralManager(delegate: recorder, queue: queue.queue, options: options)
    let peripheral = CBPeripheralManager(delegate: peripheralRecorder, queue: queue.queue, options: options)
    await queue.drain()
    #expect(recorder.lines.all == ["state unsupported"])
    #expect(peripheralRecorder.lines.all == ["state unsupported"])
    #expect(central.state == .unsupported)
    #expect(peripheral.state == .unsupported)
    #expect(log.all.count == 2)
    #expect(log.all.allSatisfy { $0.contains(words.isEmpty ? "COREBLUETOOTH_RADIO" : words) })
  }

  @Test func namesWhatIsNoRadio() {
    let log = Lines()
    _ = CBCentralManager(
      delegate: nil, queue: nil,
      options: [CBManagerOptionRadioKey: 7, CBManagerOptionLogHandlerKey: log.handler])
    #expect(log.all.count == 1)
    #expect(log.all.first?.contains("Int") == true)
  }

  @Test func saysWhichOptionsHaveNoEffect() async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.discovered()
    rig.manager.connect(
      peripheral,
      options: [
        CBConnectPeripheralOptionEnableAutoReconnect: true,
        CBConnectPeripheralOptionNotifyOnDisconnectionKey: true,
        CBConnectPeripheralOptionRequiresANCS: NSNumber(value: false),
      ])
    #expect(rig.log.take().count == 1)
    rig.manager.registerForConnectionEvents()
    #expect(rig.log.all.count == 1)
    #expect(!CBCentralManager.supports(.extendedScanAndConnect))
    #expect(CBManager.authorization == .allowedAlways)
    #expect(rig.manager.authorization == .allowedAlways)
  }
}
