/// The most payload that a link can carry in one direction, by arithmetic: what a measured rate is compared with.
///
/// Packets are sized, paired with empty answers and filled into connection events as ``LinkLayer`` does it, with a source that never runs dry.
/// docs/link-budget.md has the formulas with their sources.
public struct LinkCeiling: Hashable, Sendable {
  /// Of which link.
  public let parameters: LinkParameters

  /// Makes the ceiling of a link.
  public init(_ parameters: LinkParameters) { self.parameters = parameters }

  /// Write commands (or notifications) of `valueLength` octets each; nil: the ATT MTU less 3.
  ///
  /// An attribute value has at most 512 octets, so real traffic at ATT MTU 516 and 517 stays just below.
  public func writesWithoutResponse(valueLength: Int? = nil) -> Flow {
    let length = max(valueLength ?? parameters.attMTU - 3, 0)
    return Flow(parameters, payload: length, frames: [4 + 3 + length])
  }

  /// Service data units of `sdu` octets on a credit-based channel, in K-frames of at most `mps` octets; nil: as many as the simulated host
  /// agrees on, whose frames fill whole packets. Credits are taken to be plenty.
  public func channel(sdu: Int, mps: Int? = nil) -> Flow {
    let mps = max(mps ?? LinkHost.channelMPS(dataLength: parameters.dataLength), 23)
    var frames: [Int] = []
    var left = max(sdu, 1)
    while left > 0 {
      // The first K-frame of an SDU carries its length in two octets.
      let lengthField = frames.isEmpty ? 2 : 0
      let part = min(left, mps - lengthField)
      frames.append(4 + lengthField + part)
      left -= part
    }
    return Flow(parameters, payload: max(sdu, 1), frames: frames)
  }
}

extension LinkCeiling {
  /// What carries bulk data in one direction, each unit as long as it can be.
  public enum Traffic: String, Hashable, Sendable, CaseIterable {
    /// Write Commands.
    case commands
    /// Write Requests, each after the response to the one before.
    case requests
    /// Notifications, from the peripheral to the central.
    case notifications
    /// A credit-based L2CAP channel.
    case channel
  }

  /// The longest attribute value (Core Vol 3 Part F 3.2.9).
  public static let longestValue = 512
  /// The longest service data unit of a channel (Core Vol 3 Part A 3.4.3).
  public static let longestSDU = 65535

  /// The units that the traffic consists of at its best.
  public func flow(of traffic: Traffic) -> Flow {
    switch traffic {
    case .commands, .requests, .notifications:
      writesWithoutResponse(valueLength: min(max(parameters.attMTU - 3, 0), Self.longestValue))
    case .channel: channel(sdu: Self.longestSDU)
    }
  }

  /// Octets of payload per second that the traffic comes to at most, in the long run.
  public func octetsPerSecond(of traffic: Traffic) -> Double {
    let flow = flow(of: traffic)
    return traffic == .requests ? flow.acknowledged : flow.sustained
  }
}

extension LinkCeiling {
  /// A stream of equal units (values, SDUs), each a fixed sequence of packets.
  public struct Flow: Hashable, Sendable {
    /// Payload octets of one unit.
    public let payload: Int
    /// Link layer payloads of the packets of one unit, in octets.
    public let packets: [Int]

    private let timing: LinkTiming
    private let errorRate: Double

    init(_ parameters: LinkParameters, payload: Int, frames: [Int]) {
      self.payload = payload
      timing = LinkTiming(parameters)
      errorRate = min(max(parameters.packetErrorRate, 0), 0.99)
      let dataLength = timing.dataLength
      packets = frames.flatMap { frame in
        stride(from: 0, to: frame, by: dataLength).map { min(dataLength, frame - $0) }
      }
    }

    /// Octets per second if connection events had no borders and no packet were lost.
    public var asymptote: Double {
      let cycle = packets.reduce(0) { $0 + timing.pair($1, 0) }
      return Double(payload) * 1_000_000 / Double(cycle)
    }

    /// Octets per second in the long run: whole pairs in each interval, at most the packet limit, lost packets sent again.
    ///
    /// With a packet error rate this is an expectation.
    public var sustained: Double {
      let cycle = cycle
      let seconds = Double(cycle.events * timing.interval) / 1_000_000
      let units = Double(cycle.packets) / Double(packets.count)
      return units * Double(payload) / seconds * yield(ofPairs: cycle.packets, in: cycle.events)
    }

    /// Octets per second where each unit waits for the response to the one before: that comes in the event after the unit's last packet,
    /// and the next unit leaves in the event after that. Loss is not counted.
    public var acknowledged: Double {
      var (events, sent) = (1, 0)
      while sent < packets.count {
        let count = packetsInEvent(startingWith: sent)
        guard count > 0 else { return 0 }
        events += 1
        sent += count
      }
      return Double(payload) * 1_000_000 / Double(events * timing.interval)
    }

