import CoreBluetooth
import Foundation
import Locking
import RealStack
import Testing

/// Core Bluetooth on bluetoothd, central and peripheral in one program: sizes of values, many requests at once, links that end under them.
@Suite(
  "Core Bluetooth on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct HostStackTests {
  init() async throws {
    try await Guest.repeatAdvertising(of: "hci1")
    try await Adapters.prepare()
  }

  private func octets(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }) }

  @Test("what a limit says fits whole, and more is refused and never cut", arguments: [185, 247, 517])
  func sizes(mtu: Int) async throws {
    try await Guest.restartDaemon(mtu: mtu)
    try await Guest.waitUntilPowered()
    let gadget = try await Gadget.start()
    let phone = try await Phone.start()
    let peripheral = try await phone.connect(Gadget.service)
    let (command, note) = (
      try peripheral.characteristic(Gadget.command), try peripheral.characteristic(Gadget.note)
    )
    func arrived(_ uuid: CBUUID) async throws -> Data {
      try await gadget.events.first { if case .written(uuid, let data) = $0 { data } else { nil } }
    }

    // bluetoothd 5.66 as a server drops what is longer than 510 octets.
    let limit = min(mtu - 3, 510)
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == limit)
    #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
    for count in [1, 20, limit] {
      peripheral.writeValue(octets(count), for: command, type: .withoutResponse)
      #expect(try await arrived(Gadget.command) == octets(count))
    }
    let before = phone.log.withLock { $0.count }
    let tooLong = [limit + 1, 509, 512, 513, 514, 600].filter { $0 > limit }
    for count in tooLong { peripheral.writeValue(octets(count), for: command, type: .withoutResponse) }
    #expect(phone.log.withLock { $0.count } == before + tooLong.count)
    peripheral.writeValue(Data("end".utf8), for: command, type: .withoutResponse)
    #expect(try await arrived(Gadget.command) == Data("end".utf8))

    for count in [20, limit, 508] {
      #expect(try await phone.write(octets(count), to: note, of: peripheral) == nil, "\(count) octets")
      #expect(try await arrived(Gadget.note) == octets(count))
    }
    // As a server 5.66 takes no more; what it does not take is an error.
    let failure = try await phone.write(octets(512), to: note, of: peripheral)
    #expect(try await phone.write(Data("end".utf8), to: note, of: peripheral) == nil)
    var last = try await arrived(Gadget.note)
    if failure == nil {
      #expect(last == octets(512))
      last = try await arrived(Gadget.note)
    }
    #expect(last == Data("end".utf8))
    #expect(try await phone.write(octets(513), to: note, of: peripheral)?.code == 0x0D)

    let updates = try peripheral.characteristic(Gadget.updates)
    peripheral.setNotifyValue(true, for: updates)
    let refused = try await phone.events.first {
      if case .notifying(_, let failure) = $0 { Optional(failure) } else { nil }
    }
    #expect(refused == nil)
    let central = try await gadget.events.first {
      if case .subscribed(let central) = $0 { central } else { nil }
    }
    // To a central like itself bluetoothd sends notifications in a form that has room for 2 octets less.
    #expect(central.maximumUpdateValueLength == min(mtu - 5, 512))
    for count in [1, central.maximumUpdateValueLength] {
      #expect(try gadget.tell(octets(count)))
      let value = try await phone.events.first {
        if case .value(Gadget.updates, let data, nil) = $0 { Optional(data) } else { nil }
      }
      #expect(value == octets(count))
    }
    try await phone.disconnect(peripheral)
    if mtu == 517 { return }
    try await Guest.restartDaemon(mtu: 517)
  }

  @Test("requests that are made all at once are all answered, in order")
  func many() async throws {
    let gadget = try await Gadget.start()
    let phone = try await Phone.start()
    let peripheral = try await phone.connect(Gadget.service)
    let notes = [try peripheral.characteristic(Gadget.note), try peripheral.characteristic(Gadget.otherNote)]
    for note in notes {
      peripheral.discoverDescriptors(for: note)
      let failure = try await phone.events.first {
        if case .descriptors(let failure) = $0 { Optional(failure) } else { nil }
      }
      #expect(failure == nil)
    }
    let count = 20
    for number in 0..<count {
      for note in notes {
        peripheral.readValue(for: note)
        peripheral.writeValue(Data([UInt8(number)]), for: note, type: .withResponse)
      }
      for descriptor in notes.flatMap({ $0.descriptors ?? [] }) where number < 5 {
        peripheral.readValue(for: descriptor)
      }
    }
    var values: [CBUUID: [UInt8]] = [:]
    var written: [CBUUID: Int] = [:]
    var descriptors = 0
    let expected = notes.count * (2 * count + 5)
    var seen = 0
    _ = await phone.events.through { event in
      switch event {
      case .value(let uuid, let data, nil): values[uuid, default: []] += data ?? Data()
      case .written(let uuid, nil): written[uuid, default: 0] += 1
      case .descriptorValue(nil): descriptors += 1
      default: Issue.record("\(event)")
      }
      seen += 1
      return seen == expected
    }
    for note in notes {
      #expect(values[note.uuid] == (1...UInt8(count)).map { $0 })
      #expect(written[note.uuid] == count)
    }
    #expect(descriptors == notes.count * 5)
    var arrived: [CBUUID: [UInt8]] = [:]
    var rest = notes.count * count
    _ = await gadget.events.through { event in
      guard case .written(let uuid, let data) = event else { return false }
      arrived[uuid, default: []] += data
      rest -= 1
      return rest == 0
    }
    for note in notes { #expect(arrived[note.uuid] == (0..<UInt8(count)).map { $0 }) }
    try await phone.disconnect(peripheral)
  }

  @Test(
    "requests that wait when a link ends are never answered, and the next link works",
    arguments: [false, true])
  func pending(endsHere: Bool) async throws {
    let gadget = try await Gadget.start()
    let phone = try await Phone.start()
    let peripheral = try await phone.connect(Gadget.service)
    let (note, updates) = (
      try peripheral.characteristic(Gadget.note), try peripheral.characteristic(Gadget.updates)
    )
    // Nothing is answered from here on.
    try await Guest.takeDown("hci1")
    peripheral.writeValue(Data("lost".utf8), for: note, type: .withResponse)
    peripheral.readValue(for: try peripheral.characteristic(Gadget.otherNote))
    peripheral.setNotifyValue(true, for: updates)
    peripheral.discoverServices(nil)
    if endsHere {
      try phone.manager.cancelPeripheralConnection(peripheral)
    } else {
      try await Guest.disconnect("hci0", from: Guest.address(of: 1))
    }
    let end = await phone.events.through { if case .disconnected = $0 { true } else { false } }
    guard case .disconnected(let failure)? = end.last, end.count == 1 else {
      Issue.record("\(end)")
      return
    }
    #expect((failure == nil) == endsHere)

    try await Guest.bringUp("hci1")
    try await gadget.events.first { if case .state(.poweredOn) = $0 { () } else { nil } }
    try await gadget.advertise()
    try phone.manager.connect(peripheral)
    let again = await phone.events.through { if case .connected = $0 { true } else { false } }
    #expect(again.count == 1, "\(again)")
    try await phone.discover(Gadget.service, of: peripheral)
    #expect(try await phone.read(try peripheral.characteristic(Gadget.note), of: peripheral) == Data([1]))
    try await phone.disconnect(peripheral)
  }

  @Test("managers that do nothing survive a restart of bluetoothd")
  func idle() async throws {
    let phone = try await Phone.start()
    let gadget = try await Gadget.start()
    try await Guest.restartDaemon()
    let states = await phone.events.through { if case .state(.poweredOn) = $0 { true } else { false } }
    guard case .state(.resetting)? = states.first, states.count == 2 else {
      Issue.record("\(states)")
      return
    }
    try await gadget.publish()
    let peripheral = try await phone.connect(Gadget.service)
    #expect(try await phone.read(try peripheral.characteristic(Gadget.note), of: peripheral) == Data([1]))
    try await phone.disconnect(peripheral)
  }
}
