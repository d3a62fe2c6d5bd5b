internal import Foundation
internal import Radio

/// Credit-based channels and their signalling (Core Vol 3 Part A 4, 10).
extension LinkHost {
  // MARK: Commands

  /// Asks the peer for a channel.
  mutating func openChannel(_ psm: PSM, _ id: ClientRequest, now: Duration) {
    guard !hasEnded else { return }
    guard (0x0001...0x00FF).contains(psm) else {
      return refuse(id, .invalidParameters, "PSM \(psm) is not in 1...255")
    }
    guard let cid = channels.freeCID else {
      return refuse(id, .noResources, "the link has \(ChannelTable.limit) channels already")
    }
    let channel = CreditChannel(psm: psm, localCID: cid, mps: channelMPS)
    channels.insert(channel)
    signal(
      .connectionRequest(psm: psm, source: cid, channel.local), .connect(cid: cid, id), now: now)
  }

  /// Takes bytes that have arrived; credits go back as the buffer empties.
  mutating func readChannel(_ cid: UInt16, upTo count: Int) -> Data {
    let bytes = channels[cid]?.read(upTo: count) ?? Data()
    grant(cid)
    return bytes
  }

  /// Takes a prefix to be sent and returns its length.
  mutating func writeChannel(_ cid: UInt16, _ bytes: Data, now: Duration) -> Int {
    let taken = channels[cid]?.write(bytes) ?? 0
    pump(now)
    return taken
  }

  /// Closes a channel once everything written has been sent.
  mutating func closeChannel(_ cid: UInt16, now: Duration) {
    guard channels[cid]?.phase == .open else { return }
    channels[cid]?.phase = .draining
    channels[cid]?.dropIncoming()
    grant(cid)
    pump(now)
  }

  /// Closes all channels that were accepted on a PSM.
  mutating func closeChannels(of psm: PSM, now: Duration) {
    for cid in channels.cids {
      if let channel = channels[cid], channel.isAccepted, channel.psm == psm { closeChannel(cid, now: now) }
    }
  }

  // MARK: Frames

  mutating func receivedChannelFrame(_ frame: [UInt8], _ cid: UInt16, _ now: Duration) {
    guard let phase = channels[cid]?.phase, phase != .connecting else { return }
    do {
      try channels[cid]?.receive(frame)
    } catch {
      return abort(cid, error, now)
    }
    if channels[cid]?.takeReadable() == true { outputs.append(.channelEvent(cid: cid, .readable)) }
    grant(cid)
  }

  mutating func receivedSignal(_ frame: [UInt8], _ now: Duration) {
    let pdu: SignallingPDU
    do {
      pdu = try SignallingPDU(frame: frame)
    } catch {
      switch error {
      case .tooShort: break
      case .unknownCode(_, let identifier), .malformed(_, let identifier):
        if identifier != 0 { answer(identifier, .reject(.notUnderstood)) }
      }
      return
    }
    switch pdu.command {
    case .connectionRequest(let psm, let source, let limits):
      accept(pdu.identifier, psm, source, limits)
    case .connectionResponse(let destination, let limits, let result):
      connected(pdu.identifier, destination, limits, result, now)
    case .disconnectionRequest(let destination, let source):
      disconnected(pdu.identifier, destination, source)
    case .disconnectionResponse, .reject: settle(pdu, now)
    case .flowControlCredit(let cid, let credits): addCredits(cid, Int(credits), now)
    case .parameterUpdateRequest(let low, let high, _, _):
      updateInterval(pdu.identifier, low, high)
    case .parameterUpdateResponse: break
    }
  }

  /// Gives up signalling requests that nobody has answered.
  mutating func expireSignals(_ now: Duration) {
    for (identifier, signal) in channels.signals where signal.deadline <= now {
      channels.signals[identifier] = nil
      switch signal.pending {
      case .connect(let cid, let id):
        channels.remove(cid)
        refuse(id, .timeout, "the peer did not answer the channel request in 30 s")
      case .disconnect(let cid): finish(cid, nil)
      }
    }
  }

