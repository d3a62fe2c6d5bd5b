internal import Radio

/// A channel of a link, which belongs to whoever asked for it.
struct WeakChannel {
  weak var channel: (any RadioChannel)?
}

/// L2CAP channels.
extension LinkSession {
  func openChannel(_ psm: PSM, _ id: RequestID, _ client: CentralClient) {
    client.post(
      .completed(id, peer, .failure(.radio(RadioError(.notSupported, "channels are not there yet")))))
  }

  func endChannels(_ error: RadioError?) { channels = [] }
}
