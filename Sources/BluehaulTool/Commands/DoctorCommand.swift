internal import BlueZRadio
internal import BulkTransfer

extension CommandDeclaration {
  /// `doctor`: what stands in the way of Bluetooth.
  static let doctor = CommandDeclaration(
    name: "doctor", summary: "Check this host's Bluetooth, and say how to mend it",
    discussion: [
      "Looks at the kernel, the system bus, bluetoothd, permissions and adapters, and changes no setting."
        + " Ends with the exit code 4 where something has to be mended first."
    ],
    sections: [Section(title: "Options", options: [DoctorCommand.adapter.declaration])],
    examples: [Example(line: "bluehaul doctor --adapter hci1", effect: "about that adapter")],
    run: { try await DoctorCommand($0).run() })
}

struct DoctorCommand {
  static let adapter = Option("adapter", .adapter, "The adapter that is meant, such as hci1 (any)")

  private let invocation: Invocation

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    let findings = await invocation.environment.examine(invocation.arguments[Self.adapter])
    for finding in findings { invocation.printer.show(.finding(finding)) }
    let problems = findings.count { $0.level == .problem }
    guard problems > 0 else { return }
    throw TransferError(
      .radioUnavailable, problems == 1 ? "one thing has to be mended" : "\(problems) things have to be mended"
    )
  }
}

extension ValueSyntax where Value == String {
  /// The kernel's name of an adapter.
  static var adapter: Self {
    Self("ADAPTER") { text throws(InvalidValue) in
      guard BlueZRadio.canBeAdapter(text) else { throw InvalidValue("is no adapter; give hci0, hci1, ...") }
      return text
    }
  }
}

extension Report {
  static func finding(_ finding: Finding) -> Report {
    let mark =
      switch finding.level {
      case .good: "ok      "
      case .note: "note    "
      case .problem: "PROBLEM "
      }
    let advice = finding.advice.map { ["        \(Printable.text($0, limit: 600))"] } ?? []
    return Report(
      "finding", .result,
      ["\(mark)\(finding.check): \(Printable.text(finding.message, limit: 600))"] + advice,
      [
        .init("check", .string(finding.check)), .init("level", .string(finding.level.rawValue)),
        .init("message", .string(finding.message)), .init("advice", .optional(finding.advice)),
      ])
  }
}
