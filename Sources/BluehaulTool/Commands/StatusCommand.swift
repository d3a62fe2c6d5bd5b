internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `status [forget]`: what is unfinished.
  static let status = CommandDeclaration(
    name: "status", summary: "Tell which transfers are unfinished and where they stand, or forget one",
    discussion: [
      "Lists the journals of interrupted transfers, the last one first. What counts is what the device has confirmed;"
        + " when a transfer goes on, the device is asked again."
    ],
    subcommands: [
      CommandDeclaration(
        name: "forget", summary: "Forget an unfinished transfer, all of a device, or all there are",
        discussion: [
          "Removes the journal; the device keeps what it has, and another push of the same file goes on there."
            + " A transfer that a process works on is left alone."
        ],
        operands: [StatusCommand.which.declaration],
        sections: [Section(title: "Options", options: [StatusCommand.all.declaration])],
        examples: [
          Example(
            line: "bluehaul status forget 3fa94c01",
            effect: "the transfer that status shows under this number"),
          Example(
            line: "bluehaul status forget bech-1", effect: "what was meant for a device that does not exist"),
        ],
        run: { try StatusCommand.forget($0) })
    ],
    examples: [Example(line: "bluehaul status --json", effect: "one object for each unfinished transfer")],
    run: { try StatusCommand.run($0) })
}

enum StatusCommand {
  static let which = Operand(
    "WHICH", .text("WHICH"), "The beginning of its identifier, or the device: its name or its identifier",
    count: .any)
  static let all = Flag("all", "Forget every one, those that cannot be read included")

  static func run(_ invocation: Invocation) throws(TransferError) {
    let journal = TransferJournal(directory: try invocation.environment.stateDirectory())
    let entries = try journal.entries()
    for entry in entries {
      if let record = try? entry.record.get() { invocation.printer.show(.unfinished(record)) }
      if let damage = entry.damage { invocation.printer.show(.warning(damage)) }
    }
    if entries.isEmpty { invocation.printer.show(.nothingUnfinished) }
  }

  static func forget(_ invocation: Invocation) throws {
    let words = invocation.arguments.all(which)
    let takesAll = invocation.arguments[all]
    guard takesAll != !words.isEmpty else {
      throw UsageError(
        "bluehaul status forget needs WHICH or --all, and not both", command: "bluehaul status forget")
    }
    let journal = TransferJournal(directory: try invocation.environment.stateDirectory())
    let entries = try journal.entries()
    let meant = takesAll ? entries : try Self.meant(words, among: entries)
    if meant.isEmpty { invocation.printer.show(.nothingUnfinished) }
    // One that is in use keeps no other from going.
    var refusal: TransferError?
    for entry in meant {
      do throws(TransferError) {
        try journal.forget(entry)
        invocation.printer.show(.forgotten(entry))
      } catch {
        if let refusal { invocation.printer.show(.warning(refusal)) }
        refusal = error
      }
    }
    if let refusal { throw refusal }
  }

  /// All entries that the words name; where a word does not say which one, or says none, nothing is forgotten.
  private static func meant(
    _ words: [String], among entries: [TransferJournal.Entry]
  ) throws(UsageError) -> [TransferJournal.Entry] {
    var paths: Set<String> = []
    for word in words {
      let ofDevice = entries.filter { $0.isFor(word) }
      let named = ofDevice.isEmpty ? entries.filter { $0.identifier.hasPrefix(word.lowercased()) } : ofDevice
      guard !named.isEmpty else {
        throw UsageError(
          "no unfinished transfer is called \(word) or is for a device of that name; see bluehaul status",
          command: "bluehaul status forget")
      }
      guard !ofDevice.isEmpty || named.count == 1 else {
        throw UsageError(
          "\(named.count) transfers begin with \(word): \(named.map { $0.identifier.prefix(12) }.joined(separator: ", "))",
          command: "bluehaul status forget")
      }
      paths.formUnion(named.map(\.path))
    }
    return entries.filter { paths.contains($0.path) }
  }
}

extension TransferJournal.Entry {
  /// The identifier of the transfer, or the name of a file that cannot be read.
  fileprivate var identifier: String {
    if case .success(let record) = record { return record.transferID.hex }
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return name.hasSuffix(".json") ? String(name.dropLast(5)) : name
  }

  /// Why no record is to be had, with what to do about it; nil: there is one.
  var damage: TransferError? {
    guard case .failure(var error) = record else { return nil }
    if error.code == .damagedState, error.advice == nil {
      error.advice =
        "bluehaul status forget \(Printable.shellWord(identifier)) removes it; another push goes on where the device stands"
    }
    return error
  }

  fileprivate func isFor(_ device: String) -> Bool {
    guard case .success(let record) = record else { return false }
    return record.device.name == device || record.device.identifier == device.uppercased()
  }
}

extension SHA256Digest {
  /// The beginning of a transfer's identifier with which a person names it.
  var shortID: String { String(hex.prefix(12)) }
}

extension TransferRecord {
  /// The beginning of the identifier with which a person names it.
  var shortID: String { transferID.shortID }

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
    lines.append("    go on with: \(ResumeCommand.line(record.transferID, to: record.device))")
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

  static func forgotten(_ entry: TransferJournal.Entry) -> Report {
    let record = try? entry.record.get()
    let words =
      record.map { "\($0.shortID) to \(Printable.text($0.deviceName))" } ?? Printable.text(entry.path)
    return Report(
      "forgotten_transfer", .result, ["forgotten: \(words)"],
      [
        .init("id", .optional(record?.transferID.hex)), .init("device", .optional(record?.deviceName)),
        .init("path", .string(entry.path)),
      ])
  }

  /// An error that does not end the run.
  static func warning(_ error: TransferError) -> Report {
    Report(
      "warning", .warning,
      [Printable.text(error.adviceWithOption.map { "\(error.message); \($0)" } ?? error.message, limit: 600)],
      [
        .init("code", .string(error.code.rawValue)), .init("message", .string(error.message)),
        .init("advice", .optional(error.adviceWithOption)),
      ])
  }
}
