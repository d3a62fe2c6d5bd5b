internal import Foundation
internal import Wording

extension FaultPlan {
  /// One way to write an item, for help texts.
  public struct Form: Hashable, Sendable {
    /// How it is written.
    public let syntax: String
    /// What happens.
    public let meaning: String
  }

  /// All items that ``init(parsing:)`` knows.
  public static let forms: [Form] = [
    Form(syntax: "drop@WHEN", meaning: "the peer goes out of reach; the link is lost after its timeout"),
    Form(syntax: "drop~P", meaning: "the same, with probability P in each connection event with data"),
    Form(syntax: "drop-in-frame@WHEN", meaning: "out of reach while an L2CAP frame is half across"),
    Form(syntax: "hangup@WHEN", meaning: "the peer ends the link in order"),
    Form(
      syntax: "reboot@WHEN[:TIME]", meaning: "the peer restarts, loses its memory, is back after TIME (1s)"),
    Form(syntax: "freeze@WHEN[:TIME]", meaning: "the peer answers nothing, for TIME or for good"),
    Form(syntax: "overflow@WHEN[:COUNT]", meaning: "the peer drops the next COUNT write commands (1)"),
    Form(syntax: "overflow~P[:COUNT]", meaning: "the same, with probability P at each write command"),
    Form(
      syntax: "late-ready@WHEN[:TIME]",
      meaning: "the next ready signal comes TIME late (2s); also late-ready~P"),
    Form(syntax: "lost-ready@WHEN", meaning: "the next ready signal never comes; also lost-ready~P"),
    Form(syntax: "lose-notify@WHEN[:COUNT]", meaning: "the next COUNT notifications are lost (1)"),
    Form(syntax: "lose-notify~P", meaning: "each notification is lost with probability P"),
    Form(syntax: "mtu@WHEN=MTU", meaning: "the ATT MTU changes"),
    Form(
      syntax: "no-credits@WHEN[:COUNT]",
      meaning: "the peer gives COUNT more credits (0) for its L2CAP channels, and no more"),
    Form(syntax: "slow-erase=TIME", meaning: "erasing a page of the peer's flash takes TIME"),
    Form(
      syntax: "corrupt@OFFSET", meaning: "the peer stores the byte at OFFSET (octets or %) with a flipped bit"
    ),
    Form(syntax: "seed=N", meaning: "which random numbers are drawn (1)"),
  ]

  /// Reads the words that the type's description lists; blanks and case do not matter. The empty string is the empty plan.
  public init(parsing words: String) throws(SettingError) {
    self.init()
    guard words.contains(where: { !$0.isWhitespace }) else { return }
    for part in words.split(separator: ",", omittingEmptySubsequences: false) {
      let item = try FaultItem(part.trimmingCharacters(in: .whitespaces))
      switch item.name {
      case "seed": seed = try item.seed()
      case "slow-erase": eraseTime = try item.time(item.assigned())
      default: faults.append(try item.fault())
      }
    }
  }
}

/// One item of a fault plan in words, cut into its parts: `name@when:argument=value`.
private struct FaultItem {
  let words: String
  let name: String
  private var when: String?
  private var probability: String?
  private var argument: String?
  private var value: String?

  static let names = [
    "drop", "drop-in-frame", "hangup", "reboot", "freeze", "overflow", "late-ready", "lost-ready",
    "lose-notify",
    "mtu", "no-credits", "slow-erase", "corrupt", "seed",
  ]

  init(_ words: String) throws(SettingError) {
    self.words = words
    let lowered = words.lowercased()
    let name = String(lowered.prefix { !"@~:=".contains($0) })
    self.name = name
    guard !name.isEmpty else {
      throw SettingError(
        key: "\"\(words)\"", value: nil, problem: "an item is empty; faults look like drop@40%")
    }
    guard Self.names.contains(name) else {
      let likely = Spelling.closest(to: name, among: Self.names).map { " (did you mean \($0)?)" } ?? ""
      throw SettingError(
        key: words, value: nil,
        problem: "no such fault\(likely); there are \(Self.names.joined(separator: ", "))")
    }
    var rest = lowered.dropFirst(name.count)
    while let mark = rest.first {
      rest = rest.dropFirst()
      let part = String(rest.prefix { !"@~:=".contains($0) })
      rest = rest.dropFirst(part.count)
      guard !part.isEmpty else { throw error("nothing follows \(mark)") }
      let isNew: Bool
      switch mark {
      case "@": (isNew, when) = (when == nil, part)
      case "~": (isNew, probability) = (probability == nil, part)
      case ":": (isNew, argument) = (argument == nil, part)
      default: (isNew, value) = (value == nil, part)
      }
      guard isNew else { throw error("\(mark) is there twice") }
    }
  }

