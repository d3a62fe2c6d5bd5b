internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Radio

extension CommandDeclaration {
  /// `scan`: who is there.
  static let scan = CommandDeclaration(
    name: "scan", summary: "List the devices that are in reach",
    discussion: ["Lists each device once, those that can receive only unless --all is given."],
    sections: [
      Section(title: "Options", options: [ScanCommand.time.declaration, ScanCommand.all.declaration]),
      RadioOptions.listeningSection,
    ],
    examples: [Example(line: "bluehaul scan --radio virtual:/tmp/air", effect: "the receivers in that air")],
    run: { try await ScanCommand($0).run() })
}

struct ScanCommand {
  static let time = Option(
    "for", .duration(in: .milliseconds(100)...(.seconds(86400))), "How long to listen (5s)")
  static let all = Flag("all", "Also list devices that cannot receive")

  private let invocation: Invocation

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    let radio = try invocation.environment.radio(RadioRequest.sender(invocation))
    let services = invocation.arguments[Self.all] ? nil : [HaulService.service]
    let time = invocation.arguments[Self.time] ?? .seconds(5)
    var count = 0
    for try await sighting in DeviceScan.sightings(on: radio, services: services, for: time) {
      count += 1
      invocation.printer.show(.sighting(sighting))
      if invocation.environment.output.isClosed { return }
    }
    try Task.checkCancellation()
    if count == 0 { invocation.printer.show(.nothingSeen(after: time)) }
  }
}

/// A device that was seen.
struct Sighting: Hashable, Sendable {
  var name: String?
  var identifier: UUID
  /// dBm; nil: not known.
  var rssi: Int?
  var services: [String]
}

extension Report {
  static func sighting(_ sighting: Sighting) -> Report {
    let name = sighting.name.map { Printable.text($0) } ?? "(no name)"
    let strength = sighting.rssi.map { "\($0) dBm" } ?? "– dBm"
    return Report(
      "device", .result, ["\(name)  \(strength)  \(sighting.identifier.uuidString)"],
      [
        .init("name", .optional(sighting.name)), .init("identifier", .string(sighting.identifier.uuidString)),
        .init("rssi", .optional(sighting.rssi)),
        .init("services", .array(sighting.services.map(JSONValue.string))),
      ])
  }

  static func nothingSeen(after time: Duration) -> Report {
    Report(
      "nothing_seen", .note, ["no device was seen in \(Amounts.time(time))"],
      [.init("seconds", .number(Amounts.seconds(time)))])
  }
}

/// Listens for advertisements, on a queue of its own.
// Sendable: what changes is used on `queue` only.
final class DeviceScan: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
  typealias Continuation = AsyncThrowingStream<Sighting, any Error>.Continuation

  private let queue = DispatchQueue(label: "bluehaul.scan")
  private let services: [CBUUID]?
  private let continuation: Continuation
  private var manager: CBCentralManager?
  private var seen: Set<UUID> = []

  /// The devices in reach, each once, until `time` has passed on the radio's clock.
  static func sightings(
    on radio: any Radio, services: [CBUUID]?, for time: Duration
  ) -> AsyncThrowingStream<Sighting, any Error> {
    AsyncThrowingStream { continuation in
      let scan = DeviceScan(services: services, continuation: continuation)
      // Time begins once the manager is there: simulated time would pass it by.
      radio.clock.async(on: scan.queue) {
        scan.start(radio)
        let timer = radio.clock.schedule(after: time) { continuation.finish() }
        continuation.onTermination = { _ in
          timer.cancel()
          scan.stop()
        }
      }
    }
  }

  private init(services: [CBUUID]?, continuation: Continuation) {
    self.services = services
    self.continuation = continuation
  }

  private func start(_ radio: any Radio) {
    manager = CBCentralManager(delegate: self, queue: queue, options: [CBManagerOptionRadioKey: radio])
  }

  private func stop() {
    queue.async {
      self.manager?.stopScan()
      self.manager = nil
    }
  }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn: central.scanForPeripherals(withServices: services)
    case .unknown, .resetting: break
    case .unsupported, .unauthorized, .poweredOff:
      continuation.finish(
        throwing: TransferError(
          .radioUnavailable, "the Bluetooth adapter cannot be used: it is \(central.state)",
          advice: "switch it on, or choose another with --radio"))
    }
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    guard seen.insert(peripheral.identifier).inserted else { return }
    let services = advertisementData[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
    continuation.yield(
      Sighting(
        name: advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? peripheral.name,
        identifier: peripheral.identifier, rssi: RSSI.intValue == 127 ? nil : RSSI.intValue,
        services: services.map(\.uuidString)))
  }
}
