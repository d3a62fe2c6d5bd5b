internal import BulkTransfer
internal import Foundation

extension CommandDeclaration {
  /// `push`: files to a device.
  static let push = CommandDeclaration(
    name: "push", summary: "Send files to a device, which verifies them",
    discussion: [
      "Takes raw files, Intel HEX and MCUboot images, recognised by their contents; others are refused with what they are."
        + " A transfer that was interrupted goes on where the device stands, with the same command or with resume.",
      "With the exit code 0 the device has read every file back from its storage and found it equal.",
    ],
    operands: [PushCommand.files.declaration],
    sections: [
      Section(
        title: "Options",
        options: [
          PushCommand.to.declaration, PushCommand.manifest.declaration, PushCommand.name.declaration,
          TransferOptions.raw.declaration, TransferOptions.range.declaration, PushCommand.restart.declaration,
        ]), TransferOptions.codingSection, RadioOptions.senderSection, TransferOptions.section,
    ],
    examples: [
      Example(line: "bluehaul push fw.bin --radio virtual:/tmp/air --to bench-1", effect: "one image"),
      Example(
        line: "bluehaul push app.hex --range 0x26000-0x3FFFF --to bench-1",
        effect: "a part of an Intel HEX file"),
      Example(
        line: "bluehaul push --manifest release.json --to bench-1", effect: "what a manifest describes"),
      Example(
        line: "bluehaul push fw-2.bin --base fw-1.bin --to bench-1",
        effect: "only what changed since fw-1.bin, where the receiver holds that"),
    ],
    run: { try await PushCommand($0).run() })
}

struct PushCommand {
  static let files = Operand("FILE", .text("FILE"), "The files to send, in this order", count: .any)
  static let to = Option("to", .device, "The device: its name or its identifier")
  static let manifest = Option(
    "manifest", .text("MANIFEST"), "Send what this manifest describes, instead of files")
  static let name = Option(
    "name", .text("NAME"), "What the receiver is to call the file (as it is called here)")
  static let restart = Flag("restart", "Begin at 0, whatever parts the device and the journal hold")

  private let invocation: Invocation
  private var arguments: ParsedArguments { invocation.arguments }

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    guard arguments[Self.to] != nil || arguments[Self.manifest] != nil else { throw Self.noDevice }
    let (manifest, folder) = try described()
    guard let device = arguments[Self.to] ?? manifest.target else { throw Self.noDevice }
    var options = try TransferOptions.push(arguments)
    options.restarts = arguments[Self.restart]
    let request = try RadioRequest.sender(invocation, totalBytes: manifest.totalSize)
    let coding = try TransferCoding(arguments, command: "bluehaul push", objects: manifest.objects.count)
    let run = TransferRun(
      plan: try PushPlan(manifest, folder: folder), device: device, options: options, radio: request,
      coding: coding)
    try await run.run(invocation)
  }

  private static let noDevice = UsageError(
    "bluehaul push needs \(to.declaration.usage): the device, by its name or its identifier",
    command: "bluehaul push")

  /// What is to be sent, and where its relative paths begin.
  private func described() throws -> (TransferManifest, folder: String) {
    let files = arguments.all(Self.files)
    if let path = arguments[Self.manifest] {
      guard files.isEmpty, arguments[Self.name] == nil, !arguments[TransferOptions.raw],
        arguments[TransferOptions.range] == nil
      else {
        throw UsageError(
          "--manifest says what to send: it does not go with FILE, --name, --raw and --range",
          command: "bluehaul push")
      }
      return (try TransferManifest.given(path), ManifestCommand.folder(of: path))
    }
    guard !files.isEmpty else {
      throw UsageError("bluehaul push needs FILE, or --manifest MANIFEST", command: "bluehaul push")
    }
    guard files.count == 1 || arguments[Self.name] == nil else {
      throw UsageError("--name is for one file, not for \(files.count)", command: "bluehaul push")
    }
    let objects = try files.map { path in
      try invocation.describe(
        ImageFile(path: path, options: TransferOptions.image(arguments)), name: arguments[Self.name],
        path: ManifestCommand.absolute(path))
    }
    return (try TransferManifest(objects: objects), "")
  }
}