  func error(_ problem: String) -> SettingError { SettingError(key: words, value: nil, problem: problem) }

  // MARK: Parts

  func seed() throws(SettingError) -> UInt64 {
    guard let seed = UInt64(try assigned()) else { throw error("the seed is not a whole number") }
    return seed
  }

  func assigned() throws(SettingError) -> String {
    guard let value, when == nil, probability == nil, argument == nil else {
      throw error("is written \(name)=VALUE")
    }
    return value
  }

  func time(_ text: String) throws(SettingError) -> Duration {
    guard let time = Duration(words: text) else {
      throw error(
        "\(text) is not a time of whole microseconds; write milliseconds, or a number with ms, s or min")
    }
    return time
  }

  private func time(default standard: Duration) throws(SettingError) -> Duration {
    guard let argument else { return standard }
    return try time(argument)
  }

  private func count() throws(SettingError) -> Int {
    guard let argument else { return 1 }
    guard let count = Int(argument), (1...1_000_000).contains(count) else {
      throw error("\(argument) is not a count; write 1...1000000")
    }
    return count
  }

  private func trigger(canBeRandom: Bool) throws(SettingError) -> Fault.Trigger {
    switch (when, probability) {
    case (nil, let probability?) where canBeRandom:
      let isPercent = probability.hasSuffix("%")
      guard let number = Double(plainDecimal: probability.dropLast(isPercent ? 1 : 0)),
        number <= (isPercent ? 100 : 1)
      else { throw error("\(probability) is not a probability; write 0...1 or 0%...100%") }
      return .probability(isPercent ? number / 100 : number)
    case (let when?, nil): return try Self.instant(when, error)
    default:
      let random = canBeRandom ? " or \(name)~PROBABILITY" : ""
      throw error("is written \(name)@WHEN\(random); WHEN is octets, a percentage or a time")
    }
  }

  private static func instant(
    _ words: String, _ error: (String) -> SettingError
  ) throws(SettingError) -> Fault.Trigger {
    if words.hasSuffix("%") {
      guard let percent = Double(plainDecimal: words.dropLast()), percent <= 100 else {
        throw error("\(words) is not a percentage; write 0%...100%")
      }
      return .share(percent / 100)
    }
    for (suffix, factor) in [("kib", 1024), ("mib", 1_048_576), ("gib", 1_073_741_824), ("", 1)]
    where words.hasSuffix(suffix) {
      guard let number = Int(words.dropLast(suffix.count)), number >= 0 else { break }
      let (octets, overflows) = number.multipliedReportingOverflow(by: factor)
      guard !overflows else { break }
      return .octets(octets)
    }
    if words.hasSuffix("s") || words.hasSuffix("min"), let time = Duration(words: words) {
      return .time(time)
    }
    throw error(
      "\(words) is not a place in the transfer; write octets (100000, 64KiB), a percentage (40%) or a time (2s)"
    )
  }

  // MARK: Meaning

  func fault() throws(SettingError) -> Fault {
    let canBeRandom = ["drop", "overflow", "late-ready", "lost-ready", "lose-notify"].contains(name)
    let trigger = try trigger(canBeRandom: canBeRandom)
    if value != nil, name != "mtu" { throw error("takes no =VALUE") }
    if argument != nil,
      !["reboot", "freeze", "overflow", "late-ready", "lose-notify", "no-credits"].contains(name)
    {
      throw error("takes no :ARGUMENT")
    }
    return Fault(try kind(), trigger)
  }

  private func kind() throws(SettingError) -> Fault.Kind {
    switch name {
    case "drop": return .link(.drop)
    case "drop-in-frame": return .link(.dropInsideFrame)
    case "hangup": return .link(.hangUp)
    case "reboot": return .host(.reboot(downtime: try time(default: .seconds(1))))
    case "freeze": return .host(.freeze(argument == nil ? nil : try time(default: .zero)))
    case "overflow": return .host(.overflow(writes: try count()))
    case "late-ready": return .host(.lateReady(try time(default: .seconds(2))))
    case "lost-ready": return .host(.lostReady)
    case "lose-notify": return .host(.loseNotifications(try count()))
    case "mtu":
      guard let mtu = value.flatMap({ Int($0) }), (23...517).contains(mtu) else {
        throw error("is written mtu@WHEN=MTU; the MTU is 23...517")
      }
      return .host(.changeMTU(mtu))
    case "no-credits": return .host(.limitCredits(argument == nil ? 0 : try count()))
    case "corrupt":
      guard when?.hasSuffix("s") == false, when?.hasSuffix("min") == false else {
        throw error("the offset is in octets or percent, not a time")
      }
      return .corrupt
    default: throw error("is not handled")
    }
  }
}
