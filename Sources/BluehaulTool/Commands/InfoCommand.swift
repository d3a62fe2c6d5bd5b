internal import BlueZRadio
internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Radio

extension CommandDeclaration {
  /// `info`: what a device offers.
  static let info = CommandDeclaration(
    name: "info", summary: "Connect to a device and show what it offers",
    discussion: [
      "Shows the services, characteristics and descriptors of the device, the values that can be read, the length of its packets, and what it"
        + " can be sent with."
    ],
    operands: [InfoCommand.device.declaration],
    sections: [
      Section(title: "Options", options: [TransferOptions.timeout.declaration]),
      RadioOptions.listeningSection,
    ],
    examples: [
      Example(line: "bluehaul info bench-1 --radio virtual:/tmp/air", effect: "what bench-1 offers")
    ],
    run: { try await InfoCommand($0).run() })
}

struct InfoCommand {
  static let device = Operand("DEVICE", .device, "Its name, its identifier, or its address")

  private let invocation: Invocation

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    guard let device = invocation.arguments.all(Self.device).first else { return }
    let radio = try await invocation.environment.radio(RadioRequest.sender(invocation))
    let survey = SurveyOperation(
      of: device.linkTarget(on: radio),
      stepLimit: invocation.arguments[TransferOptions.timeout] ?? .seconds(10),
      memory: KnownDevices(directory: try invocation.environment.stateDirectory()),
      managerOptions: [CBManagerOptionRadioKey: radio], clock: RadioTime(radio.clock))
    invocation.printer.show(.survey(try await survey.run()))
  }
}

extension Report {
  static func survey(_ survey: DeviceSurvey) -> Report {
    let address = BlueZRadio.address(of: survey.identifier)
    let name = survey.name.map { Printable.text($0) } ?? "(no name)"
    let title = [name, survey.identifier.uuidString, address].compactMap(\.self).joined(separator: "  ")
    let spoken = KnownUUID.protocols.filter { survey.has($0.service) }.map(\.name)
    let mtu = survey.longestWriteWithoutResponse + 3
    return Report(
      "device_info", .result,
      [
        title, "ATT MTU \(mtu): \(survey.longestWriteWithoutResponse) bytes in a write without response",
        "speaks: "
          + (spoken.isEmpty ? "no protocol that this program knows" : spoken.joined(separator: ", ")),
      ] + survey.services.flatMap(\.lines),
      [
        .init("name", .optional(survey.name)), .init("identifier", .string(survey.identifier.uuidString)),
        .init("address", .optional(address)), .init("att_mtu", .integer(mtu)),
        .init("protocols", .array(spoken.map(JSONValue.string))),
        .init("services", .array(survey.services.map(\.json))),
      ])
  }
}

extension DeviceSurvey.Service {
  fileprivate var lines: [String] {
    let kind = isPrimary ? "" : ", secondary"
    let includes = included.isEmpty ? "" : ", includes \(included.joined(separator: ", "))"
    return ["\(KnownUUID.title(uuid))\(kind)\(includes)"] + characteristics.flatMap(\.lines)
  }

  fileprivate var json: JSONValue {
    .object([
      .init("uuid", .string(uuid)), .init("name", .optional(KnownUUID.name(uuid))),
      .init("primary", .bool(isPrimary)), .init("includes", .array(included.map(JSONValue.string))),
      .init("characteristics", .array(characteristics.map(\.json))),
    ])
  }
}

extension DeviceSurvey.Characteristic {
  fileprivate var lines: [String] {
    let content = value.map { "  " + $0.shown } ?? failure.map { "  (\(Printable.text($0)))" } ?? ""
    return ["  \(KnownUUID.title(uuid))  \(properties.joined(separator: ", "))\(content)"]
      + descriptors.map { "    \(KnownUUID.title($0))" }
  }

  fileprivate var json: JSONValue {
    .object([
      .init("uuid", .string(uuid)), .init("name", .optional(KnownUUID.name(uuid))),
      .init("properties", .array(properties.map(JSONValue.string))),
      .init("value", .optional(value?.hexadecimal)), .init("failure", .optional(failure)),
      .init("descriptors", .array(descriptors.map(JSONValue.string))),
    ])
  }
}

extension Data {
  fileprivate var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

  /// A text where it is one, else its octets; long ones are cut.
  fileprivate var shown: String {
    if isEmpty { return "(empty)" }
    if let text = String(bytes: self, encoding: .utf8), text.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) {
      return "\"\(Printable.text(text))\""
    }
    return count <= 32 ? hexadecimal : "\(prefix(32).hexadecimal)... (\(count) bytes)"
  }
}
