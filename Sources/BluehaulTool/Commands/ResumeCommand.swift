internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `resume [ID]`: an interrupted push.
  static let resume = CommandDeclaration(
    name: "resume", summary: "Go on with an interrupted push where the device stands",
    discussion: [
      "ID is the beginning of the identifier that status shows; it can be left out while only one transfer is unfinished."
        + " The files must be the same, byte for byte. A base is the one that was given, unless it is gone or --base names another."
    ],
    operands: [ResumeCommand.id.declaration],
    sections: [
      Section(title: "Options", options: [ResumeCommand.to.declaration]), TransferOptions.codingSection,
      RadioOptions.senderSection, TransferOptions.section,
    ],
    examples: [
      Example(line: "bluehaul resume", effect: "the one unfinished transfer, on the radio that it began on"),
      Example(line: "bluehaul resume --to bench-1", effect: "what is unfinished at that device"),
    ],
    run: { try await ResumeCommand($0).run() })
}

struct ResumeCommand {
  static let id = Operand("ID", .text("ID"), "Which transfer", count: .optional)
  static let to = Option("to", .device, "The device, where more than one has something unfinished")

  /// The command that goes on with a transfer, as a shell reads it. It always names the device: the same files may be unfinished at several.
  static func line(_ transferID: SHA256Digest, to device: TransferManifest.Target) -> String {
    "bluehaul resume \(transferID.shortID) \(Printable.shellOption(to.declaration.name, device.word))"
  }

  private let invocation: Invocation

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    guard let record = try unfinished() else {
      invocation.printer.show(.nothingUnfinished)
      return
    }
    let objects = try record.objects.map { try described($0, of: record) }
    let plan = try PushPlan(TransferManifest(objects: objects, target: record.device))
    let coding = try TransferCoding(
      invocation.arguments, command: "bluehaul resume", objects: objects.count, former: record.link)
    let run = TransferRun(
      plan: plan, device: record.device, options: try TransferOptions.push(invocation.arguments),
      radio: try RadioRequest.sender(
        invocation, otherwise: record.link["radio"], totalBytes: plan.manifest.totalSize), coding: coding)
    try await run.run(invocation)
  }

  /// The transfer that is meant; nil where none is unfinished and none was named.
  private func unfinished() throws -> TransferRecord? {
    let journal = TransferJournal(directory: try invocation.environment.stateDirectory())
    let entries = try journal.entries()
    let records = entries.compactMap { try? $0.record.get() }
    let damages = entries.compactMap(\.damage)
    // Not "nothing is unfinished": that would be taken for success.
    let ending = records.isEmpty ? damages.last : nil
    for damage in ending == nil ? damages : damages.dropLast() { invocation.printer.show(.warning(damage)) }
    if let ending { throw ending }
    let id = invocation.arguments.all(Self.id).first
    let device = invocation.arguments[Self.to]
    var meant: [TransferRecord] = []
    for record in records {
      guard id.map({ record.transferID.hex.hasPrefix($0.lowercased()) }) ?? true,
        device.map(record.device.isMeant(by:)) ?? true,
        // The same transfer, to the same device by other words for it: the last one.
        !meant.contains(where: {
          $0.transferID == record.transferID && $0.device.linkTarget == record.device.linkTarget
        })
      else { continue }
      meant.append(record)
    }
    if meant.isEmpty, id != nil || device != nil {
      let which = id.map { "begins with \"\($0)\"" } ?? "is for that device"
      throw UsageError(
        "no unfinished transfer \(which); see bluehaul status", command: "bluehaul resume")
    }
    guard meant.count <= 1 else {
      let names = meant.map { "\($0.shortID) to \($0.deviceName)" }.joined(separator: ", ")
      throw UsageError(
        "\(meant.count) transfers are meant: \(names); name one, or its device with --to",
        command: "bluehaul resume")
    }
    return meant.first
  }

  /// Reads a file again; only its hash says whether it is the same.
  private func described(
    _ object: TransferRecord.Object, of record: TransferRecord
  ) throws(TransferError) -> TransferManifest.Object {
    let options = ImageFile.Options(treatsAsRaw: object.format == .raw, range: object.range)
    let found = try invocation.describe(
      ImageFile(path: object.path, options: options), name: object.name, path: object.path)
    guard found.sha256 == object.sha256, found.size == object.size else {
      throw TransferError(
        .unusableFile,
        "\(object.path) has changed since \(record.started.formatted(.iso8601)), when its transfer began",
        advice: "push it again: that begins anew with the file as it is now")
    }
    return found
  }
}

extension TransferManifest.Target {
  /// Whether a person who says `device` means this one: by what the link looks for, or by the name that stands beside an identifier.
  fileprivate func isMeant(by device: TransferManifest.Target) -> Bool {
    linkTarget == device.linkTarget || word == device.word || (name != nil && name == device.name)
  }
}
