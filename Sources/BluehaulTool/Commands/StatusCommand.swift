internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `status`: what is unfinished.
  static let status = CommandDeclaration(
    name: "status", summary: "Tell which transfers are unfinished and where they stand",
    discussion: [
      "Lists the journals of interrupted transfers, the last one first. What counts is what the device has confirmed;"
        + " when a transfer goes on, the device is asked again."
    ],
    examples: [Example(line: "bluehaul status --json", effect: "one object for each unfinished transfer")],
    run: { try StatusCommand.run($0) })
}

enum StatusCommand {
  static func run(_ invocation: Invocation) throws(TransferError) {
    let journal = TransferJournal(directory: try invocation.environment.stateDirectory())
    let entries = try journal.entries()
    for entry in entries {
      switch entry.record {
      case .success(let record): invocation.printer.show(.unfinished(record))
      case .failure(let error): invocation.printer.show(.warning(error))
      }
    }
    if entries.isEmpty { invocation.printer.show(.nothingUnfinished) }
  }
}

extension TransferRecord {
  /// The beginning of the identifier with which a person names it.
  var shortID: String { String(transferID.hex.prefix(12)) }

  var deviceName: String { device.name ?? device.identifier ?? "" }
}

extension Report {
  static let nothingUnfinished = Report("nothing_unfinished", .result, ["nothing is unfinished"], [])

  static func unfinished(_ record: TransferRecord) -> Report {
    let total = record.objects.map(\.size).reduce(0, Amounts.sum)
    let confirmed = record.objects.map { min($0.confirmed, $0.size) }.reduce(0, Amounts.sum)
    var meter = PercentMeter()
    let percent = meter.percent(
      of: TransferProgress(phase: .transfer, object: "", totalBytes: total, confirmedBytes: confirmed))
    let names = record.objects.map { Printable.text($0.name) }.joined(separator: ", ")
    var lines = [
      "\(record.shortID)  \(names) to \(Printable.text(record.deviceName)): \(percent ?? 0) %,"
        + " \(Amounts.bytes(confirmed)) of \(Amounts.bytes(total)) confirmed"
    ]
    let updated = record.updated.formatted(.iso8601)
    if let failure = record.lastError {
      lines.append("    \(updated): \(Printable.text(failure.message))")
    } else {
      lines.append("    \(updated): under way, or ended without a word")
    }
    lines.append("    go on with: bluehaul resume \(record.shortID)")
    return Report(
      "unfinished", .result, lines,
      [
        .init("id", .string(record.transferID.hex)), .init("device", .string(record.deviceName)),
        .init("total", .integer(total)), .init("confirmed", .integer(confirmed)),
        .init("percent", .optional(percent)), .init("started", .string(record.started.formatted(.iso8601))),
        .init("updated", .string(updated)), .init("last_error", .optional(record.lastError?.code.rawValue)),
        .init("last_message", .optional(record.lastError?.message)),
        .init(
          "objects",
          .array(
            record.objects.map { object in
              .object([
                .init("name", .string(object.name)), .init("path", .string(object.path)),
                .init("size", .integer(Int(clamping: object.size))),
                .init("confirmed", .integer(Int(clamping: object.confirmed))),
                .init("sha256", .string(object.sha256.hex)),
              ])
            })),
      ])
  }

  /// An error that does not end the run.
  static func warning(_ error: TransferError) -> Report {
    Report(
      "warning", .warning, [Printable.text(error.description, limit: 600)],
      [
        .init("code", .string(error.code.rawValue)), .init("message", .string(error.message)),
        .init("advice", .optional(error.advice)),
      ])
  }
}
