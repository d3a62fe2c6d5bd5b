import ChildProcess
@_spi(Streams) import CoreBluetooth
import Foundation
import RealStack
import TestSupport
import Testing

/// A peripheral made with Bumble, a host of its own on the controller hci1, against our central on hci0.
@Suite(
  "Bumble as the peripheral", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct BumbleTests {
  private static func uuid(_ number: String) -> CBUUID {
    CBUUID(string: "F0E0\(number)-6275-6D62-6C65-646576696365")
  }
  private static let service = uuid("0001")
  private static let sink = uuid("0002")
  private static let total = uuid("0003")
  private static let echo = uuid("0004")
  private static let long = uuid("0005")
  private static let psm = CBUUID(string: CBUUIDL2CAPPSMCharacteristicString)
  private static let octets = Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 37 ^ $0 >> 8) })

  /// Every length of a packet that a device may agree to: long reads, writes at the limit and above it, a stream of commands without a loss,
  /// notifications, and a channel with SDUs and PDUs of that size.
  @Test("attributes and a channel", arguments: [23, 185, 247, 517])
  func device(mtu: Int) async throws {
    let device = try ChildProcess(peer: "bumble_device.py", .bumble, ["1", "\(mtu)"])
    try #require(await device.line { _ in true } == "ready", "\(device.errors())")
    let events = AwaitedCentral()
    let manager = CBCentralManager(
      delegate: events, queue: DispatchQueue(label: "central"),
      options: [CBManagerOptionRadioKey: "bluez:hci0"])
    try await events.next { if case .state(.poweredOn) = $0 { () } else { nil } }
    manager.scanForPeripherals(withServices: [Self.service])
    let peripheral = try await events.next { if case .found(let found) = $0 { found } else { nil } }
    manager.stopScan()
    peripheral.delegate = events
    manager.connect(peripheral)
    try await events.next { if case .connected = $0 { () } else { nil } }
    let found = try await characteristics(of: peripheral, events)
    #expect(
      found.keys.sorted()
        == [Self.sink, Self.total, Self.echo, Self.long, Self.psm].map(\.uuidString).sorted())
    let attributes = Attributes(peripheral: peripheral, events: events, found: found)

    // The radio's own bound, of what bluetoothd takes, is 510.
    let limit = min(mtu, 513) - 3
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == limit)
    #expect(try await attributes.read(Self.long) == Data((0..<512).map { UInt8($0 % 251) }))
    try await upload(to: attributes, limit: limit)
    try await echoes(of: attributes, limit: limit, mtu: mtu)
    try await channel(of: attributes)

    manager.cancelPeripheralConnection(peripheral)
    #expect(try await events.next { if case .disconnected(let error) = $0 { error == nil } else { nil } })
    let said = await lines(of: device, upTo: "disconnected")
    #expect(said.first == "connected")
    #expect(said.contains("ATT MTU \(min(mtu, 517))") || mtu == 23, "\(said)")
    #expect(said.contains("channel closed"))
    device.send(signal: SIGKILL)
    #expect(await device.ending() == .signal(SIGKILL))
  }

  /// The device ends the link in the middle, once: it still has what was durable, and the tool asks for that and goes on there.
  @Test(
    "the tool sends a file to a receiver of the haul protocol that is not ours", arguments: ["gatt", "l2cap"])
  func haul(carrier: String) async throws {
    let folder = TemporaryFolder()
    let file = try folder.write(Self.octets, "fw.bin")
    let device = try ChildProcess(
      peer: "bumble_haul.py", .bumble, ["1", "247", folder.path("received"), "8000"])
    try #require(await device.line { _ in true } == "ready", "\(device.errors())")
    let push = try ChildProcess(
      "bluehaul",
      [
        "push", file, "--json", "--radio", "bluez:hci0", "--to", "bumble", "--via", carrier, "--timeout",
        "60s",
      ], environment: ["XDG_STATE_HOME": folder.path("state")], endsWithParent: true)
    let events = await push.allLines()
    #expect(await push.ending() == .exit(0), "\(push.errors())")
    #expect(events.contains { $0.contains("\"event\":\"carrier\"") && $0.contains("\"\(carrier)\"") })
    #expect(events.contains { $0.contains("\"event\":\"resumed\"") && $0.contains("\"from\":8192") })
    #expect(events.contains { $0.contains("\"event\":\"verified\"") })
    #expect(folder.contents("received") == Self.octets)
    let said = await lines(of: device, upTo: "verified")
    #expect(
      said.filter { $0.hasPrefix("offered") || $0 == "ends the link" } == [
        "offered, 0 octets are here", "ends the link", "offered, 8192 octets are here",
      ])
    // A controller that is taken away in the middle of a link is not missed by the other: nothing supervises links here.
    #expect(await device.line { $0 == "disconnected" } != nil, "\(device.errors())")
    device.send(signal: SIGKILL)
    #expect(await device.ending() == .signal(SIGKILL))
  }

  private func lines(of device: ChildProcess, upTo last: String) async -> [String] {
    var said: [String] = []
    _ = await device.line { line in
      said.append(line)
      return line == last
    }
    return said
  }

  private func characteristics(
    of peripheral: CBPeripheral, _ events: AwaitedCentral
  ) async throws -> [String: CBCharacteristic] {
    peripheral.discoverServices([Self.service])
    try await events.next { if case .discovered(let error) = $0 { try answered(error) } else { nil } }
    let service = try #require(peripheral.services?.first)
    peripheral.discoverCharacteristics(nil, for: service)
    try await events.next { if case .discovered(let error) = $0 { try answered(error) } else { nil } }
    return Dictionary(
      (service.characteristics ?? []).map { ($0.uuid.uuidString, $0) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The device tells how much has come, and its check value.
  private func upload(to attributes: Attributes, limit: Int) async throws {
    try await attributes.subscribe(Self.total)
    try await attributes.write(Data(littleEndian: UInt32(Self.octets.count)), Self.total)
    try await attributes.send(Self.octets, Self.sink, packets: limit)
    #expect(
      try await attributes.value(Self.total)
        == Data(littleEndian: UInt32(Self.octets.count)) + Data(littleEndian: Self.crc32(Self.octets)))
  }

  /// A value at the limit comes back whole. One that does not fit takes prepared writes, which this device does not know.
  private func echoes(of attributes: Attributes, limit: Int, mtu: Int) async throws {
    try await attributes.subscribe(Self.echo)
    let value = Self.octets.prefix(limit)
    #expect(try await attributes.exchange(value, Self.echo) == value)
    guard mtu - 3 < 512 else { return }
    await #expect(throws: CBATTError.self) { try await attributes.write(Self.octets.prefix(512), Self.echo) }
  }

  private func channel(of attributes: Attributes) async throws {
    let psm = try await attributes.read(Self.psm)
    #expect(psm == Data([0x80, 0]))
    attributes.peripheral.openL2CAPChannel(0x80)
    let opened = try await attributes.events.next {
      if case .channel(let channel, let error) = $0 { (channel, try answered(error)) } else { nil }
    }
    let bytes = try #require(opened.0.flatMap { L2CAPByteChannel($0) })
    async let sent: Void = bytes.write(Self.octets)
    var received = Data()
    while received.count < Self.octets.count, let block = try await bytes.read(upTo: 4096) {
      received += block
    }
    try await sent
    #expect(received == Self.octets)
    bytes.close()
  }

  /// As zlib computes it.
  private static func crc32(_ data: Data) -> UInt32 {
    ~data.reduce(UInt32.max) { check, octet in
      (0..<8).reduce(check ^ UInt32(octet)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
  }
}

/// Requests to the attributes of a device, one after the other.
private struct Attributes {
  let peripheral: CBPeripheral
  let events: AwaitedCentral
  let found: [String: CBCharacteristic]

  func subscribe(_ uuid: CBUUID) async throws {
    peripheral.setNotifyValue(true, for: try attribute(uuid))
    try await events.next { event -> Void? in
      guard case .notifies(let isNotifying, let error) = event else { return nil }
      try answered(error)
      #expect(isNotifying)
      return ()
    }
  }

  func read(_ uuid: CBUUID) async throws -> Data {
    peripheral.readValue(for: try attribute(uuid))
    return try await value(uuid)
  }

  /// The next value of a characteristic, read or notified.
  func value(_ uuid: CBUUID) async throws -> Data {
    try await events.next { event in
      guard case .value(uuid, let value, let error) = event else { return nil }
      try answered(error)
      return value ?? Data()
    }
  }

  func write(_ value: Data, _ uuid: CBUUID) async throws {
    peripheral.writeValue(value, for: try attribute(uuid), type: .withResponse)
    try await events.next { if case .written(let error) = $0 { try answered(error) } else { nil } }
  }

  /// Writes a value and waits for what is notified because of it, which may come before the write is answered.
  func exchange(_ value: Data, _ uuid: CBUUID) async throws -> Data? {
    peripheral.writeValue(value, for: try attribute(uuid), type: .withResponse)
    var isWritten = false
    var notified: Data?
    while !isWritten || notified == nil {
      try await events.next { event -> Void? in
        switch event {
        case .written(let error):
          try answered(error)
          isWritten = true
        case .value(uuid, let value, let error):
          try answered(error)
          notified = value ?? Data()
        default: return nil
        }
        return ()
      }
    }
    return notified
  }

  /// Without response, as fast as there is room.
  func send(_ data: Data, _ uuid: CBUUID, packets size: Int) async throws {
    let attribute = try attribute(uuid)
    var rest = data
    while !rest.isEmpty {
      while !peripheral.canSendWriteWithoutResponse {
        try await events.next { if case .room = $0 { () } else { nil } }
      }
      peripheral.writeValue(rest.prefix(size), for: attribute, type: .withoutResponse)
      rest = rest.dropFirst(size)
    }
  }

  private func attribute(_ uuid: CBUUID) throws -> CBCharacteristic { try #require(found[uuid.uuidString]) }
}

private func answered(_ error: (any Error)?) throws { if let error { throw error } }

extension Data {
  fileprivate init(littleEndian number: UInt32) {
    self.init((0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })
  }
}
