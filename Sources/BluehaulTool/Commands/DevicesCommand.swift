internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `devices [forget]`: what is remembered.
  static let devices = CommandDeclaration(
    name: "devices", summary: "List the devices that are remembered, or forget one",
    discussion: [
      "Lists the devices that were connected to, the last one first. They are found faster, also while they do not advertise;"
        + " what a device advertises counts before what is remembered of it."
    ],
    subcommands: [
      CommandDeclaration(
        name: "forget", summary: "Forget a device, or all devices of a name",
        operands: [DevicesCommand.device.declaration],
        examples: [Example(line: "bluehaul devices forget bench-1", effect: "the devices of that name")],
        run: { try DevicesCommand.forget($0) })
    ],
    examples: [Example(line: "bluehaul devices --json", effect: "one object for each device")],
    run: { try DevicesCommand.list($0) })
}

enum DevicesCommand {
  static let device = Operand("DEVICE", .device, "Its name or its identifier")

  static func list(_ invocation: Invocation) throws(TransferError) {
    let devices: [KnownDevices.Device]
    do throws(TransferError) {
      devices = try KnownDevices(directory: invocation.environment.stateDirectory()).devices()
    } catch {
      guard error.code == .damagedState else { throw error }
      invocation.printer.show(.warning(error))
      devices = []
    }
    for device in devices { invocation.printer.show(.known(device)) }
    if devices.isEmpty { invocation.printer.show(.nothingKnown) }
  }

  static func forget(_ invocation: Invocation) throws {
    let meant = invocation.arguments.all(device).first?.linkTarget
    let devices = KnownDevices(directory: try invocation.environment.stateDirectory())
    let gone = try devices.forget { device in
      meant?.matches(device.identifier, advertised: nil, known: device.name) == true
    }
    for device in gone { invocation.printer.show(.forgotten(device)) }
    if gone.isEmpty, let meant {
      throw UsageError(
        "no known device is \(meant); see bluehaul devices", command: "bluehaul devices forget")
    }
  }
}

extension Report {
  static let nothingKnown = Report("nothing_known", .result, ["no device is known"], [])

  static func known(_ device: KnownDevices.Device) -> Report {
    Report(
      "known_device", .result,
      ["\(device.words)  last connected \(device.lastConnected.formatted(.iso8601))"], device.members)
  }

  static func forgotten(_ device: KnownDevices.Device) -> Report {
    Report("forgotten", .result, ["forgotten: \(device.words)"], device.members)
  }
}

extension KnownDevices.Device {
  fileprivate var words: String {
    "\(name.map { Printable.text($0) } ?? "(no name)")  \(identifier.uuidString)"
  }

  fileprivate var members: [JSONValue.Member] {
    [
      .init("name", .optional(name)), .init("identifier", .string(identifier.uuidString)),
      .init("last_connected", .string(lastConnected.formatted(.iso8601))),
      .init("services", .array(services.map(JSONValue.string))),
    ]
  }
}
