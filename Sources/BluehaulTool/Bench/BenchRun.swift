internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Radio
internal import VirtualRadio

/// One transfer that is measured: so many bytes to a device, over one carrier.
struct BenchRun: Sendable {
  let size: Int
  let seed: UInt64
  let carrier: CarrierKind
  let options: PushOptions

  init(size: Int, seed: UInt64, carrier: CarrierKind, options: PushOptions) {
    self.size = size
    self.seed = seed
    self.carrier = carrier
    var options = options
    options.link.choice = carrier == .gatt ? .gatt : .l2cap
    self.options = options
  }

  /// The name of the object at the receiver.
  static let objectName = "bluehaul-bench.bin"
  static let deviceName = "bench-device"

  /// Sends to a simulated device with a flash of `profile`, which is made for this run.
  func measure(
    on air: VirtualAir, link: LinkParameters, flash profile: SimulatedFlash.Profile
  ) async throws -> BenchResult {
    var profile = profile
    profile.capacity = UInt64(size) + 1 << 20
    let device = try SimulatedDevice(
      name: Self.deviceName, flash: SimulatedFlash(profile: profile), air: air, senderName: "bench-sender")
    let ledger = SharedLedger()
    let push = try push(
      to: .name(Self.deviceName), radio: device.sender, clock: device.time, ledger,
      usage: { [air, sender = device.sender, radio = device.radio] in air.usage(from: sender, to: radio) })
    _ = try await device.run { try await push.run() }
    return try result(ledger, link: link)
  }

  /// Sends to a device in reach of `radio`; progress is shown by `printer`.
  func measure(
    to target: DeviceTarget, on radio: any Radio, printer: any EventPrinter
  ) async throws -> BenchResult {
    let ledger = SharedLedger()
    let push = try push(to: target, radio: radio, clock: RadioTime(radio.clock), ledger, usage: { nil })
    let view = TransferView([(name: Self.objectName, size: size)], ceiling: { _ in nil })
    _ = try await push.run(view, on: printer)
    return try result(ledger, link: nil)
  }

  private func push(
    to target: DeviceTarget, radio: any Radio, clock: RadioTime, _ ledger: SharedLedger,
    usage: @escaping @Sendable () -> LinkUsage?
  ) throws(TransferError) -> PushOperation {
    let source = PatternSource(size: UInt64(size), seed: seed)
    let digest = try source.digest()
    let object = OutgoingObject(name: Self.objectName, size: source.size, sha256: digest)
    return try PushOperation(
      [PushObject(object, from: source)], transferID: digest, to: target, options: options,
      observe: { activity, now in
        let usage = usage()
        ledger.note(activity, usage: usage, now: now)
      }, managerOptions: [CBManagerOptionRadioKey: radio], clock: clock)
  }

  private func result(
    _ ledger: SharedLedger, link: LinkParameters?
  ) throws(TransferError) -> BenchResult {
    let ledger = ledger.value
    guard let duration = ledger.duration, duration > .zero else {
      throw TransferError(
        .unsupportedDevice, "the device had all of it already: nothing was measured",
        advice: "give another --seed, or remove \(Self.objectName) there")
    }
    return BenchResult(
      carrier: carrier, link: link, size: size, duration: duration, transfer: ledger.transfer,
      breakdown: ledger.breakdown,
      carried: ledger.carried, points: ledger.points)
  }
}

/// What a measured transfer has come to.
struct BenchResult: Sendable {
  let carrier: CarrierKind
  /// The simulated link; nil where it is a real one.
  let link: LinkParameters?
  let size: Int
  /// From the first octet of the session to the receiver's last word.
  let duration: Duration
  /// The part of it in which data was under way.
  let transfer: Duration
  let breakdown: TimeLedger.Breakdown
  let carried: LinkUsage?
  let points: [TimeLedger.Point]
  /// What a sweep has varied, in its order.
  var varied: [(key: String, value: String)] = []

  /// Bytes per second, handshake and verification included.
  var goodput: Double { Double(size) / (duration / .seconds(1)) }

  /// Bytes per second at best.
  var ceiling: Double? { link.map { RadioOptions.ceiling(of: $0, carrier) } }

  /// The ratio without handshake and verification.
  var transferRatio: Double? {
    guard let ceiling, ceiling > 0, transfer > .zero else { return nil }
    return Double(size) / (transfer / .seconds(1)) / ceiling
  }

