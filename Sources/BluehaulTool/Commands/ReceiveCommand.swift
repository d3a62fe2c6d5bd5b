internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Radio
internal import VirtualRadio

extension CommandDeclaration {
  /// `receive`: a device that takes files.
  static let receive = CommandDeclaration(
    name: "receive", summary: "Be a device: advertise, and receive files into a folder",
    discussion: [
      "Runs until it is interrupted. A file gets its name in the folder only after its SHA-256 was verified as read back;"
        + " what is unfinished waits in hidden files. Names never lead out of the folder."
    ],
    sections: [
      Section(
        title: "Options",
        options: [
          ReceiveCommand.name.declaration, ReceiveCommand.into.declaration,
          ReceiveCommand.ifExists.declaration,
          ReceiveCommand.maxSize.declaration, ReceiveCommand.once.declaration,
          ReceiveCommand.buffer.declaration,
          ReceiveCommand.gattOnly.declaration, ReceiveCommand.bench.declaration,
          ReceiveCommand.timeout.declaration,
        ]), RadioOptions.deviceSection,
    ],
    examples: [
      Example(
        line: "bluehaul receive --radio virtual:/tmp/air --name bench-1 --into received",
        effect: "a receiver on a simulated air")
    ],
    run: { try await ReceiveCommand($0).run() })
}

struct ReceiveCommand {
  static let name = Option(
    "name", .text("NAME"), "The name to advertise, at most \(ReceiveOptions.longestName) bytes",
    isRequired: true)
  static let into = Option(
    "into", .text("DIR"), "The folder for what arrives; made where it is missing", isRequired: true)
  static let ifExists = Option(
    "if-exists", .oneOf(DirectoryStorage.ExistingFilePolicy.self),
    "What to do where another file has the name (refuse)")
  static let maxSize = Option("max-size", .size(in: 1...(1 << 40)), "The largest file that is taken (4GiB)")
  static let once = Flag("once", "End after one sender was served")
  static let buffer = Option(
    "buffer", .size(in: 4096...(16 << 20)), "Memory for what has arrived and is not verified yet (256KiB)")
  static let gattOnly = Flag("gatt-only", "Offer no L2CAP channel")
  static let bench = Flag("bench", "Let the link itself be measured, too, by bluehaul bench")
  static let timeout = Option(
    "timeout", .duration(in: .seconds(1)...(.seconds(86400))), "How long a sender may be silent (30s)")

  private let invocation: Invocation
  private var arguments: ParsedArguments { invocation.arguments }

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    // Required options are there.
    let name = arguments[Self.name] ?? ""
    let folder = arguments[Self.into] ?? ""
    var policy = DirectoryStorage.Policy()
    if let rule = arguments[Self.ifExists] { policy.existingFile = rule }
    if let size = arguments[Self.maxSize] { policy.largestObject = UInt64(size) }
    var options = try ReceiveOptions(name: name)
    options.once = arguments[Self.once]
    options.offersChannel = !arguments[Self.gattOnly]
    if let size = arguments[Self.buffer] { options.session.buffer = size }
    if let limit = arguments[Self.timeout] { options.session.silenceLimit = limit }

    let request = try RadioRequest.device(invocation, name: name)
    let radio = try await invocation.environment.deviceRadio(request)
    defer { request.capture?.close() }
    let storage = try DirectoryStorage(path: folder, policy: policy)
    let receiver = ReceiveOperation(
      into: storage, options: options, managerOptions: [CBManagerOptionRadioKey: radio],
      clock: RadioTime(radio.clock))
    let listener = Task { [printer = invocation.printer] in
      var view = ReceiverView(folder: folder)
      for await event in receiver.events {
        view.show(event, on: printer)
        if case .session(.objectStarted(let object, _, _, _), _, _) = event {
          // Faults at a share of what arrives.
          (radio as? VirtualRadio)?.resolveFaults(totalBytes: Int(clamping: object.size))
        }
      }
    }
    do {
      if arguments[Self.bench] {
        let tested = LinkTestDevice(
          offersChannel: options.offersChannel, managerOptions: [CBManagerOptionRadioKey: radio],
          clock: RadioTime(radio.clock))
        try await tested.serve { try await receiver.run() }
      } else {
        try await receiver.run()
      }
    } catch {
      await listener.value
      throw error
    }
    await listener.value
    try Task.checkCancellation()
  }
}

/// Turns what a receiver tells into what is printed.
struct ReceiverView {
  let folder: String
  private var progress: TransferProgress?

  init(folder: String) { self.folder = folder }

