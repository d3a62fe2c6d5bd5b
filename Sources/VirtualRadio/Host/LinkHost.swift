internal import Foundation
internal import Radio

/// The host of one connection: ATT bearer with client and server, credit-based channels, signalling. Sans-I/O.
///
/// Below is a port for L2CAP frames: it is given frames by ``Output/send(_:)`` and tells ``completed(_:now:)``,
/// ``received(_:now:)`` and ``end(_:)``. Above are the calls of the clients of both roles and the other outputs. After each call the
/// outputs are to be taken with ``takeOutputs(into:)`` and carried out in order; ``timeElapsed(now:)`` is due at ``nextDeadline()``.
///
/// Everything is bounded: bulk frames (Write Commands, notifications, K-frames) by the ``FrameBudget`` of what the port has
/// not completed, the rest by the number of transactions that can be open at once.
struct LinkHost {
  enum Output {
    /// Hand a frame to the port.
    case send([UInt8])
    /// End the link: the peer broke a rule or is silent.
    case terminate(RadioError)
    /// The ATT MTU has changed.
    case mtuChanged(Int)

    // To clients of the central role.
    case completed(ClientRequest, Result<GATTReply, GATTFailure>)
    case notified(AttributeHandle, Data)
    case servicesChanged([ClosedRange<AttributeHandle>])
    case deviceName(String)
    case readyToWrite
    case channelConnected(ClientRequest, PSM, cid: UInt16)

    // To clients of the peripheral role.
    case read(ServerRequestID, LocalAttribute, offset: Int)
    case write(ServerRequestID, client: UInt64, [ServerWrite], needsResponse: Bool)
    case subscribed(LocalAttribute)
    case unsubscribed(LocalAttribute)
    case readyToNotify
    case channelAccepted(PSM, cid: UInt16)
    /// The central has agreed to, or is asked for, other connection parameters: interval in units of 1.25 ms.
    case intervalRequested(ClosedRange<UInt16>)

    /// `readable` or `writable`.
    case channelEvent(cid: UInt16, ChannelEvent)
    /// The channel is gone; `unread` has arrived before.
    case channelClosed(cid: UInt16, RadioError?, unread: ByteQueue)
  }

  let side: LinkSide
  private(set) var parameters: LinkParameters
  let channelMPS: Int
  private(set) var mtu = ATTLimits.defaultMTU
  var client: GATTClient
  var server: GATTServer
  var channels = ChannelTable()
  /// PSMs that are accepted, and whether they need encryption.
  var acceptedPSMs: [PSM: Bool] = [:]
  /// Credits that the peer is still given, for all channels together; nil: as many as there is room for.
  var creditsLeft: Int?
  var indications = IndicationQueue()
  var outputs: [Output] = []
  /// Frames that the port has and has not completed.
  private(set) var queue: FrameQueue
  var wantsReadyToWrite = false
  var wantsReadyToNotify = false
  /// The subscriber that is waited for takes indications.
  var wantsReadyToIndicate = false
  /// Someone was told of room and may not have used it yet: until frames have gone again, channels leave it.
  var keepsRoom = false
  private var mtuExchangeAt: Duration?
  private(set) var hasEnded = false
  /// The link's end was asked for; there is nothing left to wait for.
  private var isTerminating = false
  private var clientScratch: [GATTClient.Output] = []
  private var serverScratch: [GATTServer.Output] = []

  /// Makes the host of a link that is up since `now`; its server numbers requests from `firstServerRequest` on.
  init(
    side: LinkSide, parameters: LinkParameters, table: AttributeTable, firstServerRequest: UInt64,
    now: Duration
  ) {
    self.side = side
    self.parameters = parameters
    channelMPS = Self.channelMPS(dataLength: parameters.dataLength)
    queue = FrameQueue(parameters)
    client = GATTClient(rssi: parameters.rssi)
    server = GATTServer(
      table: table, isEncrypted: parameters.isEncrypted, preferredMTU: parameters.attMTU,
      firstRequestID: firstServerRequest)
    if side == .central {
      mtuExchangeAt = now + (parameters.mtuExchangeDelay ?? .zero)
      timeElapsed(now: now)
      client.learnPeer(now: now)
      drainClient()
    }
  }

  /// A K-frame payload such that the frame fills whole packets, about as long as the longest packet.
  static func channelMPS(dataLength: Int) -> Int {
    let packets = max(1, 251 / max(dataLength, 1))
    return max(CreditChannel.minimumLimit, dataLength * packets - L2CAPFrame.headerLength)
  }

  // MARK: The port

  /// Takes a frame of the peer. What cannot be understood is dropped or answered with an error, as the protocols say.
  mutating func received(_ frame: [UInt8], now: Duration) {
    guard !hasEnded, let cid = L2CAPFrame.channel(of: frame) else { return }
    switch cid {
    case ChannelIdentifier.attributeProtocol: receivedATT(frame, now)
    case ChannelIdentifier.signalling: receivedSignal(frame, now)
    case ChannelIdentifier.dynamic: receivedChannelFrame(frame, cid, now)
    default: break
    }
    pump(now)
  }

  /// Takes note that the port has sent `count` frames and can take as many more.
  mutating func completed(_ count: Int, now: Duration) {
    queue.remove(count)
    keepsRoom = false
    pump(now)
  }