  var ratio: Double? { ceiling.flatMap { $0 > 0 ? goodput / $0 : nil } }
}

extension Report {
  static func bench(_ result: BenchResult) -> Report {
    let carrier = result.carrier == .gatt ? "GATT" : "L2CAP"
    var rate = "  goodput: \(Amounts.rate(result.goodput)) (\(Int(result.goodput.rounded())) bytes/s)"
    if let ceiling = result.ceiling, let ratio = result.ratio {
      rate += ", \(Amounts.ratio(ratio)) of the ceiling of \(Amounts.rate(ceiling))"
    }
    var lines = [
      "\(carrier), \(Amounts.bytes(result.size))\(result.link.map { " on \($0)" } ?? "")", rate,
      "  time:    \(Amounts.decimal(result.duration / .seconds(1), digits: 3)) s with handshake and verification, of which",
    ]
    for part in result.breakdown.parts {
      guard let time = part.time, time > .zero else { continue }
      let share = Amounts.decimal(time / result.duration * 100, digits: 1)
      let padding = String(repeating: " ", count: max(0, 5 - share.count))
      lines.append(
        "    \(padding)\(share) %  \(Amounts.decimal(time / .seconds(1), digits: 3)) s  \(part.title)")
    }
    if let ratio = result.transferRatio {
      lines.append(
        "  data:    \(Amounts.decimal(result.transfer / .seconds(1), digits: 3)) s, \(Amounts.ratio(ratio)) of the ceiling, without handshake and verification"
      )
    }
    if let carried = result.carried {
      lines.append(
        "  packets: \(carried.packets) with data, \(carried.repetitions) of them sent again; \(carried.octets) octets"
      )
    }
    return Report("bench", .result, lines, members(result))
  }

  private static func members(_ result: BenchResult) -> [JSONValue.Member] {
    [
      .init("via", .string(result.carrier.rawValue)), .init("link", .optional(result.link.map { "\($0)" })),
      .init("varied", .object(result.varied.map { .init($0.key, .string($0.value)) })),
      .init("bytes", .integer(result.size)), .init("seconds", .number(result.duration / .seconds(1))),
      .init("goodput", .number(result.goodput)), .init("ceiling", .optional(result.ceiling)),
      .init("ratio", .optional(result.ratio)),
      .init("transfer_seconds", .number(result.transfer / .seconds(1))),
      .init("transfer_ratio", .optional(result.transferRatio)),
      .init(
        "breakdown",
        .object(
          result.breakdown.parts.map { part in
            .init(part.name, .optional(part.time.map { $0 / .seconds(1) }))
          })),
      .init("packets", .optional(result.carried?.packets)),
      .init("repetitions", .optional(result.carried?.repetitions)),
      .init("octets", .optional(result.carried?.octets)),
    ]
  }
}

extension BenchResult {
  /// Results as a table for other programs (RFC 4180), one row each; times are seconds.
  static func csv(_ results: [BenchResult]) -> String {
    let parts = results.first?.breakdown.parts.map(\.name) ?? []
    let keys = results.first?.varied.map(\.key) ?? []
    var rows = [
      ["via", "link"] + keys + [
        "bytes", "seconds", "goodput", "ceiling", "ratio", "transfer_seconds", "transfer_ratio",
      ]
        + parts
        + ["packets", "repetitions", "octets"]
    ]
    for result in results {
      let times = result.breakdown.parts.map { $0.time.map { "\($0 / .seconds(1))" } ?? "" }
      rows.append(
        [result.carrier.rawValue, result.link.map { "\($0)" } ?? ""] + result.varied.map(\.value)
          + ["\(result.size)", "\(result.duration / .seconds(1))", "\(result.goodput)"]
          + [result.ceiling, result.ratio, result.transfer / .seconds(1), result.transferRatio].map {
            $0.map { "\($0)" } ?? ""
          } + times
          + [result.carried?.packets, result.carried?.repetitions, result.carried?.octets].map {
            $0.map { "\($0)" } ?? ""
          })
    }
    return rows.map { $0.map(field).joined(separator: ",") + "\r\n" }.joined()
  }

  private static func field(_ text: String) -> String {
    text.contains { ",\"\r\n".contains($0) } ? "\"\(text.replacing("\"", with: "\"\""))\"" : text
  }
}
