/// A parameter of a link that wastes air: what it costs, and what would be better.
///
/// By arithmetic alone: a change is advised where ``LinkCeiling`` gains at least ``leastGain`` by it.
public struct LinkAdvice: Hashable, Sendable {
  /// What wastes the link; as in the words of ``LinkParameters``.
  public enum Parameter: String, Hashable, Sendable, CaseIterable {
    case dataLength = "dle"
    case attMTU = "mtu"
    case phy
    case packetsPerEvent = "packets"
    case interval
  }

  /// What wastes the link.
  public let parameter: Parameter
  /// Why, in words.
  public let message: String
  /// The link with another value.
  public let better: LinkParameters
  /// Octets per second at best with it.
  public let ceiling: Double

  /// The share by which a ceiling must grow for a change to be worth a word.
  public static let leastGain = 0.03

  /// What wastes a link of valid parameters for this traffic; empty where nothing does.
  public static func advice(
    on parameters: LinkParameters, for traffic: LinkCeiling.Traffic
  ) -> [LinkAdvice] {
    let review = LinkReview(parameters, traffic)
    var advice = [review.dataLength, review.phy].compactMap(\.self)
    // Lengths that fit the present data length are of no use with a better one.
    if !advice.contains(where: { $0.parameter == .dataLength }), let lengths = review.attMTU {
      advice.insert(lengths, at: 0)
    }
    // An interval that suits few packets an event is what the other advice is about.
    if let pace = review.packetsPerEvent ?? review.interval { advice.append(pace) }
    return advice
  }
}

/// Looks at one parameter after the other.
private struct LinkReview {
  private let link: LinkParameters
  private let traffic: LinkCeiling.Traffic
  private let flow: LinkCeiling.Flow
  private let ceiling: Double

  /// The longest data length (Core Vol 6 Part B 4.5.10), and octets of the L2CAP and the ATT header in front of a value.
  private static let longestPacket = 251
  private static let headers = 4 + 3
  /// Intervals that are looked through, in steps of 1.25 ms: 7.5 to 100 ms. Receipts and answers come too late on longer ones.
  private static let intervalSteps = 6...80

  init(_ link: LinkParameters, _ traffic: LinkCeiling.Traffic) {
    self.link = link
    self.traffic = traffic
    flow = LinkCeiling(link).flow(of: traffic)
    ceiling = LinkCeiling(link).octetsPerSecond(of: traffic)
  }

  private func advice(
    _ parameter: LinkAdvice.Parameter, _ message: String, _ better: LinkParameters
  ) -> LinkAdvice? {
    var better = better
    better.supervisionTimeout = max(
      better.supervisionTimeout, LinkParameters.defaultSupervisionTimeout(interval: better.connectionInterval)
    )
    guard (try? better.validate()) != nil else { return nil }
    let gained = LinkCeiling(better).octetsPerSecond(of: traffic)
    guard gained >= ceiling * (1 + LinkAdvice.leastGain) else { return nil }
    return LinkAdvice(parameter: parameter, message: message, better: better, ceiling: gained)
  }

  var dataLength: LinkAdvice? {
    guard link.dataLength < Self.longestPacket else { return nil }
    var better = link
    better.dataLength = longestPacket(in: link.connectionInterval)
    let count = LinkCeiling(better).flow(of: traffic).packets.count
    let now = flow.packets.count
    return advice(
      .dataLength,
      "data length \(link.dataLength): \(now) packets carry what \(count) of up to \(better.dataLength) octets could,"
        + " and each has its header, its answer and two pauses",
      better)
  }

  /// The longest packet whose exchange fits an interval.
  private func longestPacket(in interval: Duration) -> Int {
    var octets = Self.longestPacket
    while octets > link.dataLength,
      AirTime.pair(centralOctets: octets, phy: link.phy, isEncrypted: link.isEncrypted) > interval
    {
      octets -= 1
    }
    return octets
  }

