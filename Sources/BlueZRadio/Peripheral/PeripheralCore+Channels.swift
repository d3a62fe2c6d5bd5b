internal import Dispatch
internal import Radio

/// Channels that centrals open: bluetoothd has no part in them.
extension PeripheralCore {
  func publishChannel(requiresEncryption: Bool) {
    guard isOn, let adapter = host.adapter.address(host.store) else {
      return sink(.channelPublished(.failure(.poweredDown)))
    }
    if requiresEncryption { host.pairing.prepareForCentrals() }
    do throws(RadioError) {
      let listener = try L2CAPListener(
        adapter: adapter, requiresEncryption: requiresEncryption, clock: host.clock, sockets: sockets
      ) { [weak self] address, channel in self?.accepted(channel, from: address.peer) }
      listeners[listener.psm] = listener
      sink(.channelPublished(.success(listener.psm)))
    } catch { sink(.channelPublished(.failure(error))) }
  }

  /// On the listener's queue.
  private func accepted(_ channel: L2CAPChannel, from central: PeerID) {
    host.queue.async { [self] in
      // One that was accepted while its PSM was withdrawn has been closed.
      guard isOn, listeners[channel.psm] != nil else { return }
      sink(.channelOpened(central: central, channel.psm, channel))
    }
  }

  func unpublishChannel(_ psm: PSM) {
    guard let listener = listeners.removeValue(forKey: psm) else {
      let error = RadioError(.invalidParameters, "PSM \(psm) is not published by this client")
      return sink(.channelUnpublished(psm, .failure(error)))
    }
    listener.close()
    sink(.channelUnpublished(psm, .success(())))
  }

  func closeChannels() {
    for listener in listeners.values { listener.close() }
    listeners = [:]
  }
}
