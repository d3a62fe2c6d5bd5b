internal import Radio

/// Channels that centrals open.
extension PeripheralCore {
  func publishChannel(requiresEncryption: Bool) {
    guard isOn else { return sink(.channelPublished(.failure(.poweredDown))) }
    sink(.channelPublished(.failure(RadioError(.notSupported, "this radio cannot publish channels"))))
  }

  func unpublishChannel(_ psm: PSM) {
    sink(
      .channelUnpublished(
        psm, .failure(RadioError(.invalidParameters, "PSM \(psm) is not published by this client"))))
  }

  func closeChannels() {}
}