  mutating func show(_ event: ReceiveEvent, on printer: any EventPrinter) {
    switch event {
    case .ready(let name, let psm): printer.show(.ready(name: name, folder: folder, psm: psm))
    case .interrupted(let why): printer.show(.radioInterrupted(why))
    case .session(let event, let peer, let carrier): show(event, peer, carrier, on: printer)
    }
  }

  private mutating func show(
    _ event: ReceiverSession.Event, _ peer: UUID, _ carrier: CarrierKind, on printer: any EventPrinter
  ) {
    switch event {
    case .sessionStarted: printer.show(.sender(peer, carrier, isHere: true))
    case .sessionEnded: printer.show(.sender(peer, carrier, isHere: false))
    case .objectStarted(let object, let index, let count, let offset):
      printer.show(.receiving(object, from: Int(clamping: offset)))
      let state = TransferProgress(
        phase: .transfer, object: object.name, objectIndex: index + 1, objectCount: count,
        totalBytes: Int(clamping: object.size), confirmedBytes: Int(clamping: offset),
        resumedFrom: Int(clamping: offset))
      printer.begin()
      printer.show(state)
      progress = state
    case .progress(_, let durable):
      progress?.confirmedBytes = Int(clamping: durable)
      if let progress { printer.show(progress) }
    case .lost(let reason, let offset): printer.show(.lost("\(reason)", at: Int(clamping: offset)))
    case .verifying:
      progress?.phase = .verify
      if let progress { printer.show(progress) }
    case .objectVerified(let object, let location):
      if var progress {
        progress.phase = .done
        progress.confirmedBytes = progress.totalBytes
        printer.show(progress)
      }
      progress = nil
      printer.show(.received(object, location: location))
    case .objectFailed(let object, let error):
      progress = nil
      printer.show(.notReceived(object, error))
    case .objectLeft(let object, let durable):
      progress = nil
      printer.show(.left(object, durable: Int(clamping: durable)))
    }
  }
}

extension Report {
  static func ready(name: String, folder: String, psm: UInt16?) -> Report {
    Report(
      "ready", .note, ["receiving as \(Printable.text(name)) into \(Printable.text(folder))"],
      [
        .init("name", .string(name)), .init("into", .string(folder)),
        .init("psm", .optional(psm.map { Int($0) })),
      ])
  }

  static func radioInterrupted(_ why: String) -> Report {
    Report(
      "radio_interrupted", .warning, ["\(Printable.text(why)); waiting for the adapter"],
      [.init("message", .string(why))])
  }

  static func sender(_ peer: UUID, _ carrier: CarrierKind, isHere: Bool) -> Report {
    let name = isHere ? "sender_connected" : "sender_gone"
    return Report(
      name, .detail,
      ["sender \(peer.uuidString) \(isHere ? "connected over \(carrier.rawValue)" : "has gone")"],
      [.init("peer", .string(peer.uuidString)), .init("via", .string(carrier.rawValue))])
  }

  static func receiving(_ object: ReceivedObject, from offset: Int) -> Report {
    let place = offset > 0 ? ", going on at \(Amounts.bytes(offset))" : ""
    return Report(
      "receiving", .note,
      ["receiving \(Printable.text(object.name)), \(Amounts.bytes(Int(clamping: object.size)))\(place)"],
      object.members + [.init("from", .integer(offset))])
  }

  static func lost(_ reason: String, at offset: Int) -> Report {
    Report(
      "data_lost", .detail,
      ["data was lost (\(reason)); asked for it again from \(Amounts.bytes(offset)) on"],
      [.init("reason", .string(reason)), .init("offset", .integer(offset))])
  }

  static func received(_ object: ReceivedObject, location: String) -> Report {
    Report(
      "received", .result, ["received \(Printable.text(location)): SHA-256 \(object.sha256.hex) verified"],
      object.members + [.init("path", .string(location))])
  }

  static func notReceived(_ object: ReceivedObject, _ error: TransferError) -> Report {
    Report(
      "not_received", .warning,
      ["\(Printable.text(object.name)) was not received: \(Printable.text(error.description, limit: 600))"],
      object.members + [
        .init("code", .string(error.code.rawValue)), .init("message", .string(error.message)),
      ])
  }

  static func left(_ object: ReceivedObject, durable: Int) -> Report {
    Report(
      "left", .note,
      [
        "the sender has left; \(Amounts.bytes(durable)) of \(Printable.text(object.name)) are kept for when it is back"
      ],
      object.members + [.init("durable", .integer(durable))])
  }
}

extension ReceivedObject {
  fileprivate var members: [JSONValue.Member] {
    [
      .init("object", .string(name)), .init("size", .integer(Int(clamping: size))),
      .init("sha256", .string(sha256.hex)),
    ]
  }
}