    /// Exchanges in a connection event in the long run, if no packet were lost.
    public var exchangesPerEvent: Double {
      let cycle = cycle
      return Double(cycle.packets) / Double(cycle.events)
    }

    /// The part of the connection interval in which nothing is on the air or between two packets, if no packet were lost; 0...1.
    public var idleShare: Double {
      let unit = packets.reduce(0) { $0 + timing.pair($1, 0) }
      let busy = Double(unit) * exchangesPerEvent / Double(packets.count)
      return max(0, 1 - busy / Double(timing.interval))
    }

    /// Connection events after which the same packet begins an event, and what they send.
    private var cycle: (events: Int, packets: Int) {
      // The packet that an event starts with repeats sooner or later; between two repetitions the rate is exact.
      var seen: [Int: (events: Int, packets: Int)] = [:]
      var first = 0
      var events = 0
      var sent = 0
      while true {
        if let earlier = seen[first] { return (events - earlier.events, sent - earlier.packets) }
        seen[first] = (events, sent)
        let count = packetsInEvent(startingWith: first)
        events += 1
        sent += count
        first = (first + count) % packets.count
      }
    }

    /// Whole units sent in the first `count` connection events, without loss.
    public func units(inEvents count: Int) -> Int {
      var sent = 0
      for _ in 0..<max(count, 0) { sent += packetsInEvent(startingWith: sent % packets.count) }
      return sent / packets.count
    }

    private func packetsInEvent(startingWith first: Int) -> Int {
      var left = timing.interval
      var count = 0
      while count < timing.pairsPerEvent {
        left -= timing.pair(packets[(first + count) % packets.count], 0)
        guard left >= 0 else { break }
        count += 1
      }
      return count
    }

    /// The share of pairs that moves on to the next packet when some are lost.
    ///
    /// Both packets of a pair must arrive; two invalid ones in a row at either side close the event.
    private func yield(ofPairs pairs: Int, in events: Int) -> Double {
      guard errorRate > 0, pairs > 0, events > 0 else { return 1 }
      let mean = Double(pairs) / Double(events)
      let low = Int(mean)
      let share = mean - Double(low)
      let few = LossChain(errorRate: errorRate, pairs: low).progress
      let many = LossChain(errorRate: errorRate, pairs: low + 1).progress
      return ((1 - share) * few + share * many) / mean
    }
  }
}

/// How many packets of a full queue get through in a connection event with loss, as an expectation.
private struct LossChain {
  /// What both sides have seen at the start of a pair: a sum of these.
  private enum Seen {
    /// The last packet that the peripheral (the central) received was invalid.
    static let peripheralWarned = 1
    static let centralWarned = 2
    /// The peripheral has the packet already; only its acknowledgement was lost.
    static let received = 4
    static let all = 0..<8
  }

  /// One event, as an expectation.
  private struct Event {
    /// Packets acknowledged.
    var progress = 0.0
    /// How probable it is that it ends with a packet received and not acknowledged.
    var endsReceived = 0.0
  }

  /// Packets acknowledged in one event.
  let progress: Double

  init(errorRate: Double, pairs: Int) {
    guard pairs > 0 else {
      progress = 0
      return
    }
    // An event may start with a packet that the one before has delivered. What an event does is linear in how probable that is,
    // and in the long run it ends as probably so as it has started.
    let fresh = Self.event(of: pairs, startingWith: 0, errorRate)
    let delivered = Self.event(of: pairs, startingWith: Seen.received, errorRate)
    let share = fresh.endsReceived / (1 - delivered.endsReceived + fresh.endsReceived)
    progress = (1 - share) * fresh.progress + share * delivered.progress
  }

  private static func event(of pairs: Int, startingWith state: Int, _ errorRate: Double) -> Event {
    var event = Event()
    var open = [Double](repeating: 0, count: Seen.all.count)
    open[state] = 1
    for _ in 0..<pairs {
      var next = [Double](repeating: 0, count: Seen.all.count)
      for state in Seen.all where open[state] > 0 {
        for isLost in [false, true] {
          let share = open[state] * (isLost ? errorRate : 1 - errorRate)
          let received = isLost ? state & Seen.received : Seen.received
          if isLost, state & Seen.peripheralWarned != 0 {
            event.endsReceived += received != 0 ? share : 0
            continue
          }
          let warned = isLost ? Seen.peripheralWarned : 0
          next[warned] += share * (1 - errorRate)
          if received != 0 { event.progress += share * (1 - errorRate) }
          if state & Seen.centralWarned != 0 {
            event.endsReceived += received != 0 ? share * errorRate : 0
          } else {
            next[warned | Seen.centralWarned | received] += share * errorRate
          }
        }
      }
      open = next
    }
    for state in Seen.all where state & Seen.received != 0 { event.endsReceived += open[state] }
    return event
  }
}
