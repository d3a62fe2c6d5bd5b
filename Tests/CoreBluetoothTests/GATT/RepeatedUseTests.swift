import CoreBluetooth
import Radio
import TestSupport
import Testing
import VirtualRadio

/// A program that starts over in the same process, again and again.
@Suite(.timeLimit(.minutes(30))) struct RepeatedUseTests {
  /// What one run has made.
  private struct Run {
    let queue = DispatchQueue(label: "run")
    let recorder = CentralRecorder()
    let log = Lines()
    let manager: CBCentralManager
    let peripheral: CBPeripheral
    let characteristic: CBCharacteristic

    /// Finds the device, connects, discovers, subscribes and opens a channel.
    init(_ rig: GATTRig) throws {
      let manager = CBCentralManager(
        delegate: recorder, queue: queue,
        options: [CBManagerOptionRadioKey: rig.phoneRadio, CBManagerOptionLogHandlerKey: log.handler])
      self.manager = manager
      try rig.run { rig.device.isAdvertising && manager.state == .poweredOn }
      manager.scanForPeripherals(withServices: nil)
      let listener = recorder
      try rig.run { !listener.peripherals.isEmpty }
      manager.stopScan()
      let peripheral = try #require(listener.peripherals.first)
      self.peripheral = peripheral
      peripheral.delegate = listener
      manager.connect(peripheral)
      try rig.run { peripheral.state == .connected }
      peripheral.discoverServices([CBUUID(string: "1234")])
      try rig.run { peripheral.services?.isEmpty == false }
      let service = try #require(peripheral.services?.first)
      peripheral.discoverCharacteristics(nil, for: service)
      try rig.run { service.characteristics != nil }
      let characteristic = try #require(service.characteristics?.first)
      self.characteristic = characteristic
      peripheral.setNotifyValue(true, for: characteristic)
      peripheral.openL2CAPChannel(0x80)
      try rig.run { characteristic.isNotifying && !listener.openChannels.isEmpty }
    }

    var answers: Int { recorder.lines.all.count { $0 == "wrote AA01" } }

    /// Writes long and short values; where it is aborted, the program lets go of everything in the midst of it.
    func write(_ rig: GATTRig, isAborted: Bool) throws {
      for _ in 0..<20 {
        peripheral.writeValue(Data(count: 400), for: characteristic, type: .withResponse)
        peripheral.writeValue(Data([1]), for: characteristic, type: .withoutResponse)
      }
      guard !isAborted else { return try rig.run { answers > 5 } }
      try rig.run { answers == 20 }
      manager.cancelPeripheralConnection(peripheral)
      try rig.run { peripheral.state == .disconnected }
    }
  }

  private struct Left {
    weak var manager: CBCentralManager?
    weak var recorder: CentralRecorder?
    weak var peripheral: CBPeripheral?
    weak var characteristic: CBCharacteristic?
    weak var channel: CBL2CAPChannel?
    weak var farChannel: CBL2CAPChannel?

    var isNothing: Bool {
      manager == nil && recorder == nil && peripheral == nil && characteristic == nil && channel == nil
        && farChannel == nil
    }
  }

  private static func rig() throws -> (GATTRig, CBMutableCharacteristic) {
    let characteristic = CBMutableCharacteristic("AA01", [.write, .writeWithoutResponse, .notify])
    let rig = GATTRig([CBMutableService("1234", [characteristic])]) { device, requests in
      device.respond(to: requests[0], withResult: .success)
    }
    try rig.run { rig.device.isAdvertising }
    rig.device.publishL2CAPChannel(withEncryption: false)
    try rig.run { rig.owner.lines.all.last == "published 128" }
    return (rig, characteristic)
  }

  private static func round(_ number: Int, _ rig: GATTRig) throws -> Left {
    let (left, queue) = try {
      let run = try Run(rig)
      let left = Left(
        manager: run.manager, recorder: run.recorder, peripheral: run.peripheral,
        characteristic: run.characteristic, channel: run.recorder.openChannels.first,
        farChannel: rig.owner.channels.first)
      try run.write(rig, isAborted: number.isMultiple(of: 2))
      return (left, run.queue)
    }()
    rig.owner.letGo()
    _ = rig.owner.lines.take()
    try rig.clock.run(for: .seconds(2))
    // The block that ran last lets go of what it has before the next one begins.
    queue.sync {}
    return left
  }

  @Test func abortedRunsLeaveNothingBehind() throws {
    let (rig, characteristic) = try Self.rig()
    for number in 0..<40 {
      let left = try Self.round(number, rig)
      #expect(left.isNothing, "run \(number)")
      #expect(characteristic.subscribedCentrals == [], "run \(number)")
    }
  }

  /// In a process of its own, since memory and descriptors belong to the whole process.
  @Test(
    .enabled(if: Sweep.isWhole, "a sanitizer keeps memory that was freed"))
  func twoHundredRunsNeedNoMoreThanOne() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      func pages() throws -> Int {
        let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return try #require(Int(words[1]))
      }
      func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
      }
      let (rig, _) = try Self.rig()
      for number in 0..<20 { _ = try Self.round(number, rig) }
      let before = (pages: try pages(), descriptors: try descriptors())
      for number in 0..<200 { _ = try Self.round(number, rig) }
      let grown = (try pages() - before.pages) * Int(getpagesize())
      let opened = try descriptors() - before.descriptors
      FileHandle.standardError.write(Data("grown by \(grown) octets and \(opened) descriptors\n".utf8))
      exit(grown > 5_000_000 || opened > 0 ? EXIT_FAILURE : EXIT_SUCCESS)
    }
    let words = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(words.hasPrefix("grown by"), "\(words)")
  }

  /// Objects of a run that was torn down, used in the next: each use is dropped with one line, and the run goes on.
  @Test func whatIsKeptOfAnEarlierRunDoesNoHarm() throws {
    let (rig, _) = try Self.rig()
    let (oldPeripheral, oldCharacteristic, oldLog) = try {
      let run = try Run(rig)
      try run.write(rig, isAborted: true)
      return (run.peripheral, run.characteristic, run.log)
    }()
    try rig.clock.run(for: .seconds(2))
    #expect(oldPeripheral.state == .disconnected)
    #expect(oldPeripheral.services == nil)
    _ = oldLog.take()
    let run = try Run(rig)
    let uses: [() -> Void] = [
      { oldPeripheral.writeValue(Data([1]), for: oldCharacteristic, type: .withResponse) },
      { oldPeripheral.writeValue(Data([1]), for: oldCharacteristic, type: .withoutResponse) },
      { oldPeripheral.discoverServices(nil) },
      { run.manager.connect(oldPeripheral) },
      { run.manager.cancelPeripheralConnection(oldPeripheral) },
      { run.peripheral.writeValue(Data([1]), for: oldCharacteristic, type: .withResponse) },
      { run.peripheral.writeValue(Data([1]), for: oldCharacteristic, type: .withoutResponse) },
      { run.peripheral.setNotifyValue(true, for: oldCharacteristic) },
    ]
    for use in uses {
      use()
      let lines = oldLog.take() + run.log.take()
      #expect(lines.count == 1)
      #expect(lines.first?.contains("API MISUSE") == true)
    }
    #expect(run.peripheral.state == .connected)
    try run.write(rig, isAborted: false)
  }
}
