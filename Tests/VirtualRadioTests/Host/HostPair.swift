import Foundation
import Radio
import Testing

@testable import VirtualRadio

/// Two hosts and a perfect port between them, in a time that the test sets.
struct HostPair {
  var central: LinkHost
  var peripheral: LinkHost
  var now = Duration.zero
  /// Frames that the port has taken and not carried.
  private(set) var toPeripheral: [[UInt8]] = []
  private(set) var toCentral: [[UInt8]] = []
  /// Other outputs, oldest first.
  private(set) var centralLog: [LinkHost.Output] = []
  private(set) var peripheralLog: [LinkHost.Output] = []
  /// Answers the peripheral's owner; nil: it does not answer.
  var stored: Data? = Data()
  private var lastRequest: UInt64 = 0

  init(
    mtu: Int = 185, encrypted: Bool = false, table: AttributeTable = AttributeTable(deviceName: "device"),
    queueDepth: Int? = 8
  ) {
    let parameters = LinkParameters(attMTU: mtu, isEncrypted: encrypted, queueDepth: queueDepth)
    central = LinkHost(
      side: .central, parameters: parameters, table: AttributeTable(deviceName: "phone"),
      firstServerRequest: 0, now: .zero)
    peripheral = LinkHost(
      side: .peripheral, parameters: parameters, table: table, firstServerRequest: 1 << 32, now: .zero)
  }

  /// Carries frames until both hosts rest.
  mutating func run() {
    repeat { step() } while !toPeripheral.isEmpty || !toCentral.isEmpty
  }

  /// Carries the frames that wait, once.
  mutating func step() {
    collect()
    let (forward, back) = (toPeripheral, toCentral)
    (toPeripheral, toCentral) = ([], [])
    for frame in forward { peripheral.received(frame, now: now) }
    for frame in back { central.received(frame, now: now) }
    central.completed(forward.count, now: now)
    peripheral.completed(back.count, now: now)
    collect()
  }

  /// Takes outputs without carrying frames.
  mutating func collect() {
    var outputs: [LinkHost.Output] = []
    central.takeOutputs(into: &outputs)
    for output in outputs {
      if case .send(let frame) = output { toPeripheral.append(frame) } else { centralLog.append(output) }
    }
    while !peripheral.outputs.isEmpty {
      outputs = []
      peripheral.takeOutputs(into: &outputs)
      for output in outputs {
        if case .send(let frame) = output { toCentral.append(frame) } else { peripheralLog.append(output) }
        answer(output)
      }
    }
  }

  private mutating func answer(_ output: LinkHost.Output) {
    guard let value = stored else { return }
    switch output {
    case .read(let id, _, let offset):
      peripheral.respond(
        toRead: id, with: offset <= value.count ? .success(value.dropFirst(offset)) : .failure(.invalidOffset)
      )
    case .write(let id, _, let writes, true):
      stored = writes.reduce(value) { $0.prefix($1.offset) + $1.value }
      peripheral.respond(toWrites: id, with: .success(()))
    default: break
    }
  }

  /// Forgets frames on their way.
  mutating func loseFrames() { (toPeripheral, toCentral) = ([], []) }

  mutating func advance(by time: Duration) {
    now += time
    central.timeElapsed(now: now)
    peripheral.timeElapsed(now: now)
    run()
  }

  // MARK: Requests

  mutating func send(_ request: GATTRequest) -> ClientRequest {
    lastRequest += 1
    let id = ClientRequest(client: 1, id: RequestID(lastRequest))
    central.request(request, id, now: now)
    return id
  }

  mutating func ask(_ request: GATTRequest) throws -> Result<GATTReply, GATTFailure> {
    let id = send(request)
    run()
    return try #require(answer(to: id))
  }

  func answer(to id: ClientRequest) -> Result<GATTReply, GATTFailure>? {
    for case .completed(id, let result) in centralLog { return result }
    return nil
  }

  mutating func characteristic(_ uuid: BluetoothUUID) throws -> RemoteCharacteristic {
    guard case .services(let services) = try ask(.discoverServices(nil)).get() else { throw Unexpected() }
    for service in services {
      guard case .characteristics(let all) = try ask(.discoverCharacteristics(of: service, [uuid])).get()
      else { throw Unexpected() }
      if let found = all.first { return found }
    }
    throw Unexpected()
  }
}

struct Unexpected: Error {}

extension Result where Success == GATTReply, Failure == GATTFailure {
  /// The ATT error of a failed request.
  var attError: ATTErrorCode? {
    if case .failure(.att(let code)) = self { code } else { nil }
  }

  var value: Data? {
    if case .success(.value(let value)) = self { value } else { nil }
  }

  var isDone: Bool {
    if case .success(.done) = self { true } else { false }
  }
}

/// A device's table for tests.
enum SampleTable {
  static let service = BluetoothUUID(UInt16(0xFFF0))
  static let long = BluetoothUUID(high: 0x8D53_DC1D_1DB7_4CD3, low: 0x868B_8A52_7460_AA84)
  static let secondary = BluetoothUUID(UInt16(0xFFE0))
  static let values = BluetoothUUID(UInt16(0xFFF1))
  static let pushes = BluetoothUUID(UInt16(0xFFF2))
  static let fixed = BluetoothUUID(high: 0xDA2E_7828_FBCE_4E01, low: 0xAE9E_2611_7499_7C48)
  static let secret = BluetoothUUID(UInt16(0xFFF4))
  static let indicated = BluetoothUUID(UInt16(0xFFF5))
  static let fixedValue = Data((0..<512).map { UInt8(truncatingIfNeeded: $0) })
  static let name = LocalDescriptor(uuid: BluetoothUUID(UInt16(0x2901)), value: Data("a name".utf8))

  static let services: [LocalService] = [
    LocalService(
      id: LocalServiceID(1), uuid: secondary, isPrimary: false,
      characteristics: []),
    LocalService(
      id: LocalServiceID(2), uuid: service, isPrimary: true, includedServices: [LocalServiceID(1)],
      characteristics: [
        LocalCharacteristic(
          id: LocalCharacteristicID(1), uuid: values, properties: [.read, .write, .writeWithoutResponse],
          permissions: [.read, .write], descriptors: [name]),
        LocalCharacteristic(
          id: LocalCharacteristicID(2), uuid: pushes, properties: [.notify], permissions: [],
          descriptors: [name]),
        LocalCharacteristic(
          id: LocalCharacteristicID(3), uuid: fixed, properties: [.read], permissions: [.read],
          staticValue: fixedValue),
        LocalCharacteristic(
          id: LocalCharacteristicID(4), uuid: secret, properties: [.read, .write, .notify],
          permissions: [.readEncrypted, .writeEncrypted], notifyRequiresEncryption: true),
        LocalCharacteristic(
          id: LocalCharacteristicID(5), uuid: indicated, properties: [.indicate], permissions: []),
      ]),
    LocalService(
      id: LocalServiceID(3), uuid: long, isPrimary: true,
      includedServices: [LocalServiceID(2)], characteristics: []),
    LocalService(
      id: LocalServiceID(4), uuid: BluetoothUUID(UInt16(0x180A)), isPrimary: true,
      includedServices: [LocalServiceID(3), LocalServiceID(1)], characteristics: []),
  ]

  static func make() throws -> AttributeTable {
    var table = AttributeTable(deviceName: "device")
    for service in services { _ = try table.add(service, client: 9) }
    return table
  }

  static func attribute(_ id: UInt64) -> LocalAttribute {
    LocalAttribute(client: 9, id: LocalCharacteristicID(id))
  }
}
