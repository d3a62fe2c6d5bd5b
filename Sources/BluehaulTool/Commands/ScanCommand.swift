internal import BlueZRadio
internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Locking
internal import Radio

extension CommandDeclaration {
  /// `scan`: who is there.
  static let scan = CommandDeclaration(
    name: "scan", summary: "List the devices that are in reach",
    discussion: [
      "Lists each device once, those that can receive only unless --all is given. A device of which more becomes known later, such as its name, is"
        + " listed again with that; the line ends with (again)."
    ],
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
    let radio = try await invocation.environment.radio(RadioRequest.sender(invocation))
    let time = invocation.arguments[Self.time] ?? .seconds(5)
    let scan = DeviceScan(
      services: invocation.arguments[Self.all] ? [] : [HaulService.service],
      managerOptions: [CBManagerOptionRadioKey: radio], clock: RadioTime(radio.clock))
    var count = 0
    let omitted = PosixMutex(0)
    let sightings = scan.sightings(for: time) { count in omitted.withLock { $0 = count } }
    for try await sighting in sightings {
      count += 1
      invocation.printer.show(.sighting(sighting))
      if invocation.environment.output.isClosed { return }
    }
    try Task.checkCancellation()
    let unread = omitted.withLock { $0 }
    if unread > 0 { invocation.printer.show(.leftOut(unread)) }
    if count == 0 { invocation.printer.show(.nothingSeen(after: time)) }
  }
}

extension Report {
  static func sighting(_ sighting: DeviceSighting) -> Report {
    let called = sighting.advertisedName ?? sighting.knownName
    let name = called.map { Printable.text($0) } ?? "(no name)"
    let strength = sighting.rssi.map { "\($0) dBm" } ?? "– dBm"
    let address = BlueZRadio.address(of: sighting.identifier)
    let services =
      sighting.services.isEmpty
      ? "" : "  " + sighting.services.map { KnownUUID.name($0) ?? $0 }.joined(separator: ", ")
    return Report(
      sighting.isUpdate ? "device_update" : "device", .result,
      [
        "\(name)  \(strength)  \(sighting.identifier.uuidString)" + (address.map { "  \($0)" } ?? "")
          + services + (sighting.isUpdate ? "  (again)" : "")
      ],
      [
        .init("name", .optional(called)), .init("identifier", .string(sighting.identifier.uuidString)),
        .init("address", .optional(address)), .init("rssi", .optional(sighting.rssi)),
        .init("services", .array(sighting.services.map(JSONValue.string))),
      ])
  }

  static func leftOut(_ count: Int) -> Report {
    Report(
      "sightings_left_out", .warning,
      ["\(count) sightings came while the output was not read, and are left out: scan again"],
      [.init("count", .integer(count))])
  }

  static func nothingSeen(after time: Duration) -> Report {
    Report(
      "nothing_seen", .note, ["no device was seen in \(Amounts.time(time))"],
      [.init("seconds", .number(Amounts.seconds(time)))])
  }
}