  /// What follows a change of buffers: drained channels are disconnected, writers are told of room.
  mutating func finishChannelWork(_ now: Duration) {
    for cid in channels.cids {
      if channels[cid]?.takeWritable() == true { outputs.append(.channelEvent(cid: cid, .writable)) }
      if channels[cid]?.phase == .draining, channels[cid]?.hasSentAll == true { disconnect(cid, now) }
    }
  }

  /// The link is gone.
  mutating func endChannels(_ reason: RadioError?) {
    for cid in channels.cids where channels[cid]?.phase != .connecting {
      // A channel that this side has closed has ended in order as far as it can see.
      finish(cid, channels[cid]?.phase == .open ? reason : nil)
    }
    channels.signals.removeAll()
  }

  // MARK: Signalling

  private mutating func accept(
    _ identifier: UInt8, _ psm: PSM, _ source: UInt16, _ limits: SignallingPDU.ChannelLimits
  ) {
    func refuse(_ result: SignallingPDU.ConnectionResult) {
      let none = SignallingPDU.ChannelLimits(mtu: 0, mps: 0, credits: 0)
      answer(identifier, .connectionResponse(destination: 0, none, result))
    }
    guard let needsEncryption = acceptedPSMs[psm] else { return refuse(.psmNotSupported) }
    guard parameters.isEncrypted || !needsEncryption else { return refuse(.insufficientEncryption) }
    guard ChannelIdentifier.dynamic.contains(source) else { return refuse(.invalidSource) }
    guard channels.cid(ofRemote: source) == nil else { return refuse(.sourceAlreadyAllocated) }
    guard CreditChannel.isAcceptable(limits) else { return refuse(.unacceptableParameters) }
    guard let cid = channels.freeCID else { return refuse(.noResources) }
    var channel = CreditChannel(
      psm: psm, localCID: cid, mps: channelMPS, isAccepted: true, creditLimit: creditsLeft)
    noteCredits(Int(channel.local.credits))
    channel.open(remoteCID: source, peer: limits)
    channels.insert(channel)
    answer(identifier, .connectionResponse(destination: cid, channel.local, .success))
    outputs.append(.channelAccepted(psm, cid: cid))
  }

  private mutating func connected(
    _ identifier: UInt8, _ remote: UInt16, _ limits: SignallingPDU.ChannelLimits,
    _ result: SignallingPDU.ConnectionResult, _ now: Duration
  ) {
    guard case .connect(let cid, let id)? = channels.signals[identifier]?.pending else { return }
    channels.signals[identifier] = nil
    guard result == .success else {
      let psm = channels[cid]?.psm ?? 0
      channels.remove(cid)
      return refuse(id, result.errorCode, "the peer refuses PSM \(psm): result \(result.rawValue)")
    }
    guard ChannelIdentifier.dynamic.contains(remote), channels.cid(ofRemote: remote) == nil,
      CreditChannel.isAcceptable(limits), let psm = channels[cid]?.psm
    else {
      channels.remove(cid)
      return refuse(id, .other, "the peer's answer to the channel request makes no sense")
    }
    channels[cid]?.open(remoteCID: remote, peer: limits)
    outputs.append(.channelConnected(id, psm, cid: cid))
  }

  private mutating func disconnected(_ identifier: UInt8, _ destination: UInt16, _ source: UInt16) {
    guard let channel = channels[destination], channel.remoteCID == source, channel.phase != .connecting
    else {
      return answer(identifier, .reject(.invalidChannel(local: destination, remote: source)))
    }
    answer(identifier, .disconnectionResponse(destination: destination, source: source))
    channels.signals = channels.signals.filter {
      if case .disconnect(destination) = $0.value.pending { false } else { true }
    }
    finish(destination, nil)
  }

  /// The answer to a Disconnection Request, or a rejection of any request.
  private mutating func settle(_ pdu: SignallingPDU, _ now: Duration) {
    guard let signal = channels.signals[pdu.identifier] else { return }
    switch (signal.pending, pdu.command) {
    case (.disconnect(let cid), _):
      channels.signals[pdu.identifier] = nil
      finish(cid, nil)
    case (.connect(let cid, let id), .reject):
      channels.signals[pdu.identifier] = nil
      channels.remove(cid)
      refuse(id, .notSupported, "the peer does not know credit-based channels")
    case (.connect, _): break
    }
  }

