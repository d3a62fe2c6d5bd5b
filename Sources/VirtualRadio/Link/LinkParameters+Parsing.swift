extension LinkParameters: CustomStringConvertible {
  /// A key of the words, for help texts.
  public struct Key: Hashable, Sendable {
    /// As it is written before the equals sign.
    public let name: String
    /// What values it takes and what it means.
    public let meaning: String
  }

  /// All keys, in the order in which ``description`` writes them.
  public static let keys: [Key] = [
    Key(name: "phy", meaning: "physical layer: 1M, 2M, S2 or S8 (coded)"),
    Key(name: "mtu", meaning: "ATT MTU, 23...517"),
    Key(name: "dle", meaning: "data length: octets in a link layer packet, 27...251"),
    Key(name: "interval", meaning: "connection interval in ms, 7.5...4000 in steps of 1.25"),
    Key(name: "packets", meaning: "packet pairs in one connection event at most, or any"),
    Key(name: "encrypted", meaning: "yes or no: whether packets carry a MIC"),
    Key(name: "per", meaning: "packet error rate, 0...0.99 or 0%...99%"),
    Key(
      name: "timeout", meaning: "supervision timeout in ms, 100...32000 in steps of 10, above two intervals"),
    Key(name: "rssi", meaning: "signal strength in dBm, -127...20"),
    Key(name: "queue", meaning: "L2CAP frames held in one direction, 1...10000, or auto"),
    Key(name: "mtu-delay", meaning: "ms after connecting until the MTU grows from 23, 0...60000, or none"),
  ]

  /// Reads words such as `phy=2M,mtu=247,interval=30`; keys that are not there have the default of ``init(phy:dataLength:attMTU:connectionInterval:packetsPerEvent:isEncrypted:packetErrorRate:supervisionTimeout:rssi:queueDepth:mtuExchangeDelay:)``.
  ///
  /// Case and blanks around words do not matter. The empty string is the default link.
  public init(parsing words: String) throws(SettingError) {
    self.init()
    var seen: Set<String> = []
    let isBlank = words.allSatisfy(\.isWhitespace)
    for item in words.split(separator: ",", omittingEmptySubsequences: false) where !isBlank {
      let setting = try Setting(item, keys: Self.keys.map(\.name))
      guard seen.insert(setting.key).inserted else { throw setting.error("was given twice") }
      try apply(setting)
    }
    if !seen.contains("timeout") {
      supervisionTimeout = Self.defaultSupervisionTimeout(interval: connectionInterval)
    }
    try validate()
  }

  private mutating func apply(_ setting: Setting) throws(SettingError) {
    switch setting.key {
    case "phy": phy = try Self.phy(setting)
    case "mtu": attMTU = try setting.integer(in: 23...517)
    case "dle": dataLength = try setting.integer(in: 27...251)
    case "interval": connectionInterval = try setting.duration(in: .microseconds(7500)...(.seconds(4)))
    case "packets": packetsPerEvent = setting.isWord("any") ? nil : try setting.integer(in: 1...10_000)
    case "encrypted": isEncrypted = try setting.flag()
    case "per": packetErrorRate = try setting.fraction(upTo: 0.99)
    case "timeout": supervisionTimeout = try setting.duration(in: .milliseconds(100)...(.seconds(32)))
    case "rssi": rssi = try setting.integer(in: -127...20)
    case "queue": queueDepth = setting.isWord("auto") ? nil : try setting.integer(in: 1...10_000)
    case "mtu-delay":
      mtuExchangeDelay = setting.isWord("none") ? nil : try setting.duration(in: .zero...(.seconds(60)))
    default: throw setting.error("is not handled")
    }
  }

  private static func phy(_ setting: Setting) throws(SettingError) -> PHY {
    switch setting.value.lowercased() {
    case "1m", "le1m": .le1M
    case "2m", "le2m": .le2M
    case "s2", "coded-s2", "coded2": .codedS2
    case "s8", "coded-s8", "coded8", "coded": .codedS8
    default: throw setting.error("is not a PHY: use 1M, 2M, S2 or S8")
    }
  }

  /// Throws where a value is out of range or the values together cannot make a link.
  public func validate() throws(SettingError) {
    func check(_ key: String, _ value: String, _ isGood: Bool, _ problem: String) throws(SettingError) {
      guard isGood else { throw SettingError(key: key, value: value, problem: problem) }
    }
    try check("mtu", "\(attMTU)", (23...517).contains(attMTU), "must be 23...517")
    try check("dle", "\(dataLength)", (27...251).contains(dataLength), "must be 27...251")
    let interval = connectionInterval.inMillisecondWords
    try check(
      "interval", interval, (.microseconds(7500)...(.seconds(4))).contains(connectionInterval),
      "must be 7.5...4000 ms")
    let steps = connectionInterval.inNanoseconds / 1_250_000
    try check(
      "interval", interval, connectionInterval == .microseconds(1250 * steps),
      "must be a multiple of 1.25 ms, such as \(Duration.microseconds(1250 * steps).inMillisecondWords)"
        + " or \(Duration.microseconds(1250 * (steps + 1)).inMillisecondWords)")
    try check("packets", "\(packetsPerEvent ?? 1)", packetsPerEvent ?? 1 >= 1, "must be at least 1")
    try check("per", "\(packetErrorRate)", (0...0.99).contains(packetErrorRate), "must be 0...0.99")
    try check("rssi", "\(rssi)", (-127...20).contains(rssi), "must be -127...20")
    try check("queue", "\(queueDepth ?? 1)", (1...10_000).contains(queueDepth ?? 1), "must be 1...10000")
    let timeout = supervisionTimeout.inMillisecondWords
    try check(
      "timeout", timeout, (.milliseconds(100)...(.seconds(32))).contains(supervisionTimeout),
      "must be 100...32000 ms")
    try check(
      "timeout", timeout, supervisionTimeout.inNanoseconds % 10_000_000 == 0, "must be a multiple of 10 ms")
    try check(
      "timeout", timeout, supervisionTimeout > connectionInterval * 2,
      "must be longer than two connection intervals of \(interval) ms")
    try validateThatPacketsFit()
  }

  /// A packet that is longer than the interval would wait for ever.
  private func validateThatPacketsFit() throws(SettingError) {
    func pair(_ octets: Int) -> Duration {
      AirTime.pair(centralOctets: octets, phy: phy, isEncrypted: isEncrypted)
    }
    guard pair(dataLength) > connectionInterval else { return }
    let steps = (pair(dataLength).inNanoseconds + 1_249_999) / 1_250_000
    var fitting = dataLength
    while fitting > 27, pair(fitting) > connectionInterval { fitting -= 1 }
    throw SettingError(
      key: "interval", value: connectionInterval.inMillisecondWords,
      problem: "is shorter than one exchange of \(dataLength) octets on PHY \(phy), which takes"
        + " \(pair(dataLength).inMillisecondWords) ms: use interval="
        + "\(Duration.microseconds(1250 * steps).inMillisecondWords) or dle=\(fitting)")
  }

  /// The words that ``init(parsing:)`` reads as this value; what has its default is left out, but for the first four.
  public var description: String {
    var words = [
      "phy=\(phy)", "mtu=\(attMTU)", "dle=\(dataLength)", "interval=\(connectionInterval.inMillisecondWords)",
    ]
    if let packetsPerEvent { words.append("packets=\(packetsPerEvent)") }
    if isEncrypted { words.append("encrypted=yes") }
    if packetErrorRate != 0 { words.append("per=\(packetErrorRate.inPlainDecimal)") }
    if supervisionTimeout != Self.defaultSupervisionTimeout(interval: connectionInterval) {
      words.append("timeout=\(supervisionTimeout.inMillisecondWords)")
    }
    if rssi != LinkParameters().rssi { words.append("rssi=\(rssi)") }
    if let queueDepth { words.append("queue=\(queueDepth)") }
    if let mtuExchangeDelay { words.append("mtu-delay=\(mtuExchangeDelay.inMillisecondWords)") }
    return words.joined(separator: ",")
  }
}
