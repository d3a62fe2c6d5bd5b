internal import BulkTransfer
internal import Foundation
internal import VirtualRadio

extension CommandDeclaration {
  /// `bench`: how fast, how near to what the link allows, and where the time goes.
  static let bench = CommandDeclaration(
    name: "bench",
    summary: "Measure throughput, compare it with what the link can carry, and say where the time goes",
    discussion: [
      "Without --to, the receiver is a simulated device in this process, and time is simulated: the result is the same on every machine."
        + " With --to it is a device on the radio, such as a running bluehaul receive, which keeps the bytes as \(BenchRun.objectName).",
      "Goodput counts from the first word of the session to the receiver's last: with handshake and verification. docs/bench.md explains the figures.",
    ],
    sections: [
      Section(
        title: "Options",
        options: [
          BenchCommand.to.declaration, BenchCommand.size.declaration, BenchCommand.via.declaration,
          BenchCommand.sweep.declaration, BenchCommand.csv.declaration, BenchCommand.plot.declaration,
        ]),
      Section(
        title: "Radio options",
        options: [
          BenchCommand.radio.declaration, RadioOptions.link.declaration, BenchCommand.clock.declaration,
          RadioOptions.seed.declaration, BenchCommand.storeRate.declaration, RadioOptions.capture.declaration,
        ]),
      Section(
        title: "Transfer options",
        options: TransferOptions.section.options.filter { $0.name != BenchCommand.via.declaration.name }),
    ],
    examples: [
      Example(
        line: "bluehaul bench --link phy=2M,mtu=247,interval=30 --size 8MiB",
        effect: "a simulated device, over GATT and over L2CAP"
      ),
      Example(
        line:
          "bluehaul bench --sweep interval=7.5,15,30,50,100 --sweep phy=1M,2M --via gatt --plot sweep.svg",
        effect: "a curve for each PHY, with its ceiling"),
      Example(
        line: "bluehaul bench --to bench-1 --radio virtual:/tmp/air --via l2cap",
        effect: "a receiver in another process"),
    ],
    run: { try await BenchCommand($0).run() })
}

struct BenchCommand {
  /// Simulated time stands still until all is done, or passes as ours.
  enum ClockChoice: String, CaseIterable, Sendable {
    case lockstep, real
  }

  static let sizeSyntax = ValueSyntax<Int>.size(in: 1...(1 << 30))
  static let to = Option("to", .device, "A device on the radio: its name or its identifier")
  static let size = Option("size", sizeSyntax, "How much is sent (1MiB)")
  static let via = Option(
    "via", .oneOf(CarrierKind.self), "What carries the data (both, one after the other)")
  static let sweep = Option(
    "sweep", .sweep,
    "Measure at each of these values of a key of --link, or of size; twice: every combination",
    repeats: true)
  static let csv = Option("csv", .text("FILE"), "Write the results as comma-separated values")
  static let plot = Option(
    "plot", .text("FILE"), "Draw them as SVG: throughput over time, or a sweep with its ceilings")
  static let radio = Option(
    "radio", .text("RADIO"),
    "virtual, the simulated device (without --to); with --to, bluez, bluez:hci1 or virtual:DIR as for push")
  static let clock = Option(
    "clock", .oneOf(ClockChoice.self),
    "Whether simulated time stands still until all is done, or passes as ours (lockstep)")
  static let storeRate = Option(
    "store-rate", .size(in: 1...(1 << 40)), "Bytes a second that the simulated device stores (no limit)")

  private let invocation: Invocation
  private var arguments: ParsedArguments { invocation.arguments }

  init(_ invocation: Invocation) { self.invocation = invocation }

  func run() async throws {
    let results: [BenchResult]
    if let device = arguments[Self.to] {
      results = try await onRadio(device)
    } else {
      results = try await simulated()
    }
    if let path = arguments[Self.csv] { try write(BenchResult.csv(results), to: path) }
    if let path = arguments[Self.plot] { try write(BenchPlot(results).svg, to: path) }
    // The last words are the last measurement's: they end what --json prints.
    if let last = results.last { show(last) }
  }

