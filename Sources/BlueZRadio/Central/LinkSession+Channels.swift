internal import Dispatch
internal import Radio

/// A channel that a client has opened, as long as it keeps it, and what opens one.
struct ClientChannel {
  let client: UInt64
  weak var channel: L2CAPChannel?
}

/// Who has asked for a channel.
struct ChannelRequest: Hashable {
  let client: UInt64
  let id: RequestID
}

/// L2CAP channels over the link.
extension LinkSession {
  func openChannel(_ psm: PSM, _ id: RequestID, _ client: CentralClient) {
    openChannel(psm, id, client, .low, mayPair: true)
  }

  private func openChannel(
    _ psm: PSM, _ id: RequestID, _ client: CentralClient, _ security: L2CAPSecurity, mayPair: Bool
  ) {
    guard let device = DeviceFacts(host.store, path)?.address, let adapter = host.adapter.address(host.store)
    else {
      let error = RadioError(.notConnected, "bluetoothd does not tell the addresses of the link")
      return client.post(.completed(id, peer, .failure(.radio(error))))
    }
    attempts[ChannelRequest(client: client.id, id: id)] = central.connector.connect(
      to: device, from: adapter, psm: psm, security: security, peer: peer
    ) { [weak self, host] result in
      host.async { [weak self] in self?.opened(result, psm, id, client, mayPair) }
    }
  }

  private func opened(
    _ result: Result<L2CAPChannel, RadioError>, _ psm: PSM, _ id: RequestID, _ client: CentralClient,
    _ mayPair: Bool
  ) {
    attempts[ChannelRequest(client: client.id, id: id)] = nil
    // Who has left gets no answer, and a channel that nobody takes is closed.
    guard !isOver, users.contains(where: { $0 === client }) else { return }
    switch result {
    case .success(let channel):
      channels.removeAll { $0.channel == nil }
      channels.append(ClientChannel(client: client.id, channel: channel))
      client.post(.completed(id, peer, .success(.channel(channel))))
    case .failure(let error) where error.code == .insufficientSecurity && mayPair && !hasTriedPairing:
      hasTriedPairing = true
      host.pairing.pair(path) { [weak self] isPaired in
        guard let self, !isOver, users.contains(where: { $0 === client }) else { return }
        guard isPaired else { return client.post(.completed(id, peer, .failure(.radio(error)))) }
        openChannel(psm, id, client, .medium, mayPair: false)
      }
    case .failure(let error): answerUnlessEnding(error, id, client)
    }
  }

  /// The end of a link fails what is being opened before the daemon tells the end itself.
  private func answerUnlessEnding(_ error: RadioError, _ id: RequestID, _ client: CentralClient) {
    let answer: @Sendable () -> Void = { [weak self] in
      guard let self, !isOver, users.contains(where: { $0 === client }) else { return }
      client.post(.completed(id, peer, .failure(.radio(error))))
    }
    switch error.code {
    case .psmNotSupported, .insufficientSecurity, .noResources, .invalidParameters, .timeout: answer()
    default: host.after(.milliseconds(150)) { [weak self] in self?.ifStillUp(answer) }
    }
  }

  /// A client has left: its channels close.
  func endChannels(of client: CentralClient) {
    for entry in channels where entry.client == client.id { entry.channel?.linkEnded(nil) }
    channels.removeAll { $0.client == client.id }
  }

  func endChannels(_ error: RadioError?) {
    for attempt in attempts.values { attempt.cancel() }
    attempts = [:]
    for entry in channels { entry.channel?.linkEnded(error) }
    channels = []
  }
}
