internal import BulkTransfer
internal import VirtualRadio

extension CommandDeclaration {
  /// `ceiling`: what a link can carry at best.
  static let ceiling = CommandDeclaration(
    name: "ceiling", summary: "Compute what a link can carry at best, and what wastes it",
    discussion: [
      "By arithmetic, without a radio: packets, answers and pauses that fit a connection interval, as docs/link-budget.md explains."
        + " The simulated link reaches these numbers. What is not said is as in \(LinkParameters())."
    ],
    sections: [
      Section(
        title: "Options",
        options: LinkOption.all.map(\.declaration) + [CeilingCommand.via.declaration])
    ],
    examples: [
      Example(line: "bluehaul ceiling --phy 2M --mtu 247 --interval 30", effect: "over GATT and over L2CAP"),
      Example(
        line: "bluehaul ceiling --phy 1M --mtu 517 --dle 27 --via gatt",
        effect: "a link that wastes much, with advice"),
    ],
    run: { try CeilingCommand.run($0) })
}

/// One parameter of a link as an option of its own.
struct LinkOption: Sendable {
  private let option: Option<String>
  private let key: String

  private init(_ key: String, _ placeholder: String, _ help: String) {
    self.key = key
    option = Option(key, .text(placeholder), help)
  }

  var declaration: OptionDeclaration { option.declaration }

  /// In the order in which people ask for them; the names are the keys of `--link`.
  static let all = [
    LinkOption("phy", "1M|2M|S2|S8", "Physical layer; S2 and S8 are coded"),
    LinkOption("mtu", "OCTETS", "ATT MTU, 23 to 517"),
    LinkOption("dle", "OCTETS", "Data length: octets in a link layer packet, 27 to 251"),
    LinkOption("interval", "MS", "Connection interval in milliseconds, 7.5 to 4000 in steps of 1.25"),
    LinkOption("packets", "COUNT", "Packets that a controller sends in one connection event at most (any)"),
    LinkOption("encrypted", "yes|no", "Whether packets carry a MIC (no)"),
    LinkOption("per", "RATE", "Packet error rate, 0 to 0.99 or 0% to 99%"),
  ]

  /// The link that a command line describes.
  static func link(_ arguments: ParsedArguments, command: String) throws(UsageError) -> LinkParameters {
    var words: [String] = []
    for one in all {
      guard let value = arguments[one.option] else { continue }
      guard !value.contains(",") else {
        throw UsageError(
          "--\(one.key) takes one value, not \(Printable.text(value, limit: 40))", command: command)
      }
      words.append("\(one.key)=\(value)")
    }
    do throws(SettingError) {
      return try LinkParameters(parsing: words.joined(separator: ","))
    } catch {
      let value = error.value.map { " \(Printable.text($0, limit: 40))" } ?? ""
      throw UsageError(
        "--\(Printable.text(error.key, limit: 40))\(value): \(error.problem)", command: command)
    }
  }
}

enum CeilingCommand {
  static let via = Option(
    "via", .oneOf(CarrierKind.self),
    "What carries the data: GATT writes without response, or a channel (both)"
  )

  static func run(_ invocation: Invocation) throws {
    let link = try LinkOption.link(invocation.arguments, command: "bluehaul ceiling")
    let carriers = invocation.arguments[via].map { [$0] } ?? CarrierKind.allCases
    for carrier in carriers {
      invocation.printer.show(.ceiling(link, carrier))
      for advice in LinkAdvice.advice(on: link, for: carrier.traffic) {
        invocation.printer.show(.advice(advice, via: carrier.rawValue))
      }
    }
  }
}

extension Report {
  static func ceiling(_ link: LinkParameters, _ carrier: CarrierKind) -> Report {
    let ceiling = RadioOptions.ceiling(of: link, carrier)
    let flow = LinkCeiling(link).flow(of: carrier.traffic)
    let unit = carrier == .gatt ? "value" : "SDU"
    let packets = flow.packets.count
    return Report(
      "ceiling", .result,
      [
        "\(carrier == .gatt ? "GATT, writes without response" : "L2CAP channel") on \(link)",
        "  ceiling:  \(Amounts.rate(ceiling)), which is \(Int(ceiling.rounded())) bytes/s or \(Amounts.kilobits(ceiling)) kbit/s",
        "  packets:  \(packets) for each \(unit) of \(flow.payload) octets",
        "  interval: \(Amounts.decimal(flow.exchangesPerEvent, digits: 1)) exchanges fit, \(Amounts.decimal(flow.idleShare * 100, digits: 1)) % is left over",
        "  without intervals and losses it were \(Amounts.rate(flow.asymptote))",
      ],
      [
        .init("via", .string(carrier.rawValue)), .init("link", .string("\(link)")),
        .init("ceiling", .number(ceiling)), .init("asymptote", .number(flow.asymptote)),
        .init("payload", .integer(flow.payload)), .init("packets", .integer(packets)),
        .init("exchanges_per_event", .number(flow.exchangesPerEvent)),
        .init("idle_share", .number(flow.idleShare)),
      ])
  }

  static func advice(_ advice: LinkAdvice, via: String) -> Report {
    Report(
      "advice", .result,
      ["  advice:   \(advice.message): \(Amounts.rate(advice.ceiling)) with \(advice.better)"],
      [
        .init("via", .string(via)), .init("parameter", .string(advice.parameter.rawValue)),
        .init("message", .string(advice.message)), .init("better", .string("\(advice.better)")),
        .init("ceiling", .number(advice.ceiling)),
      ])
  }
}
