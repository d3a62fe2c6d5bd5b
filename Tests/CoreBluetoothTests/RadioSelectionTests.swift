import Foundation
import Radio
import TestSupport
import Testing

@_spi(Streams) @testable import CoreBluetooth

@Suite struct RadioSelectionTests {
  /// What names no radio: the program learns it from the state, the person from one line.
  @Test(arguments: [
    ("no such radio", "bluez:hci1 for"), ("virtual:", "virtual:DIR"), ("virtual", "virtual:DIR"),
    ("virtual:/dev/null/air", "/dev/null/air"), ("Bluez", "bluez"), ("bluez:", "hci0, hci1"),
    ("bluez:hci", "hci0, hci1"), ("bluez:hci01", "hci0, hci1"), ("bluez:hci65536", "hci0, hci1"),
    ("bluez:eth0", "hci0, hci1"), ("none", "COREBLUETOOTH_RADIO"),
  ])
  func isUnsupportedWithoutARadio(words: String, hint: String) async throws {
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
    #expect(
      log.all.allSatisfy { $0.contains(hint) && (words == "none" || $0.contains("\"\(words)\"")) },
      "\(log.all)")
  }

  /// A device and a phone that share nothing but the words.
  @Test(.timeLimit(.minutes(30)))
  func managersMeetByTheSameWords() async throws {
    let folder = TemporaryFolder()
    let words = "virtual:\(folder.path)"
    let recorder = PeripheralRecorder()
    let (states, tell) = AsyncStream<String>.makeStream()
    recorder.react { tell.yield($0) }
    let first = CBPeripheralManager(
      delegate: recorder, queue: TestQueue(.serial).queue, options: [CBManagerOptionRadioKey: words])
    let second = CBPeripheralManager(
      delegate: nil, queue: TestQueue(.serial).queue, options: [CBManagerOptionRadioKey: words])
    let third = CBCentralManager(
      delegate: nil, queue: TestQueue(.serial).queue, options: [CBManagerOptionRadioKey: words + "/other"])
    #expect(first.radioClock === second.radioClock)
    #expect(first.radioClock !== third.radioClock)
    for await line in states where line.hasPrefix("state") {
      #expect(line == "state poweredOn")
      break
    }
  }

  /// The environment decides where the program does not, and the host where nobody does: its own radio, if a bus for that is there.
  @Test(
    arguments: [
      ([:], true, "bluez"), ([:], false, nil), (["COREBLUETOOTH_RADIO": ""], true, "bluez"),
      (["COREBLUETOOTH_RADIO": "none"], true, "none"),
      (["COREBLUETOOTH_RADIO": "virtual:air"], true, "virtual:air"),
      (["COREBLUETOOTH_RADIO": "bluez:hci1"], false, "bluez:hci1"),
    ] as [([String: String], Bool, String?)])
  func wordsAreThoseOfTheEnvironmentOrTheHost(environment: [String: String], hasBus: Bool, words: String?) {
    #expect(RadioSelection.words(in: environment, hasBus: hasBus) == words)
  }

  /// In processes of their own, which have no bus but the one that they are told of, and there is none.
  @Test(arguments: [nil, "", "none", "no such radio"])
  func readsTheEnvironment(words: String?) async {
    await #expect(processExitsWith: .success) { [words] in
      if let words {
        unsafe setenv("COREBLUETOOTH_RADIO", words, 1)
      } else {
        unsafe unsetenv("COREBLUETOOTH_RADIO")
      }
      unsafe setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1)
      let log = Lines()
      let options: [String: Any] = [CBManagerOptionLogHandlerKey: log.handler]
      let managers: [CBManager] = [
        CBCentralManager(delegate: nil, queue: nil, options: options),
        CBPeripheralManager(delegate: nil, queue: nil, options: options),
      ]
      precondition(managers.allSatisfy { $0.radio.name == "none" })
      precondition(
        log.all.count == 2
          && log.all[0].contains(words == "no such radio" ? "no such" : "COREBLUETOOTH_RADIO"))
      precondition(CBManager.authorization == .allowedAlways)
    }
  }

  /// The host's own radio, chosen by words and by default. The bus is a file that nobody listens on.
  @Test(arguments: [nil, "bluez", "bluez:hci7"])
  func theHostsRadioIsOneForAll(words: String?) async throws {
    let folder = StateFolder()
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    let bus = "\(folder.path)/bus"
    try Data().write(to: URL(filePath: bus))
    await #expect(processExitsWith: .success) { [words, bus = bus as String] in
      unsafe setenv("COREBLUETOOTH_RADIO", words ?? "", 1)
      unsafe setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(bus)", 1)
      let log = Lines()
      let recorder = CentralRecorder()
      let (states, tell) = AsyncStream<String>.makeStream()
      recorder.react { tell.yield($0) }
      let options: [String: Any] = [CBManagerOptionLogHandlerKey: log.handler]
      let first = CBCentralManager(
        delegate: recorder, queue: DispatchQueue(label: "first"), options: options)
      let second = CBPeripheralManager(
        delegate: nil, queue: DispatchQueue(label: "second"),
        options: options.merging([CBManagerOptionRadioKey: words ?? "bluez"]) { $1 })
      precondition(first.radio.name == words ?? "bluez" && first.radio === second.radio)
      for await line in states {
        precondition(line == "state unsupported")
        break
      }
      // One line for both: there is one radio.
      precondition(log.all.count == 1 && log.all[0].contains("system bus"))
    }
  }

  @Test func namesWhatIsNoRadio() {
    let log = Lines()
    _ = CBCentralManager(
      delegate: nil, queue: nil,
      options: [CBManagerOptionRadioKey: 7, CBManagerOptionLogHandlerKey: log.handler])
    #expect(log.all.count == 1)
    #expect(log.all.first?.contains("Int") == true)
  }
}
