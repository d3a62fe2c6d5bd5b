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

  /// Payloads of the next pair, or nil if it does not fit what is left of the interval.
  ///
  /// The first pair always takes place, to keep the link alive. If its two data packets do not fit even a whole interval together,
  /// one side sends an empty packet instead; the sides take turns.
  private mutating func nextPair(startingAt elapsed: Int, isFirst: Bool) -> (central: Int, peripheral: Int)? {
    let octets = central.nextOctets(dataLength: timing.dataLength)
    let answer = peripheral.octetsAfterAcknowledgement(dataLength: timing.dataLength)
    if elapsed + timing.pair(octets, answer) <= timing.interval { return (octets, answer) }
    guard isFirst else { return nil }
    let alternatives = yieldingSide == .peripheral ? [(octets, 0), (0, answer)] : [(0, answer), (octets, 0)]
    for pair in alternatives where pair != (0, 0) && canSend(pair) {
      guard timing.pair(pair.0, pair.1) <= timing.interval else { continue }
      yieldingSide = pair.0 == 0 ? .peripheral : .central
      return pair
    }
    return canSend((0, 0)) ? (0, 0) : nil
  }

  /// Whether the sides are free to send empty packets where `pair` has them.
  private func canSend(_ pair: (Int, Int)) -> Bool {
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
