internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import VirtualRadio

extension CommandDeclaration {
  /// `demo`: a whole transfer in one process.
  static let demo = CommandDeclaration(
    name: "demo", summary: "Push an image to a simulated device, with the link cut on the way",
    discussion: [
      "Makes a simulated device with a flash memory in this process, pushes an image to it over a simulated link, loses"
        + " the link on the way, goes on where the device's flash really stands, and verifies the whole at the far end.",
      "Without a FILE an image is made, in samples/ where that folder is here.",
    ],
    operands: [DemoCommand.file.declaration],
    sections: [
      Section(
        title: "Options",
        options: [
          RadioOptions.link.declaration, DemoCommand.fault.declaration, RadioOptions.clock.declaration,
          RadioOptions.seed.declaration, RadioOptions.capture.declaration, TransferOptions.raw.declaration,
          TransferOptions.range.declaration,
        ]), TransferOptions.section,
    ],
    examples: [
      Example(
        line: "bluehaul demo --clock lockstep", effect: "the same in simulated time: an hour takes a moment"),
      Example(
        line: "bluehaul demo --link phy=1M,mtu=185 --fault overflow~0.1% --via gatt",
        effect: "a slower link and a device that drops one packet in a thousand"),
      Example(line: "bluehaul demo --capture demo.btsnoop", effect: "what was on the air, for Wireshark"),
    ],
    run: { try await DemoCommand($0).run() })
}

struct DemoCommand {
  static let file = Operand("FILE", .text("FILE"), "The image to push", count: .optional)
  static let fault = Option(
    "fault", .faults, "What goes wrong; see help fault; an empty one: nothing (drop@40%)", repeats: true)
  static let deviceName = "demo-device"
  /// Flash as in a microcontroller: an erase of 4 KiB takes a while, programming too.
  static let flashProfile = SimulatedFlash.Profile(capacity: 64 << 20, eraseTime: .milliseconds(2))

  private let arguments: ParsedArguments
  private let printer: any EventPrinter

  init(_ invocation: Invocation) {
    arguments = invocation.arguments
    printer = invocation.printer
  }

  func run() async throws {
    let options = try TransferOptions.push(arguments)
    let path = try arguments.all(Self.file).first ?? sample()
    let object = try ImageFile(path: path, options: TransferOptions.image(arguments)).describe()
    let transfer = try PushPlan(TransferManifest(objects: [object]))
    let link = arguments[RadioOptions.link]?.parameters ?? LinkParameters()
    let plan = try faults().resolved(totalBytes: Int(clamping: object.size))
    let mode = (arguments[RadioOptions.clock] ?? .real).mode
    let capture = try RadioOptions.capture(arguments, printer: printer)
    defer { capture?.close() }
    var profile = Self.flashProfile
    if let eraseTime = plan.eraseTime { profile.eraseTime = eraseTime }
    let flash = SimulatedFlash(profile: profile)
    for offset in plan.corruptedOffsets { flash.corruptWrites(at: UInt64(offset)) }
    let device = try SimulatedDevice(
      name: Self.deviceName, flash: flash,
      air: VirtualAir(
        clock: VirtualClock(mode), link: link, seed: arguments[RadioOptions.seed] ?? 1, faults: plan,
        capture: capture),
      senderName: "demo-sender")
    // An unpaced link has no ceiling to compare with.
    let view = TransferView(
      transfer.manifest, ceiling: { mode == .unpaced ? nil : RadioOptions.ceiling(of: link, $0) })
    try await device.run(tell: tell) { [printer] in
      printer.show(.demo(link: link, object: object, faults: plan))
      let push = try PushOperation(
        transfer.objects(), transferID: transfer.manifest.transferID, to: .name(Self.deviceName),
        options: options, managerOptions: [CBManagerOptionRadioKey: device.sender], clock: device.time)
      _ = try await push.run(view, on: printer)
    }
    try check(flash, object)
  }

  /// Tells what happens at the device's end.
  private func tell(_ event: ReceiveEvent) {
    guard case .session(.objectLeft(_, let durable), _, _) = event else { return }
    printer.show(.deviceStands(at: Int(clamping: durable)))
  }

  /// Looks into the flash behind the device's back.
  private func check(_ flash: SimulatedFlash, _ object: TransferManifest.Object) throws {
    guard let contents = flash.contents(of: object.name),
      try SHA256Hasher.digest(of: contents) == object.sha256
    else {
      throw TransferError(
        .verificationFailed, "the flash of the simulated device does not hold what was sent",
        advice: "please report this as a fault")
    }
    printer.show(.flashHolds(object))
  }

  private func faults() throws -> FaultPlan {
    let words = arguments.all(Self.fault).map(\.words)
    return try FaultPlan(parsing: words.isEmpty ? "drop@40%" : words.joined(separator: ","))
  }

  /// The image in `samples/`, made where it is not there; in the folder for temporary files where there is no `samples/`.
  private func sample() throws -> String {
    var isFolder: ObjCBool = false
    let isHere =
      unsafe FileManager.default.fileExists(atPath: "samples", isDirectory: &isFolder) && isFolder.boolValue
    let folder = isHere ? "samples" : FileManager.default.temporaryDirectory.path
    let path = "\(folder)/\(SampleImage.fileName)"
    let data = try SampleImage.data()
    // What others may have put into a folder for temporary files is not taken on trust.
    if (try? Data(contentsOf: URL(filePath: path))) == data { return path }
    let kind = OutputFile.Kind("sample image") { $0.starts(with: data.prefix(SampleImage.headerSize)) }
    try OutputFile(path: path, kind: kind, followsLinks: false).write(data)
    printer.show(.sampleMade(path, size: data.count))
    return path
  }
}

extension Report {
  static func sampleMade(_ path: String, size: Int) -> Report {
    Report(
      "sample_made", .note, ["made a sample image of \(Amounts.bytes(size)): \(Printable.text(path))"],
      [.init("path", .string(path)), .init("size", .integer(size))])
  }

  static func demo(link: LinkParameters, object: TransferManifest.Object, faults: FaultPlan) -> Report {
    let gatt = RadioOptions.ceiling(of: link, .gatt)
    let l2cap = RadioOptions.ceiling(of: link, .l2cap)
    return Report(
      "demo", .note,
      [
        "image:  \(Printable.text(object.name)), \(Amounts.bytes(Int(clamping: object.size))), SHA-256 \(object.sha256.hex)",
        "link:   \(link); at best \(Amounts.rate(gatt)) over GATT, \(Amounts.rate(l2cap)) over L2CAP",
        "device: \(DemoCommand.deviceName), simulated, with a flash of its own",
      ],
      [
        .init("object", .string(object.name)), .init("size", .integer(Int(clamping: object.size))),
        .init("sha256", .string(object.sha256.hex)), .init("link", .string("\(link)")),
        .init("ceiling_gatt", .number(gatt.rounded())), .init("ceiling_l2cap", .number(l2cap.rounded())),
        .init("faults", .integer(faults.faults.count)),
      ])
  }

  static func deviceStands(at durable: Int) -> Report {
    Report(
      "device_stands", .note, ["the device is alone now; its flash holds \(Amounts.bytes(durable)) for good"],
      [.init("durable", .integer(durable))])
  }

  static func flashHolds(_ object: TransferManifest.Object) -> Report {
    Report(
      "flash_holds", .result,
      ["the device's flash, read from outside, holds \(Printable.text(object.name)) byte for byte"],
      [.init("object", .string(object.name)), .init("sha256", .string(object.sha256.hex))])
  }
}