  private func write(_ text: String, to path: String) throws(TransferError) {
    try AtomicFile(path: path).write(Data(text.utf8))
    invocation.printer.show(.wrote(path))
  }

  private func show(_ result: BenchResult) {
    let advice = result.link.map { LinkAdvice.advice(on: $0, for: result.carrier.traffic) } ?? []
    for advice in advice { invocation.printer.show(.advice(advice, result.carrier)) }
    invocation.printer.show(.bench(result))
  }

  private var carriers: [CarrierKind] { arguments[Self.via].map { [$0] } ?? CarrierKind.allCases }

  private var seed: UInt64 { arguments[RadioOptions.seed] ?? 1 }

  // MARK: Simulated device

  private func simulated() async throws -> [BenchResult] {
    if let radio = arguments[Self.radio], radio != "virtual" {
      throw UsageError(
        "--radio \(Printable.text(radio, limit: 80)) needs --to DEVICE; without it the device is simulated",
        command: "bluehaul bench")
    }
    let sweeps = arguments.all(Self.sweep)
    guard sweeps.count <= 2, Set(sweeps.map(\.key)).count == sweeps.count else {
      throw UsageError("--sweep is for one key or for two different ones", command: "bluehaul bench")
    }
    let cases = try BenchSweep.cases(
      sweeps, link: arguments[RadioOptions.link]?.parameters ?? LinkParameters(),
      size: arguments[Self.size] ?? 1 << 20)
    let options = try TransferOptions.push(arguments)
    let capture = try RadioOptions.capture(arguments, printer: invocation.printer)
    defer { capture?.close() }
    var profile = SimulatedFlash.Profile()
    profile.writeRate = arguments[Self.storeRate]
    var results: [BenchResult] = []
    for item in cases {
      for carrier in carriers {
        try Task.checkCancellation()
        // Each is told when the next begins, and the last one last of all.
        if let result = results.last { show(result) }
        let air = VirtualAir(
          clock: VirtualClock(arguments[Self.clock] == .real ? .realTime : .lockStep), link: item.link,
          seed: seed, capture: capture)
        let run = BenchRun(size: item.size, seed: seed, carrier: carrier, options: options)
        var result = try await run.measure(on: air, link: item.link, flash: profile)
        result.varied = item.varied
        results.append(result)
      }
    }
    return results
  }

  // MARK: Device on a radio

  private func onRadio(_ device: TransferManifest.Target) async throws -> [BenchResult] {
    let simulatedOnly = [
      Self.clock.declaration, RadioOptions.seed.declaration, Self.storeRate.declaration,
      Self.sweep.declaration,
    ]
    for option in simulatedOnly where arguments.options[option.name] != nil {
      throw UsageError.notApplicable("--\(option.name)", "only the simulated device without --to takes it")
    }
    let size = arguments[Self.size] ?? 1 << 20
    let request = try RadioRequest.sender(invocation, totalBytes: UInt64(size))
    defer { request.capture?.close() }
    let options = try TransferOptions.push(arguments)
    let radio = try await invocation.environment.radio(request)
    var results: [BenchResult] = []
    for carrier in carriers {
      if let result = results.last { show(result) }
      invocation.printer.begin()
      // Bytes that no receiver has yet: what it has is not sent again.
      let run = BenchRun(size: size, seed: .random(in: 1 ... .max), carrier: carrier, options: options)
      results.append(
        try await run.measure(to: device.linkTarget(on: radio), on: radio, printer: invocation.printer))
    }
    return results
  }
}

extension Report {
  static func wrote(_ path: String) -> Report {
    Report("wrote", .note, ["wrote \(Printable.text(path))"], [.init("path", .string(path))])
  }
}
