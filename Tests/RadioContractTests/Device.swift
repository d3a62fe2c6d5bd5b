import Dispatch
import Locking
import Foundation
import Radio
import Testing

/// A peripheral with one service, which remembers every event and answers by itself.
final class Device: Sendable {
  static let service = BluetoothUUID(UInt16(0xFFF0))
  static let values = BluetoothUUID(UInt16(0xFFF1))
  static let pushes = BluetoothUUID(UInt16(0xFFF2))
  static let indications = BluetoothUUID(UInt16(0xFFF3))
  static let fixed = BluetoothUUID(UInt16(0xFFF4))
  /// Takes commands alone: not every host tells them from requests where a characteristic takes both.
  static let commands = BluetoothUUID(UInt16(0xFFF5))
  static let both = BluetoothUUID(UInt16(0xFFF6))

  static let valuesID = LocalCharacteristicID(1)
  static let pushesID = LocalCharacteristicID(2)
  static let indicationsID = LocalCharacteristicID(3)
  static let fixedValue = Data("a fixed value".utf8)

  let world: any RadioWorld
  let radio: any Radio
  private let events = PosixMutex<[PeripheralEvent]>([])
  private let client: PosixMutex<(any PeripheralRadio)?>
  private let inbox: EventInbox<PeripheralEvent>
  private let memory = PosixMutex(Memory())

  private struct Memory {
    var stored = Data()
    var commands: [Data] = []
    var answers = true
    var reaction: (@Sendable (PeripheralEvent, any PeripheralRadio) -> Void)?
  }

  init(_ world: any RadioWorld, name: String = "device", offers service: BluetoothUUID = service) throws {
    self.world = world
    radio = world.makeRadio(name)
    client = PosixMutex(nil)
    let relay = Relay<PeripheralEvent>()
    inbox = EventInbox(queue: DispatchQueue(label: name), clock: radio.clock) { relay.handle($0) }
    relay.set { [weak self] in self?.take($0) }
    client.withLock { [inbox] in $0 = radio.makePeripheral { inbox.post($0) } }
    // Commands are refused before.
    _ = world.wait(within: Phone.patience) { client.withLock { $0?.adapterState == .poweredOn } }
    try publish(service)
  }

  deinit { inbox.close() }

  /// The radio's client.
  var peripheral: any PeripheralRadio {
    get throws { try #require(client.withLock { $0 }) }
  }

  var log: [PeripheralEvent] { events.withLock { $0 } }

  /// What a central has written with response.
  var stored: Data { memory.withLock(\.stored) }

  /// Every value that a central has written without response, in order.
  var commands: [Data] { memory.withLock(\.commands) }

  /// Whether requests are answered; commands are taken in any case.
  func setAnswers(_ answers: Bool) { memory.withLock { $0.answers = answers } }

  func store(_ value: Data) { memory.withLock { $0.stored = value } }

  /// Does something on the device's queue at each event.
  func react(_ body: @escaping @Sendable (PeripheralEvent, any PeripheralRadio) -> Void) {
    memory.withLock { $0.reaction = body }
  }

  // MARK: Script

  /// Adds the service and advertises it.
  func publish(_ service: BluetoothUUID) throws {
    let radio = try peripheral
    let start = log.count
    radio.addService(Self.description(service))
    try expect("service", after: start) { event in
      if case .serviceAdded(_, .success) = event { true } else { nil }
    }
    radio.startAdvertising(Advertisement(localName: "D", services: [service]))
    try expect("advertising", after: start) { event in
      if case .advertisingStarted(.success) = event { true } else { nil }
    }
  }

  private static func description(_ service: BluetoothUUID) -> LocalService {
    LocalService(
      id: LocalServiceID(1), uuid: service, isPrimary: true,
      characteristics: [
        LocalCharacteristic(
          id: valuesID, uuid: values, properties: [.read, .write], permissions: [.read, .write]),
        LocalCharacteristic(
          id: LocalCharacteristicID(5), uuid: commands, properties: .writeWithoutResponse, permissions: .write
        ),
        LocalCharacteristic(
          id: LocalCharacteristicID(6), uuid: both, properties: [.write, .writeWithoutResponse],
          permissions: .write),
        LocalCharacteristic(id: pushesID, uuid: pushes, properties: [.notify], permissions: []),
        LocalCharacteristic(id: indicationsID, uuid: indications, properties: [.indicate], permissions: []),
        LocalCharacteristic(
          id: LocalCharacteristicID(4), uuid: fixed, properties: [.read], permissions: [.read],
          staticValue: fixedValue),
      ])
  }

  @discardableResult
  func expect<Found: Sendable>(
    _ what: String, after start: Int = 0, within limit: Duration = Phone.patience,
    sourceLocation: SourceLocation = #_sourceLocation, _ find: (PeripheralEvent) -> Found?
  ) throws -> Found {
    _ = world.wait(within: limit) { log.dropFirst(start).contains { find($0) != nil } }
    let found = log.dropFirst(start).compactMap { find($0) }.first
    return try #require(
      found, "\(what) did not happen; the log is \(log.map(\.kind).joined(separator: ", "))",
      sourceLocation: sourceLocation)
  }

  /// Publishes a PSM.
  func publishChannel() throws -> PSM {
    let start = log.count
    try peripheral.publishChannel(requiresEncryption: false)
    return try expect("PSM", after: start) { event in
      if case .channelPublished(.success(let psm)) = event { psm } else { nil }
    }
  }

  /// Waits for a channel that a central has opened.
  func acceptChannel(after start: Int = 0) throws -> any RadioChannel {
    try expect("channel", after: start) { event in
      if case .channelOpened(_, _, let channel) = event { channel } else { nil }
    }
  }

  // MARK: Behaviour

  private func take(_ event: PeripheralEvent) {
    events.withLock { $0.append(event) }
    if let radio = client.withLock({ $0 }) {
      answer(event, radio)
      memory.withLock(\.reaction)?(event, radio)
    }
    world.noteProgress()
  }

  private func answer(_ event: PeripheralEvent, _ radio: any PeripheralRadio) {
    switch event {
    case .read(let id, _, _, let offset):
      let (answers, value) = memory.withLock { ($0.answers, $0.stored) }
      guard answers else { return }
      radio.respond(
        toRead: id, with: offset <= value.count ? .success(value.dropFirst(offset)) : .failure(.invalidOffset)
      )
    case .write(let id, _, let writes, let needsResponse):
      let answers = memory.withLock { memory in
        for write in writes {
          if needsResponse {
            memory.stored = memory.stored.prefix(write.offset) + write.value
          } else {
            memory.commands.append(write.value)
          }
        }
        return memory.answers
      }
      if answers { radio.respond(toWrites: id, with: .success(())) }
    default: break
    }
  }
}

extension PeripheralEvent {
  /// The name of the event's case.
  var kind: String { String(String(describing: self).prefix { $0 != "(" }) }
}
