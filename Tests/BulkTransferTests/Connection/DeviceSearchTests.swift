import BulkTransfer
import Foundation
import Testing

@Suite("Finding a device")
struct DeviceSearchTests {
  private let name = DeviceTarget.name("bench-1")
  private let settle = ConnectionConfiguration().settleTime

  @Test("a name decides once no other device has shown it for the settle time")
  func settles() {
    var machine = ConnectionMachine.searching(name)
    #expect(machine.handle(.known([]), now: .zero) == [.scan])
    #expect(machine.handle(.sighted(Sample.sighting(Sample.two, "other")), now: .seconds(1)).isEmpty)
    #expect(machine.handle(.sighted(Sample.sighting(Sample.one)), now: .seconds(2)).isEmpty)
    #expect(machine.deadline == .seconds(2) + settle)
    // Seen once more: nothing is put off.
    #expect(machine.handle(.sighted(Sample.sighting(Sample.one)), now: .milliseconds(2200)).isEmpty)
    #expect(
      machine.handle(.deadline, now: .seconds(2) + settle) == [.stopScan, .connect(Sample.one)])
  }

  @Test("a name that is seen just before the search ends is found, and two of them are an error")
  func late() {
    for devices in [[Sample.one], [Sample.one, Sample.two]] {
      var machine = ConnectionMachine.searching(name)
      _ = machine.handle(.known([]), now: .zero)
      for device in devices {
        _ = machine.handle(.sighted(Sample.sighting(device)), now: .milliseconds(9900))
      }
      #expect(machine.deadline == .seconds(10))
      let actions = machine.handle(.deadline, now: .seconds(10))
      if devices.count == 1 {
        #expect(actions == [.stopScan, .connect(Sample.one)])
      } else {
        #expect(machine.error?.code == .ambiguousDevice)
      }
    }
  }

  @Test("without a settle time the first one is taken")
  func first() {
    var machine = ConnectionMachine.searching(name) { $0.settleTime = .zero }
    _ = machine.handle(.known([]), now: .zero)
    #expect(
      machine.handle(.sighted(Sample.sighting(Sample.one)), now: .zero) == [.stopScan, .connect(Sample.one)])
  }

  @Test("two devices of one name are an error with both identifiers and signal strengths")
  func ambiguous() {
    var machine = ConnectionMachine.searching(name, memory: Sample.one)
    _ = machine.handle(.known([Sample.sighting(Sample.one)]), now: .zero)
    _ = machine.handle(.sighted(Sample.sighting(Sample.one, rssi: -48)), now: .zero)
    _ = machine.handle(.sighted(Sample.sighting(Sample.two, rssi: nil)), now: settle - .milliseconds(1))
    #expect(machine.handle(.deadline, now: settle) == [.stopScan])
    let error = machine.error
    #expect(error?.code == .ambiguousDevice)
    for part in [Sample.one.uuidString, Sample.two.uuidString, "-48 dBm", "bench-1"] {
      #expect(error?.message.contains(part) == true, "\(part)")
    }
    #expect(error?.advice?.contains("identifier") == true)
  }

  @Test("a device that is connected to the system counts as seen")
  func connectedElsewhere() {
    var machine = ConnectionMachine.searching(name)
    let connected = DeviceSighting(identifier: Sample.one, knownName: "bench-1", isConnected: true)
    #expect(machine.handle(.known([connected]), now: .zero) == [.scan])
    #expect(machine.handle(.deadline, now: settle) == [.stopScan, .connect(Sample.one)])
  }

  @Test("any device: the remembered one, else one that is connected, else the first that is seen")
  func any() {
    let connected = DeviceSighting(identifier: Sample.two, isConnected: true)
    var machine = ConnectionMachine.searching(.any, memory: Sample.one)
    #expect(
      machine.handle(.known([connected, Sample.sighting(Sample.one)]), now: .zero) == [.connect(Sample.one)])
    machine = ConnectionMachine.searching(.any, memory: Sample.one)
    #expect(machine.handle(.known([connected]), now: .zero) == [.connect(Sample.two)])
    machine = ConnectionMachine.searching(.any)
    _ = machine.handle(.known([]), now: .zero)
    #expect(
      machine.handle(.sighted(Sample.sighting(Sample.two, nil)), now: .zero)
        == [.stopScan, .connect(Sample.two)])
  }

  @Test("one of several identifiers: the first of them that the host knows or that shows itself")
  func oneOf() {
    let target = DeviceTarget.oneOf([Sample.two, Sample.one], called: "00:AA:01:01:00:01")
    var machine = ConnectionMachine(target: target)
    _ = machine.handle(.radioReady, now: .zero)
    #expect(machine.handle(.connect, now: .zero) == [.lookUp([Sample.two, Sample.one])])
    #expect(machine.handle(.known([Sample.sighting(Sample.one, nil)]), now: .zero) == [.connect(Sample.one)])

    machine = ConnectionMachine.searching(target)
    #expect(machine.handle(.known([]), now: .zero) == [.scan])
    let third = DeviceSighting(identifier: UUID(), advertisedName: "00:AA:01:01:00:01")
    #expect(machine.handle(.sighted(third), now: .zero).isEmpty)
    #expect(
      machine.handle(.sighted(Sample.sighting(Sample.two, nil)), now: .zero)
        == [.stopScan, .connect(Sample.two)])

    machine = ConnectionMachine.searching(target)
    _ = machine.handle(.known([]), now: .zero)
    _ = machine.handle(.deadline, now: .seconds(60))
    #expect(machine.error?.message.contains("00:AA:01:01:00:01") == true)
  }

  // MARK: Memory

  /// Makes a machine that knows the device of its name, which nobody has seen for a second.
  private func remembering() -> ConnectionMachine {
    var machine = ConnectionMachine.searching(name, memory: Sample.one)
    let known = DeviceSighting(identifier: Sample.one, knownName: "bench-1")
    #expect(machine.handle(.known([known]), now: .zero) == [.scan])
    #expect(machine.deadline == .seconds(1))
    #expect(machine.handle(.deadline, now: .seconds(1)) == [.connect(Sample.one)])
    return machine
  }

  @Test("a remembered device that does not show itself is tried while the scan goes on")
  func unseen() {
    var machine = remembering()
    #expect(
      machine.handle(.connected(name: "bench-1"), now: .seconds(2)) == [.stopScan, .remember(Sample.one)])
    #expect(machine.state == .ready(Sample.one))
  }

  @Test("the name that is advertised counts before the memory")
  func moved() {
    var machine = remembering()
    #expect(machine.handle(.sighted(Sample.sighting(Sample.two)), now: .seconds(2)) == [.disconnect])
    #expect(machine.handle(.deadline, now: .seconds(2) + settle) == [.stopScan, .connect(Sample.two)])
    // Also from the beginning.
    machine = ConnectionMachine.searching(name, memory: Sample.one)
    _ = machine.handle(.known([DeviceSighting(identifier: Sample.one, knownName: "bench-1")]), now: .zero)
    _ = machine.handle(.sighted(Sample.sighting(Sample.two)), now: .milliseconds(900))
    #expect(machine.handle(.deadline, now: .seconds(1)).isEmpty)
    #expect(
      machine.handle(.deadline, now: .milliseconds(900) + settle) == [.stopScan, .connect(Sample.two)])
  }

  @Test("a remembered device that has another name now is let go")
  func renamed() {
    var machine = remembering()
    #expect(machine.handle(.connected(name: "bench-2"), now: .seconds(2)) == [.disconnect])
    #expect(machine.state == .finding)
    #expect(machine.handle(.deadline, now: .seconds(10)) == [.stopScan])
    #expect(machine.error?.code == .deviceNotFound)
  }

  @Test("a remembered device that has always called itself otherwise is still the same")
  func otherOwnName() {
    var machine = ConnectionMachine(target: name, memory: Sample.one, memoryName: "Sensor Hub")
    _ = machine.handle(.connect, now: .zero)
    _ = machine.handle(.radioReady, now: .zero)
    _ = machine.handle(.known([DeviceSighting(identifier: Sample.one, knownName: "Sensor Hub")]), now: .zero)
    #expect(machine.handle(.deadline, now: .seconds(1)) == [.connect(Sample.one)])
    _ = machine.handle(.connected(name: "Sensor Hub"), now: .seconds(2))
    #expect(machine.state == .ready(Sample.one))
  }

  @Test("a remembered device that is not there makes the search no longer")
  func absent() {
    var machine = remembering()
    #expect(machine.deadline == .seconds(10))
    #expect(machine.handle(.deadline, now: .seconds(10)) == [.stopScan, .disconnect])
    #expect(machine.error?.code == .deviceNotFound)
  }

  @Test("a remembered device that cannot be connected to leaves the search to the scan")
  func failing() {
    var machine = remembering()
    #expect(machine.handle(.lost("refused"), now: .seconds(2)).isEmpty)
    #expect(machine.state == .finding && machine.deadline == .seconds(10))
    _ = machine.handle(.sighted(Sample.sighting(Sample.two)), now: .seconds(3))
    #expect(machine.handle(.deadline, now: .seconds(3) + settle) == [.stopScan, .connect(Sample.two)])
  }

  @Test("a device that was found and does not answer is looked for again by its name")
  func looksAgain() {
    var machine = ConnectionMachine.searching(name)
    _ = machine.handle(.known([]), now: .zero)
    _ = machine.handle(.sighted(Sample.sighting(Sample.one)), now: .zero)
    _ = machine.handle(.deadline, now: settle)
    _ = machine.handle(.deadline, now: .seconds(12))
    let due = machine.deadline ?? .zero
    #expect(machine.handle(.deadline, now: due) == [.lookUp([])])
  }

  @Test("what many devices of one name advertise is bounded")
  func flood() {
    var machine = ConnectionMachine.searching(name)
    _ = machine.handle(.known([]), now: .zero)
    for _ in 0..<10_000 { _ = machine.handle(.sighted(Sample.sighting(UUID())), now: .zero) }
    _ = machine.handle(.deadline, now: settle)
    #expect((machine.error?.message.count).map { $0 < 1000 } == true)
  }

  @Test(
    "the advertised name counts before one that is out of date, and may be shortened",
    arguments: [
      ("bench-1", nil, true), ("bench-1", "bench-9", true), (nil, "bench-1", true), ("ben", "bench-1", true),
      ("bench-2", "bench-1", false), ("ben", nil, false), (nil, nil, false), ("bench-10", "bench-10", false),
    ] as [(String?, String?, Bool)])
  func names(advertised: String?, known: String?, isMeant: Bool) {
    #expect(name.matches(UUID(), advertised: advertised, known: known) == isMeant)
  }
}
