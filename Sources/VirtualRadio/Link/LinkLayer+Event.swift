extension LinkLayer {
  /// How a connection event went.
  struct EventOutcome {
    /// From the anchor to the end of the last packet.
    var microseconds: Int
    /// The cut that was armed has happened.
    var fellSilent = false
  }

  /// Simulates one connection event and stores what it delivers.
  mutating func runEvent(at anchor: Int64) -> EventOutcome {
    var outcome = EventOutcome(microseconds: 0)
    // Microseconds since the anchor at which the next pair starts.
    var elapsed = 0
    var pairs = 0
    // Two invalid packets in a row close the event for the side that received them.
    var invalidAtPeripheral = 0
    var invalidAtCentral = 0
    var peripheralGoesOn = true

    while pairs < timing.pairsPerEvent, pairs == 0 || central.hasFrames || peripheralGoesOn {
      guard let sizes = nextPair(startingAt: elapsed, isFirst: pairs == 0) else { break }
      pairs += 1
      let centralEnd = elapsed + timing.packet(sizes.central)
      outcome.microseconds = centralEnd
      central.send(octets: sizes.central)
      if isLost() {
        invalidAtPeripheral += 1
        if invalidAtPeripheral == 2 { break }
      } else {
        invalidAtPeripheral = 0
        peripheral.lastHeard = anchor + Int64(centralEnd) * 1000
        if peripheral.canBeAcknowledged { peripheral.acknowledge() }
        if deliver(central.receive(), to: .peripheral, at: peripheral.lastHeard) {
          outcome.fellSilent = true
          break
        }
      }

      let answer =
        peripheral.mustRepeat ? peripheral.nextOctets(dataLength: timing.dataLength) : sizes.peripheral
      let peripheralEnd = centralEnd + AirTime.interFrameMicroseconds + timing.packet(answer)
      // A repetition that the lost acknowledgement has made necessary may not fit any more.
      if peripheralEnd + AirTime.interFrameMicroseconds > timing.interval, pairs > 1 { break }
      outcome.microseconds = peripheralEnd
      elapsed = peripheralEnd + AirTime.interFrameMicroseconds
      peripheral.send(octets: answer)
      if isLost() {
        invalidAtCentral += 1
        if invalidAtCentral == 2 { break }
        peripheralGoesOn = true
      } else {
        invalidAtCentral = 0
        central.lastHeard = anchor + Int64(peripheralEnd) * 1000
        if central.canBeAcknowledged { central.acknowledge() }
        if deliver(peripheral.receive(), to: .central, at: central.lastHeard) {
          outcome.fellSilent = true
          break
        }
        peripheralGoesOn = peripheral.hasMore
      }
    }
    return outcome
  }

  /// Payloads of the next pair, or nil if none fits what is left of the interval.
  ///
  /// If two data packets do not fit together, one side sends an empty one; the sides take turns.
  private mutating func nextPair(startingAt elapsed: Int, isFirst: Bool) -> (central: Int, peripheral: Int)? {
    let left = timing.interval - elapsed
    let octets = central.nextOctets(dataLength: timing.dataLength)
    let answer = peripheral.octetsAfterAcknowledgement(dataLength: timing.dataLength)
    if timing.pair(octets, answer) <= left { return (octets, answer) }
    if octets > 0, answer > 0 {
      let first: (Int, Int) = yieldingSide == .peripheral ? (octets, 0) : (0, answer)
      let second: (Int, Int) = yieldingSide == .peripheral ? (0, answer) : (octets, 0)
      for pair in [first, second] where canSend(pair, answer: answer) && timing.pair(pair.0, pair.1) <= left {
        yieldingSide = pair.0 == 0 ? .peripheral : .central
        return pair
      }
    }
    // The first exchange always takes place: it keeps the link alive even if no data packet ever fits.
    return isFirst && canSend((0, 0), answer: answer) ? (0, 0) : nil
  }

  /// Whether the sides are free to send empty packets where `pair` has them.
  private func canSend(_ pair: (Int, Int), answer: Int) -> Bool {
    (pair.0 > 0 || !central.mustRepeat)
      && (pair.1 > 0 || peripheral.canBeAcknowledged || !peripheral.mustRepeat)
  }

  private mutating func isLost() -> Bool { errorThreshold > 0 && generator.next() < errorThreshold }

  /// Stores a frame that is now complete; returns whether the link is cut here.
  private mutating func deliver(
    _ reception: Transmitter.Reception, to side: LinkSide, at instant: Int64
  ) -> Bool {
    switch reception {
    case .nothingNew: return false
    case .frame(let frame):
      eventOutputs.append(.delivered(to: side, frame: frame, at: .nanoseconds(instant)))
      return false
    case .cut: return true
    }
  }
}