  var attMTU: LinkAdvice? {
    guard traffic != .channel else { return nil }
    var better = link
    guard flow.packets.count > 1, let last = flow.packets.last, last < link.dataLength else {
      // One packet that is not full, or a data length that fits nothing longer.
      better.dataLength = longestPacket(in: link.connectionInterval)
      better.attMTU = better.dataLength - Self.headers + 3
      guard better.attMTU > link.attMTU else { return nil }
      let lengths =
        better.dataLength == link.dataLength ? "" : " and data length \(link.dataLength)"
      return advice(
        .attMTU,
        "ATT MTU \(link.attMTU)\(lengths): a packet carries \(flow.payload) octets, where it could carry \(better.attMTU - 3)",
        better)
    }
    let whole = flow.packets.count - 1
    better.attMTU = whole * link.dataLength - Self.headers + 3
    guard better.attMTU >= 23 else { return nil }
    return advice(
      .attMTU,
      "ATT MTU \(link.attMTU): behind \(whole) full packet\(whole == 1 ? "" : "s") each value needs one of \(last) octets,"
        + " which takes an exchange of its own; \(better.attMTU) needs none",
      better)
  }

  var phy: LinkAdvice? {
    guard link.phy != .le2M else { return nil }
    var better = link
    better.phy = .le2M
    let message =
      link.phy == .le1M
      ? "PHY 1M: where both ends can do 2M, each packet is half as long on the air"
      : "PHY \(link.phy) buys distance with air time: where both ends are near, 2M takes a fraction of it"
    return advice(.phy, message, better)
  }

  /// A controller that sends few packets an event is served by a shorter interval.
  var packetsPerEvent: LinkAdvice? {
    guard let limit = link.packetsPerEvent else { return nil }
    let packets = limit == 1 ? "1 packet" : "\(limit) packets"
    var better = link
    better.packetsPerEvent = nil
    let silent =
      "\(packets) in an event of \(link.connectionInterval.inMillisecondWords) ms and silence for the rest"
    guard let free = advice(.packetsPerEvent, "", better) else { return nil }
    better.packetsPerEvent = limit
    better.connectionInterval = shortestInterval(for: limit)
    guard better.connectionInterval < link.connectionInterval,
      let shorter = advice(
        .packetsPerEvent, "\(silent): a shorter interval, or a controller that sends more", better)
    else {
      return LinkAdvice(
        parameter: .packetsPerEvent, message: "\(silent): use a controller that sends more",
        better: free.better, ceiling: free.ceiling)
    }
    return shorter
  }

  private func shortestInterval(for packets: Int) -> Duration {
    let longest = AirTime.pair(
      centralOctets: flow.packets.max() ?? 0, phy: link.phy, isEncrypted: link.isEncrypted)
    for steps in Self.intervalSteps where longest * packets <= .microseconds(1250 * steps) {
      return .microseconds(1250 * steps)
    }
    return link.connectionInterval
  }

  /// The shortest interval that comes to 98 % of the best one's ceiling.
  var interval: LinkAdvice? {
    let candidates = Self.intervalSteps.map { steps in
      var candidate = link
      candidate.connectionInterval = .microseconds(1250 * steps)
      return (candidate, pace(candidate))
    }
    let best = candidates.map(\.1).max() ?? 0
    guard best >= ceiling * (1 + LinkAdvice.leastGain),
      let (better, _) = candidates.first(where: { $0.1 >= 0.98 * best })
    else { return nil }
    return advice(.interval, intervalMessage(better), better)
  }

  /// For the search among many intervals, SDUs that repeat soon; whether the find is worth it is computed with the traffic itself.
  private func pace(_ link: LinkParameters) -> Double {
    let ceiling = LinkCeiling(link)
    return traffic == .channel ? ceiling.channel(sdu: 4096).sustained : ceiling.octetsPerSecond(of: traffic)
  }

  private func intervalMessage(_ better: LinkParameters) -> String {
    let words = "interval \(link.connectionInterval.inMillisecondWords) ms"
    if traffic == .requests {
      return "\(words): each request and its response wait for an event of their own"
    }
    let idle = Int((flow.idleShare * 100).rounded())
    if link.packetErrorRate > 0, better.connectionInterval < link.connectionInterval {
      return "\(words): two packets lost in a row end an event, and the rest of the interval is silent"
    }
    return "\(words): \(idle) % of it is left over, too short for another exchange"
  }
}
