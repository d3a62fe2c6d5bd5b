import Foundation
import Radio
import Testing

@_spi(Streams) import CoreBluetooth

@Suite struct RadioSelectionTests {
  /// What names no radio: the program learns it from the state, the person from one line.
  @Test(arguments: ["no such radio", "virtual:", "virtual:/dev/null/air", ""])
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

  /// A device and a phone that share nothing but the words.
  @Test(.timeLimit(.minutes(15)))
  func managersMeetByTheSameWords() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "air-\(UInt32.random(in: 0 ... .max))")
    defer { try? FileManager.default.removeItem(at: folder) }
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

  @Test(arguments: [nil, "no such radio"])
  func readsTheEnvironment(words: String?) async {
    await #expect(processExitsWith: .success) { [words] in
      if let words {
        unsafe setenv("COREBLUETOOTH_RADIO", words, 1)
      } else {
        unsafe unsetenv("COREBLUETOOTH_RADIO")
      }
      let log = Lines()
      _ = CBCentralManager(
        delegate: nil, queue: nil, options: [CBManagerOptionLogHandlerKey: log.handler])
      precondition(log.all.count == 1 && log.all[0].contains(words ?? "COREBLUETOOTH_RADIO"))
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
