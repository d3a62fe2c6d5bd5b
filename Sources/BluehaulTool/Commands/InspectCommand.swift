internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `inspect FILE`: what it is, and whether it can be sent.
  static let inspect = CommandDeclaration(
    name: "inspect", summary: "Tell what a file is, and whether and how it would be sent",
    discussion: [
      "The contents decide, never the name. A file that cannot be sent ends with the exit code 3 and what to do."
    ],
    operands: [InspectCommand.file.declaration],
    sections: [
      Section(
        title: "Options", options: [TransferOptions.raw.declaration, TransferOptions.range.declaration])
    ],
    examples: [
      Example(line: "bluehaul inspect fw.hex", effect: "its sections"),
      Example(
        line: "bluehaul inspect fw.hex --range 0x26000-0x3FFFF",
        effect: "what a push of that range would send"),
    ],
    run: { try InspectCommand.run($0) })
}

enum InspectCommand {
  static let file = Operand("FILE", .text("FILE"), "The file")

  static func run(_ invocation: Invocation) throws {
    let options = TransferOptions.image(invocation.arguments)
    for path in invocation.arguments.all(file) {
      let inspection = try ImageFile.inspect(path: path, options: options)
      var object: TransferManifest.Object?
      if inspection.obstacle == nil {
        object = try invocation.describe(ImageFile(path: path, options: options))
      }
      invocation.printer.show(.inspected(inspection, object))
      // Whatever is in the way, it is the file's matter here.
      if let obstacle = inspection.obstacle {
        throw Failure(
          code: obstacle.code.rawValue, message: obstacle.message, advice: obstacle.adviceWithOption,
          exitCode: .badFile
        )
      }
    }
  }
}

extension Report {
  /// The most sections that are listed for people.
  private static let mostSections = 32

  static func inspected(_ file: FileInspection, _ object: TransferManifest.Object?) -> Report {
    var lines = [
      "\(Printable.text(file.path)): \(file.format.title), \(Amounts.bytes(Int(clamping: file.fileSize)))"
    ]
    lines += file.facts.map { "  \($0.key): \(Printable.text($0.value))" }
    lines += file.sections.prefix(mostSections).map { section in
      "  addresses: \(section), \(Amounts.bytes(Int(clamping: section.count)))"
    }
    if file.sections.count > mostSections {
      lines.append("  and \(file.sections.count - mostSections) more sections")
    }
    if let object { lines.append("  sends: \(object.size) bytes, SHA-256 \(object.sha256.hex)") }
    return Report(
      "file", .result, lines,
      [
        .init("path", .string(file.path)), .init("format", .string(file.format.rawValue)),
        .init("file_size", .integer(Int(clamping: file.fileSize))), .init("sendable", .bool(object != nil)),
        .init("size", .optional(object.map { Int(clamping: $0.size) })),
        .init("sha256", .optional(object?.sha256.hex)),
        .init("facts", .object(file.facts.map { .init($0.key, .string($0.value)) })),
        .init("sections", .array(file.sections.map { .string($0.description) })),
      ])
  }
}
