extension FaultPlan: CustomStringConvertible {
  /// The words that ``init(parsing:)`` reads as this plan; empty for the empty plan.
  public var description: String {
    guard !isEmpty || seed != 1 else { return "" }
    var words = faults.map(\.words)
    if let eraseTime { words.append("slow-erase=\(eraseTime.inMillisecondWords)") }
    if seed != 1 { words.append("seed=\(seed)") }
    return words.joined(separator: ",")
  }
}

extension Fault {
  fileprivate var words: String {
    switch kind {
    case .link(.drop): "drop" + place
    case .link(.dropInsideFrame): "drop-in-frame" + place
    case .link(.hangUp): "hangup" + place
    case .host(.reboot(let downtime)): "reboot\(place):\(downtime.inMillisecondWords)"
    case .host(.freeze(nil)): "freeze" + place
    case .host(.freeze(let time?)): "freeze\(place):\(time.inMillisecondWords)"
    case .host(.overflow(let count)): "overflow\(place):\(count)"
    case .host(.lateReady(let delay)): "late-ready\(place):\(delay.inMillisecondWords)"
    case .host(.lostReady): "lost-ready" + place
    case .host(.loseNotifications(let count)): "lose-notify\(place):\(count)"
    case .host(.changeMTU(let mtu)): "mtu\(place)=\(mtu)"
    case .host(.limitCredits(0)): "no-credits" + place
    case .host(.limitCredits(let count)): "no-credits\(place):\(count)"
    case .corrupt: "corrupt" + place
    }
  }

  private var place: String {
    switch trigger {
    case .octets(let count): "@\(count)"
    case .share(let share): "@\((share * 100).inPlainDecimal)%"
    case .time(let time): "@\(time.inMillisecondWords)ms"
    case .probability(let probability): "~\(probability.inPlainDecimal)"
    }
  }
}
