internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `manifest create|show|verify`.
  static let manifest = CommandDeclaration(
    name: "manifest", summary: "Describe transfers in files: create, show, verify",
    discussion: [
      "A manifest says which files are to be moved, with their sizes and checksums: docs/manifest.md."
    ],
    subcommands: [
      CommandDeclaration(
        name: "create", summary: "Describe files in a manifest",
        operands: [ManifestCommand.files.declaration],
        sections: [
          Section(
            title: "Options",
            options: [
              ManifestCommand.output.declaration, ManifestCommand.target.declaration,
              ManifestCommand.segment.declaration, TransferOptions.raw.declaration,
              TransferOptions.range.declaration,
            ])
        ],
        examples: [
          Example(
            line: "bluehaul manifest create app.bin net.bin --output release.json",
            effect: "two files, in this order")
        ],
        run: { try ManifestCommand.create($0) }),
      CommandDeclaration(
        name: "show", summary: "Show what a manifest describes",
        operands: [ManifestCommand.manifest.declaration],
        run: { try ManifestCommand.show($0) }),
      CommandDeclaration(
        name: "verify", summary: "Compare files with the manifest that describes them",
        operands: [ManifestCommand.manifest.declaration], run: { try ManifestCommand.verify($0) }),
    ])
}

enum ManifestCommand {
  static let files = Operand("FILE", .text("FILE"), "The files to describe, in this order", count: .oneOrMore)
  static let manifest = Operand("MANIFEST", .text("MANIFEST"), "The manifest")
  static let output = Option("output", .text("MANIFEST"), "Where to write it (standard output)")
  static let target = Option("to", .device, "The device that it is for")
  static let segment = Option(
    "segment", .segmentSize, "How much has a checksum of its own: a power of two, 4KiB to 1MiB (by size)")

  static func create(_ invocation: Invocation) throws(TransferError) {
    let arguments = invocation.arguments
    let output = arguments[output]
    let home = output.map { folder(of: absolute($0)) }
    var file: OutputFile?
    if let output { file = try OutputFile(path: output, kind: .manifest) }
    var objects: [TransferManifest.Object] = []
    for path in arguments.all(files) {
      if let file, let input = try? OutputFile(path: path, kind: .manifest), input.isSame(as: file) {
        throw TransferError(
          .invalidArgument, "\(Printable.text(path)) cannot be described and be written over",
          advice: "name another file with \(ManifestCommand.output.declaration.usage)")
      }
      let image = try ImageFile(path: path, options: TransferOptions.image(arguments))
      objects.append(
        // Without a file of its own, the manifest is all of the output.
        try invocation.describe(
          image, path: relative(absolute(path), to: home), segmentSize: arguments[segment],
          isTold: file != nil))
    }
    // Whole seconds, as it is written.
    let now = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down))
    let manifest = try TransferManifest(objects: objects, target: arguments[target], created: now)
    guard let file else {
      invocation.environment.output.write(String(decoding: try manifest.encoded(), as: UTF8.self))
      return
    }
    try file.write(manifest.encoded())
    invocation.printer.show(.manifest(manifest, path: file.path, event: "manifest_created", level: .note))
  }

  static func show(_ invocation: Invocation) throws(TransferError) {
    for path in invocation.arguments.all(manifest) {
      invocation.printer.show(
        .manifest(try TransferManifest.given(path), path: path, event: "manifest", level: .result))
    }
  }

  static func verify(_ invocation: Invocation) throws(TransferError) {
    for path in invocation.arguments.all(manifest) {
      for object in try TransferManifest.given(path).objects {
        let image = try object.openImage(in: folder(of: path))
        if let difference = try object.firstDifference(in: image.source) {
          throw TransferError(
            .unusableFile,
            "\(object.resolvedPath(in: folder(of: path))) is not what \(path) describes: \(difference)",
            advice: "bring the file back, or create the manifest again")
        }
        invocation.printer.show(.objectMatches(object))
      }
    }
  }

  /// The folder in which relative paths of a manifest begin.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  static func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
  }

  /// A path below `home` as it is written in a manifest there; others stay.
  private static func relative(_ path: String, to home: String?) -> String {
    guard let home, path.hasPrefix(home + "/") else { return path }
    return String(path.dropFirst(home.count + 1))
  }
}

extension TransferManifest {
  /// Reads a manifest that the user has named: what is wrong with it is the file's fault, not that of stored state.
  static func given(_ path: String) throws(TransferError) -> TransferManifest {
    do throws(TransferError) {
      return try TransferManifest(path: path)
    } catch {
      guard error.code == .damagedState else { throw error }
      throw TransferError(.malformedFile, error.message, advice: error.advice ?? "create the manifest again")
    }
  }
}

extension Report {
  static func manifest(
    _ manifest: TransferManifest, path: String, event: String, level: Report.Level
  ) -> Report {
    let device = manifest.target.flatMap { $0.name ?? $0.identifier }
    let size = Int(clamping: manifest.totalSize)
    var lines = [
      "\(Printable.text(path)): \(manifest.objects.count) file\(manifest.objects.count == 1 ? "" : "s"),"
        + " \(Amounts.bytes(size))\(device.map { ", for \(Printable.text($0))" } ?? "")",
      "  transfer: \(manifest.transferID.hex)",
    ]
    for object in manifest.objects {
      lines.append(
        "  \(Printable.text(object.name)): \(object.size) bytes, \(object.format.rawValue)"
          + "\(object.range.map { " \($0)" } ?? ""), SHA-256 \(object.sha256.hex)")
    }
    return Report(
      event, level, lines,
      [
        .init("path", .string(path)), .init("id", .string(manifest.transferID.hex)),
        .init("device", .optional(device)), .init("total", .integer(size)),
        .init(
          "objects",
          .array(
            manifest.objects.map { object in
              .object([
                .init("name", .string(object.name)), .init("path", .string(object.path)),
                .init("format", .string(object.format.rawValue)),
                .init("range", .optional(object.range?.description)),
                .init("size", .integer(Int(clamping: object.size))),
                .init("sha256", .string(object.sha256.hex)),
                .init("segment_size", .integer(object.segments.segmentSize)),
              ])
            })),
      ])
  }

  static func objectMatches(_ object: TransferManifest.Object) -> Report {
    Report(
      "matches", .result, ["\(Printable.text(object.name)): as described, SHA-256 \(object.sha256.hex)"],
      [
        .init("object", .string(object.name)), .init("size", .integer(Int(clamping: object.size))),
        .init("sha256", .string(object.sha256.hex)),
      ])
  }
}
