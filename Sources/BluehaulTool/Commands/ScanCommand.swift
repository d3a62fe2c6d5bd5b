internal import BlueZRadio
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
    let radio = try await invocation.environment.radio(RadioRequest.sender(invocation))
    let time = invocation.arguments[Self.time] ?? .seconds(5)
    let scan = DeviceScan(
      services: invocation.arguments[Self.all] ? [] : [HaulService.service],
      managerOptions: [CBManagerOptionRadioKey: radio], clock: RadioTime(radio.clock))
    var count = 0
    for try await sighting in scan.sightings(for: time) {
      count += 1
      invocation.printer.show(.sighting(sighting))
      if invocation.environment.output.isClosed { return }
    }
    try Task.checkCancellation()
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
      "device", .result,
      [
        "\(name)  \(strength)  \(sighting.identifier.uuidString)" + (address.map { "  \($0)" } ?? "")
          + services
      ],
      [
        .init("name", .optional(called)), .init("identifier", .string(sighting.identifier.uuidString)),
        .init("address", .optional(address)), .init("rssi", .optional(sighting.rssi)),
        .init("services", .array(sighting.services.map(JSONValue.string))),
      ])
  }

  static func nothingSeen(after time: Duration) -> Report {
    Report(
      "nothing_seen", .note, ["no device was seen in \(Amounts.time(time))"],
      [.init("seconds", .number(Amounts.seconds(time)))])
  }
}
