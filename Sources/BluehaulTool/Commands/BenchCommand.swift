internal import BulkTransfer
internal import Foundation
internal import Radio
internal import VirtualRadio

extension CommandDeclaration {
  /// `bench`: how fast, how near to what the link allows, and where the time goes.
  static let bench = CommandDeclaration(
    name: "bench",
    summary: "Measure throughput, compare it with what the link can carry, and say where the time goes",
    discussion: [
      "Without --to, the receiver is a simulated device in this process, and time is simulated: the result is the same on every machine."
        + " With --to it is a device on the radio, such as a running bluehaul receive, which keeps the bytes as \(BenchRun.objectName).",
      "A transfer goes to the device by writes without response or on a channel; its goodput counts from the first word of the session to the receiver's last, with handshake and verification."
        + " --via gatt-response, --direction to-host and --ping measure the link alone; a receiver lets them with bluehaul receive --bench. docs/bench.md explains the figures.",
    ],
    sections: [
      Section(
        title: "Options",
        options: [
          BenchCommand.to.declaration, BenchCommand.size.declaration, BenchCommand.via.declaration,
          BenchCommand.direction.declaration, BenchCommand.ping.declaration, BenchCommand.sweep.declaration,
          BenchCommand.csv.declaration, BenchCommand.plot.declaration,
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
      Example(
        line: "bluehaul bench --direction to-host --link phy=1M --via l2cap",
        effect: "the other way, on a channel"),
      Example(
        line: "bluehaul bench --ping 100 --sweep interval=7.5,30,100",
        effect: "round trips, over GATT and over L2CAP"),
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
    "via", .oneOf(BenchMode.Via.self),
    "What carries the data: values, a channel, or values that are each answered (gatt, then l2cap)")
  static let direction = Option(
    "direction", .oneOf(BenchMode.Direction.self), "Which way it goes (to-device)")
  static let ping = Option(
    "ping", .count(in: 1...1_000_000), "Measure so many round trips instead of throughput")
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
    if arguments[Self.ping] == nil {
      try await tell {
        try await throughput($0, on: $1)
      } overRadio: {
        try await throughput($0, $1, $2)
      }
    } else {
      try await tell {
        try await roundTrips($0, on: $1)
      } overRadio: {
        try await roundTrips($0, $1, $2)
      }
    }
  }

  /// One measurement of a series that is made on simulated links.
  private struct Step: Sendable {
    let mode: BenchMode
    let item: BenchSweep.Case
  }

  /// Makes all measurements, shows each, and writes what files were asked for.
  private func tell<Result: BenchMeasurement>(
    simulated: (Step, VirtualAir) async throws -> Result,
    overRadio: (BenchMode, DeviceTarget, any Radio) async throws -> Result
  ) async throws {
    try checkOptions()
    let files = try BenchFiles(arguments)
    let results =
      if let device = arguments[Self.to] {
        try await onRadio(device, overRadio)
      } else {
        try await onSimulatedLinks(simulated)
      }
    try files.write(results, telling: invocation.printer)
    // The last words are the last measurement's: they end what --json prints.
    if let last = results.last { show(last) }
  }

  private func show(_ result: some BenchMeasurement) {
    // What wastes a link is told of throughput.
    if arguments[Self.ping] == nil, let link = result.link {
      for advice in LinkAdvice.advice(on: link, for: result.mode.traffic) {
        invocation.printer.show(.advice(advice, via: result.mode.via.rawValue))
      }
    }
    invocation.printer.show(result.report)
  }

  private var modes: [BenchMode] {
    (arguments[Self.via].map { [$0] } ?? [.gatt, .l2cap]).map {
      BenchMode(via: $0, direction: arguments[Self.direction] ?? .toDevice)
    }
  }

  private var seed: UInt64 { arguments[RadioOptions.seed] ?? 1 }
  private var size: Int { arguments[Self.size] ?? 1 << 20 }
  private var stepLimit: Duration { arguments[TransferOptions.timeout] ?? .seconds(10) }

  /// Whether the link is measured without a transfer on it.
  private var isLinkAlone: Bool { arguments[Self.ping] != nil || modes.contains { $0.carrier == nil } }

  /// Refuses what would do nothing.
  private func checkOptions() throws {
    if arguments[Self.via] == .gattResponse, arguments[Self.direction] == .toHost {
      throw UsageError.notApplicable(
        "--via gatt-response", "what comes to the host is notified, and no notification is answered")
    }
    if arguments[Self.ping] != nil {
      for option in [Self.size.declaration, Self.direction.declaration]
      where arguments.options[option.name] != nil {
        throw UsageError.notApplicable(
          "--\(option.name)", "a round trip is \(LinkTest.roundTripOctets) octets there and back")
      }
      if arguments.all(Self.sweep).contains(where: { $0.key == BenchSweep.sizeKey }) {
        throw UsageError.notApplicable(
          "--sweep size", "a round trip is \(LinkTest.roundTripOctets) octets there and back")
      }
    }
    guard isLinkAlone else { return }
    let ofTransfers =
      TransferOptions.section.options.map(\.name).filter {
        ![Self.via.declaration.name, TransferOptions.timeout.declaration.name].contains($0)
      }
      + [Self.storeRate.declaration.name]
    for option in ofTransfers where arguments.options[option] != nil {
      throw UsageError.notApplicable(
        "--\(option)", "it is for transfers, and here the link alone is measured")
    }
  }

  // MARK: Simulated device

  private func onSimulatedLinks<Result: BenchMeasurement>(
    _ measure: (Step, VirtualAir) async throws -> Result
  ) async throws -> [Result] {
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
      sweeps, link: arguments[RadioOptions.link]?.parameters ?? LinkParameters(), size: size)
    let capture = try RadioOptions.capture(arguments, printer: invocation.printer)
    defer { capture?.close() }
    var results: [Result] = []
    for item in cases {
      for mode in modes {
        try Task.checkCancellation()
        // Each is told when the next begins, and the last one last of all.
        if let result = results.last { show(result) }
        let air = VirtualAir(
          clock: VirtualClock(arguments[Self.clock] == .real ? .realTime : .lockStep), link: item.link,
          seed: seed, capture: capture)
        var result = try await measure(Step(mode: mode, item: item), air)
        result.varied = item.varied
        results.append(result)
      }
    }
    return results
  }

  private func throughput(_ step: Step, on air: VirtualAir) async throws -> BenchResult {
    guard let carrier = step.mode.carrier else {
      let outcome = try await LinkBench(
        mode: step.mode, kind: step.mode.test(octets: step.item.size), stepLimit: stepLimit
      ).measure(on: air)
      return try BenchResult(mode: step.mode, link: step.item.link, size: step.item.size, outcome)
    }
    var profile = SimulatedFlash.Profile()
    profile.writeRate = arguments[Self.storeRate]
    let run = BenchRun(
      size: step.item.size, seed: seed, carrier: carrier, options: try TransferOptions.push(arguments))
    return try await run.measure(on: air, link: step.item.link, flash: profile)
  }

  private func roundTrips(_ step: Step, on air: VirtualAir) async throws -> RoundTripResult {
    try await RoundTripResult(mode: step.mode, link: step.item.link, pings(step.mode).measure(on: air))
  }

  private func pings(_ mode: BenchMode) -> LinkBench {
    LinkBench(
      mode: mode, kind: .roundTrips(mode.roundTrip, count: arguments[Self.ping] ?? 1), stepLimit: stepLimit)
  }

  // MARK: Device on a radio

  private func onRadio<Result: BenchMeasurement>(
    _ device: TransferManifest.Target, _ measure: (BenchMode, DeviceTarget, any Radio) async throws -> Result
  ) async throws -> [Result] {
    let simulatedOnly = [
      Self.clock.declaration, RadioOptions.seed.declaration, Self.storeRate.declaration,
      Self.sweep.declaration,
    ]
    for option in simulatedOnly where arguments.options[option.name] != nil {
      throw UsageError.notApplicable("--\(option.name)", "only the simulated device without --to takes it")
    }
    let request = try RadioRequest.sender(invocation, totalBytes: UInt64(size))
    defer { request.capture?.close() }
    _ = try TransferOptions.push(arguments)
    let radio = try await invocation.environment.radio(request)
    var results: [Result] = []
    for mode in modes {
      if let result = results.last { show(result) }
      invocation.printer.begin()
      results.append(try await measure(mode, device.linkTarget(on: radio), radio))
    }
    return results
  }

  private func throughput(
    _ mode: BenchMode, _ target: DeviceTarget, _ radio: any Radio
  ) async throws -> BenchResult {
    guard let carrier = mode.carrier else {
      let outcome = try await LinkBench(mode: mode, kind: mode.test(octets: size), stepLimit: stepLimit)
        .measure(to: target, on: radio)
      return try BenchResult(mode: mode, link: nil, size: size, outcome)
    }
    // Bytes that no receiver has yet: what it has is not sent again.
    let run = BenchRun(
      size: size, seed: .random(in: 1 ... .max), carrier: carrier,
      options: try TransferOptions.push(arguments))
    return try await run.measure(to: target, on: radio, printer: invocation.printer)
  }

  private func roundTrips(
    _ mode: BenchMode, _ target: DeviceTarget, _ radio: any Radio
  ) async throws -> RoundTripResult {
    try await RoundTripResult(mode: mode, link: nil, pings(mode).measure(to: target, on: radio))
  }
}
