internal import BulkTransfer
internal import CoreBluetooth
internal import Radio
internal import VirtualRadio

/// One measurement of a link without a transfer on it.
struct LinkBench: Sendable {
  let mode: BenchMode
  let kind: LinkTest.Kind
  /// How long each step may take.
  let stepLimit: Duration

  /// What was found.
  struct Outcome: Sendable {
    let ledger: TimeLedger
    let roundTrips: [Duration]
  }

  /// Measures the link to a simulated device, which is made for this run.
  func measure(on air: VirtualAir) async throws -> Outcome {
    let device = try SimulatedDevice(
      name: BenchRun.deviceName, flash: SimulatedFlash(profile: SimulatedFlash.Profile()), air: air,
      senderName: "bench-sender")
    return try await device.run { [self] in
      let tested = LinkTestDevice(
        managerOptions: [CBManagerOptionRadioKey: device.radio], clock: device.time)
      return try await tested.serve {
        // Data is accounted for in its own direction.
        try await test(
          .name(BenchRun.deviceName), device.sender, device.time,
          usage: { [air, sender = device.sender, radio = device.radio, mode] in
            mode.direction == .toHost
              ? air.usage(from: radio, to: sender) : air.usage(from: sender, to: radio)
          })
      }
    }
  }

  /// Measures the link to a device in reach of `radio`.
  func measure(to target: DeviceTarget, on radio: any Radio) async throws -> Outcome {
    do {
      return try await test(target, radio, RadioTime(radio.clock), usage: { nil })
    } catch let error as TransferError where error.code == .unsupportedDevice && error.advice != nil {
      // The connection lacks the service: what a test lacks has no advice.
      var error = error
      error.advice = "let the receiver be measured with bluehaul receive --bench"
      throw error
    }
  }

  private func test(
    _ target: DeviceTarget, _ radio: any Radio, _ clock: RadioTime,
    usage: @escaping @Sendable () -> LinkUsage?
  ) async throws -> Outcome {
    let ledger = SharedLedger()
    let test = LinkTest(
      kind, to: target, stepLimit: stepLimit,
      observe: { activity, now in
        let usage = usage()
        ledger.note(activity, usage: usage, now: now)
      }, managerOptions: [CBManagerOptionRadioKey: radio], clock: clock)
    let roundTrips = try await test.run()
    return Outcome(ledger: ledger.value, roundTrips: roundTrips)
  }
}

extension LinkTestDevice {
  /// Serves while `work` is done.
  func serve<Value: Sendable>(_ work: @Sendable () async throws -> Value) async throws -> Value {
    let (settling, settled) = AsyncStream.makeStream(of: Void.self)
    let serving = Task {
      defer { settled.finish() }
      try await run(settled: { settled.finish() })
    }
    defer { serving.cancel() }
    for await _ in settling {}
    let value = try await work()
    serving.cancel()
    try await serving.value
    return value
  }
}

/// How long round trips have taken.
struct RoundTripResult: BenchMeasurement {
  let mode: BenchMode
  let link: LinkParameters?
  /// In the order in which they were made; at least one.
  let times: [Duration]
  let duration: Duration
  let breakdown: TimeLedger.Breakdown
  var varied: [(key: String, value: String)] = []
  private let sorted: [Duration]

  /// - Throws: where there is nothing to tell.
  init(mode: BenchMode, link: LinkParameters?, _ outcome: LinkBench.Outcome) throws(TransferError) {
    guard let duration = outcome.ledger.duration, !outcome.roundTrips.isEmpty else {
      throw TransferError(.unsupportedDevice, "nothing has come back: nothing was measured")
    }
    self.mode = mode
    self.link = link
    self.duration = duration
    times = outcome.roundTrips
    breakdown = outcome.ledger.breakdown
    sorted = times.sorted()
  }

  /// The time that a share of all round trips did not exceed, by nearest rank.
  func time(of share: Double) -> Duration {
    sorted[min(max(Int((share * Double(sorted.count)).rounded(.up)) - 1, 0), sorted.count - 1)]
  }

  var median: Duration { time(of: 0.5) }

  /// The least that the link's rules allow; nil where it is a real one.
  var floor: Duration? { link.map(mode.fastestRoundTrip(on:)) }

  var ratio: Double? { floor.flatMap { median > .zero ? $0 / median : nil } }

  private var figures: [(name: String, value: Double?)] {
    [
      ("seconds", duration / .seconds(1)), ("min", time(of: 0) / .seconds(1)),
      ("median", median / .seconds(1)), ("p99", time(of: 0.99) / .seconds(1)),
      ("max", time(of: 1) / .seconds(1)), ("floor", floor.map { $0 / .seconds(1) }), ("ratio", ratio),
    ]
  }

  var report: Report {
    func ms(_ time: Duration) -> String { Amounts.decimal(time / .milliseconds(1), digits: 3) }
    var median = "  median:  \(ms(self.median)) ms"
    if let floor, let ratio {
      median += ", where the link's rules take \(ms(floor)) ms: \(Amounts.ratio(ratio))"
    }
    return Report(
      "round_trip", .result,
      [
        "\(mode.title), \(times.count) round trips of \(LinkTest.roundTripOctets) octets\(link.map { " on \($0)" } ?? "")",
        median,
        "  others:  \(ms(time(of: 0))) ms at least, 99 % within \(ms(time(of: 0.99))) ms, all within \(ms(time(of: 1))) ms",
        "  time:    \(Amounts.decimal(duration / .seconds(1), digits: 3)) s, of which",
      ] + breakdown.lines(of: duration),
      [
        .init("via", .string(mode.via.rawValue)), .init("link", .optional(link.map { "\($0)" })),
        .init("varied", .object(varied.map { .init($0.key, .string($0.value)) })),
        .init("count", .integer(times.count)),
      ] + figures.map { .init($0.name, .optional($0.value)) } + [.init("breakdown", breakdown.json)])
  }

  static func csv(_ results: [Self]) -> String {
    let keys = results.first?.varied.map(\.key) ?? []
    let parts = results.first?.breakdown.parts.map(\.name) ?? []
    let names = results.first?.figures.map(\.name) ?? []
    let rows = results.map { result in
      [result.mode.via.rawValue, result.link.map { "\($0)" } ?? ""] + result.varied.map(\.value)
        + ["\(result.times.count)"] + result.figures.map { $0.value.map { "\($0)" } ?? "" }
        + result.breakdown.parts.map { $0.time.map { "\($0 / .seconds(1))" } ?? "" }
    }
    return Table.text([["via", "link"] + keys + ["count"] + names + parts] + rows)
  }
}
