/// What WELCOME has said about the receiver.
struct PeerLimits: Hashable, Sendable {
  /// The largest segment that fits its buffer too, as a power of two.
  var segmentPower: UInt8
  /// The buffer, as a power of two, rounded down.
  var bufferPower: UInt8
  var coding: CodingSupport?

  /// Those of a receiver that nobody has set otherwise: what is assumed before WELCOME.
  static let usual = {
    let receiver = ReceiverConfiguration(device: []).effective
    return Self(
      segmentPower: receiver.largestSegmentPower, bufferPower: power(of: UInt32(clamping: receiver.buffer)),
      coding: receiver.coding)
  }()

  /// A number of octets as a power of two, rounded down.
  static func power(of octets: UInt32) -> UInt8 { UInt8(UInt32.bitWidth - 1 - octets.leadingZeroBitCount) }
}

/// Why an object travels with less coding than it was meant to.
public enum CodingShortfall: String, Hashable, Sendable, CaseIterable {
  /// The receiver cannot decode, or uses no bases.
  case notSupported = "not-supported"
  /// The receiver does not hold the base.
  case notHeld = "not-held"
  /// What was coded could not be decoded, was not what it should be, or did not get through.
  case failed
}

/// How an object is offered.
enum CodingPlan: Int, Hashable, Sendable, Comparable {
  /// As it is.
  case uncoded
  /// Compressed.
  case plain
  /// With a base that the receiver may hold.
  case base

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension SenderSession {
  /// Losses of one segment after which a coded stream goes on in smaller ones.
  static let codedLosses = 3

  /// How the object under way is offered.
  var codingPlan: CodingPlan {
    guard let wanted = run.object.coding, let support = peer?.coding, coding.limit != .uncoded else {
      return .uncoded
    }
    if wanted.base != nil, support.basePower != nil, coding.limit == .base { return .base }
    return wanted.compresses ? .plain : .uncoded
  }

  /// What OFFER asks for.
  var codingRequest: CodingRequest? {
    switch codingPlan {
    case .uncoded: return nil
    case .plain: return CodingRequest()
    case .base:
      guard let base = run.object.coding?.base, let power = peer?.coding?.basePower else { return nil }
      let identity = BaseRequest(sha256: base.sha256, size: base.size, challenge: base.challenge)
      return CodingRequest(
        base: CodingRequest.Base(power: min(power, SegmentEncoder.basePower), identity: identity))
    }
  }

  /// Why the object under way is coded less than it was meant to; nil where it is not.
  var codingShortfall: CodingShortfall? {
    guard let wanted = run.object.coding else { return nil }
    let best: CodingPlan = wanted.base != nil ? .base : wanted.compresses ? .plain : .uncoded
    let now: CodingPlan = run.coding == nil ? .uncoded : run.coding?.base == nil ? .plain : .base
    guard now < best else { return nil }
    return coding.shortfall ?? .notSupported
  }

  /// The segment size that OFFER states, as a power of two.
  func segmentPower(for plan: CodingPlan) -> UInt8 {
    let lowest = SegmentLayout.powers.lowerBound
    guard let peer else { return lowest }
    let most = min(peer.segmentPower, coding.powerLimit ?? peer.segmentPower)
    // A segment is begun where it fits: with four of them in the buffer one is on its way while others are stored.
    let fourth = max(lowest, peer.bufferPower - min(peer.bufferPower, 2))
    switch plan {
    case .uncoded: return min(configuration.segmentPower, most)
    case .plain:
      if let power = configuration.codedSegmentPower { return min(power, most) }
      return min(HaulConfiguration.plainCodedPower, most, fourth)
    case .base:
      var power = min(configuration.codedSegmentPower ?? HaulConfiguration.baseCodedPower, most)
      if configuration.codedSegmentPower == nil, run.object.size > 1 << UInt64(power) {
        // Not the only segment: the next ones must not wait for it.
        power = min(power, fourth)
      }
      if let base = codingRequest?.base, base.identity.size > 1 << UInt64(base.power) {
        // What a segment has to refer to lies somewhere around it, and has to be in sight.
        power = min(power, max(lowest, base.power - 1))
      }
      return power
    }
  }

  /// What ACCEPT grants of what was asked for; nil where the object has to be offered anew, with less.
  mutating func granted(_ accept: HaulReply.Accept) -> (coding: CodingRequest?, isFinal: Bool) {
    guard let request = codingRequest else { return (nil, true) }
    let base = request.base == nil ? nil : run.object.coding?.base
    guard case .coded(let proof) = accept.coding else {
      guard base != nil else { return (nil, true) }
      coding.dropBase()
      return (nil, false)
    }
    if let base, proof != base.proof {
      coding.dropBase()
      return (nil, false)
    }
    coding.wasCoded = true
    return (request, true)
  }

  /// Begins the object under way anew, with what ``coding`` still permits; what the receiver has of it stays.
  mutating func offerAnew(now: Duration) {
    run = ObjectRun(run.object, index: run.index)
    offerObject(now: now)
  }

  /// Whether the failure is one of the coding: it costs the coding and not the object.
  mutating func blamesCoding(_ code: HaulFailureCode) -> Bool {
    switch code {
    case .undecodable where run.coding != nil:
      break
    case .hashDiffers where coding.wasCoded:
      // The receiver has thrown away what it had.
      coding.wasCoded = false
    default:
      return false
    }
    coding.drop(.failed)
    return true
  }

  /// Lowers the size of coded segments where the session has ended within the first one: uncoded ones might have got through.
  mutating func weighCodingAtEnd() {
    guard run.coding != nil, run.endedWithinSegment else { return }
    coding.lower(from: segmentPower)
  }
}