  /// Ends everything: open channels are told why. Pending requests end without a word, as the link's end says it all.
  mutating func end(_ reason: RadioError?) {
    guard !hasEnded else { return }
    hasEnded = true
    endChannels(reason)
  }

  // MARK: Time

  /// When ``timeElapsed(now:)`` is due, if ever.
  ///
  /// Asked after every call; it mutates nothing, but so the whole value needs no copy where it is a property of an object.
  mutating func nextDeadline() -> Duration? {
    var earliest = mtuExchangeAt
    if let deadline = client.deadline { earliest = min(earliest ?? deadline, deadline) }
    if let deadline = indications.deadline { earliest = min(earliest ?? deadline, deadline) }
    if let deadline = channels.nextDeadline { earliest = min(earliest ?? deadline, deadline) }
    return hasEnded || isTerminating ? nil : earliest
  }

  /// Does what is due.
  mutating func timeElapsed(now: Duration) {
    guard !hasEnded, !isTerminating else { return }
    if let at = mtuExchangeAt, at <= now {
      mtuExchangeAt = nil
      if parameters.attMTU > ATTLimits.defaultMTU {
        client.exchangeMTU(preferred: parameters.attMTU, now: now)
      }
    }
    client.timeElapsed(now: now)
    if let deadline = indications.deadline, deadline <= now {
      terminate(RadioError(.timeout, "the peer did not confirm an indication in 30 s"))
    }
    drainClient()
    expireSignals(now)
    pump(now)
  }

  // MARK: Outputs

  /// Exchanges what is to be done, in order, for an empty array: so the storage of both is used again.
  mutating func takeOutputs(into empty: inout [Output]) { swap(&outputs, &empty) }

  mutating func send(_ frame: [UInt8], _ kind: FrameQueue.Kind = .control) {
    queue.add(octets: frame.count, kind)
    outputs.append(.send(frame))
  }

  /// Asks for the end of the link.
  private mutating func terminate(_ reason: RadioError) {
    guard !isTerminating else { return }
    isTerminating = true
    outputs.append(.terminate(reason))
  }

  // MARK: ATT

  private mutating func receivedATT(_ frame: [UInt8], _ now: Duration) {
    let pdu: ATTPDU
    do {
      pdu = try ATTPDU(frame: frame)
    } catch {
      switch error {
      case .empty: break
      case .unknownOpcode(let opcode):
        // Odd opcodes below the command flag answer or tell something; only requests are refused.
        if opcode & 1 == 0 { server.handleUnreadable(opcode: opcode, isKnown: false) }
      case .malformed(let opcode) where opcode & 1 == 0:
        if opcode != ATTOpcode.confirmation { server.handleUnreadable(opcode: opcode, isKnown: true) }
      case .malformed(let opcode): client.handleUnreadable(opcode: opcode, now: now)
      }
      drainServer()
      drainClient()
      return
    }
    switch pdu.destination {
    case .server:
      server.handle(pdu, mtu: mtu)
      drainServer()
    case .client:
      client.handle(pdu, now: now)
      drainClient()
    case .indicationSender: indications.confirmed()
    }
  }

  /// Turns what the client wants into frames and outputs.
  mutating func drainClient() {
    guard !client.outputs.isEmpty else { return }
    swap(&client.outputs, &clientScratch)
    for output in clientScratch {
      switch output {
      case .send(let pdu): send(pdu.frame)
      case .completed(let id, let result): outputs.append(.completed(id, result))
      case .notified(let handle, let value): outputs.append(.notified(handle, value))
      case .servicesChanged(let ranges): outputs.append(.servicesChanged(ranges))
      case .deviceName(let name): outputs.append(.deviceName(name))
      case .mtuAgreed(let mtu): setMTU(mtu)
      case .terminate(let error): terminate(error)
      }
    }
    clientScratch.removeAll(keepingCapacity: true)
  }

  /// Turns what the server wants into frames and outputs.
  mutating func drainServer() {
    guard !server.outputs.isEmpty else { return }
    swap(&server.outputs, &serverScratch)
    for output in serverScratch {
      switch output {
      case .send(let pdu): send(pdu.frame)
      case .read(let id, let attribute, let offset): outputs.append(.read(id, attribute, offset: offset))
      case .write(let id, let client, let writes, let needsResponse):
        outputs.append(.write(id, client: client, writes, needsResponse: needsResponse))
      case .subscribed(let attribute): outputs.append(.subscribed(attribute))
      case .unsubscribed(let attribute): outputs.append(.unsubscribed(attribute))
      case .mtuAgreed(let mtu): setMTU(mtu)
      case .terminate(let error): terminate(error)
      }
    }
    serverScratch.removeAll(keepingCapacity: true)
  }

  /// Follows a change of the link below.
  mutating func replaceParameters(_ new: LinkParameters) {
    parameters = new
    client.link.rssi = new.rssi
    queue.replaceParameters(new)
  }

  /// Changes the ATT MTU without an exchange, for scripted faults.
  mutating func setMTU(_ new: Int) {
    guard new != mtu, !hasEnded else { return }
    mtu = new
    client.link.mtu = new
    outputs.append(.mtuChanged(new))
  }
}
