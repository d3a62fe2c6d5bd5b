internal import DBus
internal import Dispatch
internal import Foundation
internal import Radio

/// An open channel of the kernel's L2CAP. Releasing it closes it.
final class L2CAPChannel: RadioChannel {
  let psm: PSM
  let peer: PeerID
  private let core: L2CAPChannelCore

  init(psm: PSM, peer: PeerID, core: L2CAPChannelCore) {
    self.psm = psm
    self.peer = peer
    self.core = core
  }

  deinit { core.abandon() }

  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?) { core.setSink(sink) }

  func read(upTo count: Int) -> Data { core.read(upTo: count) }

  var hasBytes: Bool { core.hasBytes }

  func write(_ bytes: Data) -> Int { core.write(bytes) }

  var hasSpace: Bool { core.hasSpace }

  func close() { core.close() }

  /// The link has gone: the channel ends now, with `reason`, unless it has ended before. What has arrived can be read.
  func linkEnded(_ reason: RadioError?) { core.end(reason) }
}