  private mutating func addCredits(_ remote: UInt16, _ credits: Int, _ now: Duration) {
    guard let cid = channels.cid(ofRemote: remote) else { return }
    do {
      try channels[cid]?.addCredits(credits)
    } catch {
      abort(cid, error, now)
    }
  }

  private mutating func updateInterval(_ identifier: UInt8, _ low: UInt16, _ high: UInt16) {
    guard side == .central else { return answer(identifier, .reject(.notUnderstood)) }
    let isAccepted = low >= 6 && low <= high && high <= 3200
    answer(identifier, .parameterUpdateResponse(isAccepted: isAccepted))
    if isAccepted { outputs.append(.intervalRequested(low...high)) }
  }

  // MARK: Ends

  /// Closes a channel whose peer has broken the rules.
  private mutating func abort(_ cid: UInt16, _ violation: CreditChannel.Violation, _ now: Duration) {
    guard let phase = channels[cid]?.phase, phase == .open || phase == .draining else { return }
    disconnect(cid, now)
    announceEnd(cid, RadioError(.other, violation.rawValue))
  }

  private mutating func disconnect(_ cid: UInt16, _ now: Duration) {
    guard let remote = channels[cid]?.remoteCID else { return }
    channels[cid]?.phase = .disconnecting
    signal(.disconnectionRequest(destination: remote, source: cid), .disconnect(cid: cid), now: now)
  }

  private mutating func finish(_ cid: UInt16, _ reason: RadioError?) {
    announceEnd(cid, reason)
    channels.remove(cid)
  }

  /// Tells of the end once and hands over what nobody has read yet.
  private mutating func announceEnd(_ cid: UInt16, _ reason: RadioError?) {
    guard let channel = channels[cid], !channel.hasAnnouncedEnd else { return }
    channels[cid]?.hasAnnouncedEnd = true
    let unread = channels[cid]?.takeIncoming() ?? ByteQueue(capacity: 0)
    outputs.append(.channelClosed(cid: cid, reason, unread: unread))
  }

  private mutating func refuse(_ id: ClientRequest, _ code: RadioError.Code, _ message: String) {
    outputs.append(.completed(id, .failure(.radio(RadioError(code, message)))))
  }

  private mutating func noteCredits(_ count: Int) { creditsLeft = creditsLeft.map { $0 - count } }

  private mutating func grant(_ cid: UInt16) {
    guard let credits = channels[cid]?.takeGrant(upTo: creditsLeft ?? .max), credits > 0 else { return }
    noteCredits(credits)
    let command = SignallingPDU.Command.flowControlCredit(cid: cid, credits: UInt16(clamping: credits))
    send(SignallingPDU(identifier: channels.makeIdentifier(), command: command).frame)
  }

  private mutating func signal(
    _ command: SignallingPDU.Command, _ pending: ChannelTable.Pending, now: Duration
  ) {
    let identifier = channels.makeIdentifier()
    channels.signals[identifier] = ChannelTable.Signal(
      pending: pending, deadline: now + ChannelTable.responseTimeout)
    send(SignallingPDU(identifier: identifier, command: command).frame)
  }

  private mutating func answer(_ identifier: UInt8, _ command: SignallingPDU.Command) {
    send(SignallingPDU(identifier: identifier, command: command).frame)
  }
}

extension SignallingPDU.ConnectionResult {
  /// What a refusal means to a caller.
  fileprivate var errorCode: RadioError.Code {
    switch self {
    case .psmNotSupported: .psmNotSupported
    case .noResources, .sourceAlreadyAllocated, .invalidSource: .noResources
    case .insufficientAuthentication, .insufficientAuthorization, .insufficientKeySize,
      .insufficientEncryption:
      .insufficientSecurity
    default: .other
    }
  }
}
