/// What WELCOME has said about the receiver.
struct PeerLimits: Hashable, Sendable {
  /// The largest segment that fits its buffer too, as a power of two.
  var segmentPower: UInt8
  /// The buffer, as a power of two, rounded down.
  var bufferPower: UInt8
  var coding: CodingSupport?
}

/// How an object is offered.
enum CodingPlan: Int, Hashable, Sendable {
  /// As it is.
  case uncoded
  /// Compressed.
  case plain
  /// With a base that the receiver may hold.
  case base
}

extension SenderSession {
  /// How the object under way is offered.
  var codingPlan: CodingPlan {
    guard let coding = run.object.coding, let support = peer?.coding, codingLimit != .uncoded else {
      return .uncoded
    }
    if coding.base != nil, support.basePower != nil, codingLimit == .base { return .base }
    return coding.compresses ? .plain : .uncoded
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

  /// The segment size that OFFER states, as a power of two.
  func segmentPower(for plan: CodingPlan) -> UInt8 {
    let lowest = SegmentLayout.powers.lowerBound
    guard let peer else { return lowest }
    switch plan {
    case .uncoded: return min(configuration.segmentPower, peer.segmentPower)
    case .plain:
      if let power = configuration.codedSegmentPower { return min(power, peer.segmentPower) }
      // A segment is begun where it fits: with four of them in the buffer one is on its way while others are stored.
      let fourth = max(lowest, peer.bufferPower - min(peer.bufferPower, 2))
      return min(HaulConfiguration.plainCodedPower, peer.segmentPower, fourth)
    case .base:
      var power = min(configuration.codedSegmentPower ?? HaulConfiguration.baseCodedPower, peer.segmentPower)
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
      codingLimit = .plain
      return (nil, false)
    }
    if let base, proof != base.proof {
      codingLimit = .plain
      return (nil, false)
    }
    return (request, true)
  }
}
