import Dispatch
import Locking
import Foundation
import Radio
import Testing

@testable import VirtualRadio

/// A central and a device with one service on an air in simulated time.
final class AirRig {
  static let service = BluetoothUUID(UInt16(0xFFF0))
  static let values = LocalCharacteristicID(1)
  static let pushes = LocalCharacteristicID(2)

  let clock = VirtualClock(.lockStep)
  let air: VirtualAir
  let phone: VirtualRadio
  let device: VirtualRadio
  let central: any CentralRadio
  let peripheral: any PeripheralRadio
  let centralEvents = AirLog<CentralEvent>()
  let peripheralEvents = AirLog<PeripheralEvent>()
  private let centralInbox: EventInbox<CentralEvent>
  private let peripheralInbox: EventInbox<PeripheralEvent>
  private var lastRequest: UInt64 = 0

  init(
    _ link: LinkParameters = LinkParameters(), faults: FaultPlan = FaultPlan(), capture: BTSnoopWriter? = nil,
    seed: UInt64 = 1
  ) {
    air = VirtualAir(clock: clock, link: link, seed: seed, faults: faults, capture: capture)
    phone = air.makeRadio(name: "phone")
    device = air.makeRadio(name: "device")
    let (forCentral, forPeripheral) = (centralEvents, peripheralEvents)
    let centralInbox = EventInbox<CentralEvent>(queue: DispatchQueue(label: "phone"), clock: clock) {
      forCentral.take($0)
    }
    let peripheralInbox = EventInbox<PeripheralEvent>(queue: DispatchQueue(label: "device"), clock: clock) {
      forPeripheral.take($0)
    }
    self.centralInbox = centralInbox
    self.peripheralInbox = peripheralInbox
    central = phone.makeCentral { centralInbox.post($0) }
    peripheral = device.makePeripheral { peripheralInbox.post($0) }
    answerEverything()
    publish()
  }

  /// Lets the device answer reads and writes with success.
  func answerEverything() {
    let radio = peripheral
    peripheralEvents.react { [weak radio] event in
      switch event {
      case .read(let id, _, _, _): radio?.respond(toRead: id, with: .success(Data([1])))
      case .write(let id, _, _, true): radio?.respond(toWrites: id, with: .success(()))
      default: break
      }
    }
  }

  func publish() {
    peripheral.addService(
      LocalService(
        id: LocalServiceID(1), uuid: Self.service, isPrimary: true,
        characteristics: [
          LocalCharacteristic(
            id: Self.values, uuid: BluetoothUUID(UInt16(0xFFF1)),
            properties: [.read, .write, .writeWithoutResponse], permissions: [.read, .write]),
          LocalCharacteristic(
            id: Self.pushes, uuid: BluetoothUUID(UInt16(0xFFF2)), properties: [.notify], permissions: []),
        ]))
    peripheral.startAdvertising(Advertisement(localName: "device", services: [Self.service]))
  }

  // MARK: Script

  var peer: PeerID { device.peerID }

  @discardableResult
  func run(within limit: Duration? = nil, until condition: () -> Bool) throws -> Bool {
    try clock.run(until: condition, within: limit) || condition()
  }

  /// Runs until nothing is left to happen.
  func runToRest() throws { try clock.run(until: { false }) }

  func connect() throws {
    let start = centralEvents.all.count
    central.connect(peer)
    try #require(
      try run(within: .seconds(10)) {
        self.centralEvents.all.dropFirst(start).contains { if case .connected = $0 { true } else { false } }
      })
  }

  @discardableResult
  func ask(_ request: GATTRequest) throws -> GATTReply {
    lastRequest += 1
    let id = RequestID(lastRequest)
    central.request(request, of: peer, id: id)
    func answer() -> Result<GATTReply, GATTFailure>? {
      for case .completed(id, _, let result) in centralEvents.all { return result }
      return nil
    }
    try run { answer() != nil }
    return try #require(answer()).get()
  }

  /// Connects, waits for the MTU and finds a characteristic.
  func connectAndFind(_ short: UInt16 = 0xFFF1) throws -> RemoteCharacteristic {
    try connect()
    return try find(short)
  }

  func find(_ short: UInt16) throws -> RemoteCharacteristic {
    guard case .services(let services) = try ask(.discoverServices([Self.service])),
      let service = services.first,
      case .characteristics(let found) = try ask(
        .discoverCharacteristics(of: service, [BluetoothUUID(short)])),
      let first = found.first
    else { throw Unexpected() }
    return first
  }

  /// Writes as fast as the radio takes values, driven by its signals, until all are taken or nothing goes on.
  func pour(_ values: [Data], to handle: AttributeHandle, within limit: Duration? = nil) throws {
    var next = 0
    _ = try run(within: limit) {
      while next < values.count,
        central.writeWithoutResponse(values[next], to: handle, of: peer) == .accepted
      { next += 1 }
      return next == values.count
    }
  }

  /// Values that the device got by Write Commands.
  var commands: [Data] {
    peripheralEvents.all.compactMap { event in
      if case .write(_, _, let writes, false) = event { writes.first?.value } else { nil }
    }
  }

  var disconnection: (error: RadioError?, at: Duration)? {
    for case .disconnected(_, let error, let at) in centralEvents.all { return (error, at) }
    return nil
  }

  func count(_ matches: (CentralEvent) -> Bool) -> Int { centralEvents.all.count(where: matches) }
}

/// Events in the order in which they came.
final class AirLog<Event: Sendable>: Sendable {
  private struct State {
    var events: [Event] = []
    var reaction: (@Sendable (Event) -> Void)?
  }

  private let state = PosixMutex(State())

  var all: [Event] { state.withLock(\.events) }

  func react(_ body: @escaping @Sendable (Event) -> Void) { state.withLock { $0.reaction = body } }

  func take(_ event: Event) {
    let reaction = state.withLock { state in
      state.events.append(event)
      return state.reaction
    }
    reaction?(event)
  }
}
