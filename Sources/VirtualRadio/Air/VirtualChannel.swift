internal import Foundation
internal import Radio

/// A channel of a virtual radio.
final class VirtualChannel: RadioChannel {
  let psm: PSM
  let peer: PeerID
  private let core: HostCore
  private let id: UInt64

  init(core: HostCore, id: UInt64, psm: PSM, peer: PeerID) {
    self.core = core
    self.id = id
    self.psm = psm
    self.peer = peer
  }

  deinit {
    let id = id
    core.run { $0.removeChannel(id) }
  }

  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?) { core.run { $0.setSink(sink, of: id) } }

  func read(upTo count: Int) -> Data { core.run { $0.read(id, upTo: count) } }

  var hasBytes: Bool { core.run { $0.hasBytes(id) } }

  func write(_ bytes: Data) -> Int { core.run { $0.write(id, bytes) } }

  var hasSpace: Bool { core.run { $0.hasSpace(id) } }

  func close() { core.run { $0.closeChannel(id) } }
}
