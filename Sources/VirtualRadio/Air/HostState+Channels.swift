internal import Foundation
internal import Radio

/// A channel as its ``VirtualChannel`` sees it: it outlives the channel in the host of the link, for what was not read.
struct ChannelEnd {
  let link: HostLink
  let cid: UInt16
  /// The central client that has opened it; nil at a peripheral.
  let client: UInt64?
  var sink: (@Sendable (ChannelEvent) -> Void)?
  var end: End?

  struct End {
    var reason: RadioError?
    var unread: ByteQueue
  }
}

/// Channels: what their objects ask for, and what a link's host has for them.
extension HostState {
  /// Makes the object of a channel. The caller hands it to a sink, which may drop it: so it must not end under the lock.
  func makeChannel(_ link: HostLink, _ cid: UInt16, _ psm: PSM, client: UInt64?) -> VirtualChannel? {
    guard let core else { return nil }
    let id = makeIdentity()
    channels[id] = ChannelEnd(link: link, cid: cid, client: client)
    link.channelIDs[cid] = id
    let channel = VirtualChannel(core: core, id: id, psm: psm, peer: link.peer)
    released.append(channel)
    return channel
  }

  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?, of id: UInt64) {
    guard let channel = channels[id] else { return }
    if let old = channel.sink { released.append(old) }
    channels[id]?.sink = sink
    guard let sink else { return }
    hasPosted = true
    if hasBytes(id) { sink(.readable) }
    if let end = channel.end { sink(.closed(end.reason)) }
  }

  func read(_ id: UInt64, upTo count: Int) -> Data {
    guard let channel = channels[id] else { return Data() }
    if channel.end != nil { return channels[id]?.end?.unread.take(upTo: count) ?? Data() }
    let bytes = channel.link.host.readChannel(channel.cid, upTo: count)
    service(channel.link)
    return bytes
  }

  func hasBytes(_ id: UInt64) -> Bool {
    guard let channel = channels[id] else { return false }
    if let end = channel.end { return !end.unread.isEmpty }
    return channel.link.host.channels[channel.cid]?.hasBytes == true
  }

  func write(_ id: UInt64, _ bytes: Data) -> Int {
    guard let channel = channels[id], channel.end == nil else { return 0 }
    let taken = channel.link.host.writeChannel(channel.cid, bytes, now: clock.now)
    service(channel.link)
    return taken
  }

  func hasSpace(_ id: UInt64) -> Bool {
    guard let channel = channels[id], channel.end == nil else { return false }
    return channel.link.host.channels[channel.cid]?.hasSpace == true
  }

  func closeChannel(_ id: UInt64) {
    guard let channel = channels[id], channel.end == nil else { return }
    channel.link.host.closeChannel(channel.cid, now: clock.now)
    service(channel.link)
  }

  /// The object of a channel has ended.
  func removeChannel(_ id: UInt64) {
    closeChannel(id)
    guard let channel = channels.removeValue(forKey: id) else { return }
    if channel.end == nil { channel.link.channelIDs[channel.cid] = nil }
    if let sink = channel.sink { released.append(sink) }
  }

  // MARK: From the host

  func post(_ event: ChannelEvent, _ link: HostLink, _ cid: UInt16) {
    guard let id = link.channelIDs[cid], let sink = channels[id]?.sink else { return }
    hasPosted = true
    sink(event)
  }

  func closed(_ link: HostLink, _ cid: UInt16, _ reason: RadioError?, _ unread: ByteQueue) {
    guard let id = link.channelIDs.removeValue(forKey: cid) else { return }
    channels[id]?.end = ChannelEnd.End(reason: reason, unread: unread)
    guard let sink = channels[id]?.sink else { return }
    hasPosted = true
    sink(.closed(reason))
  }
}
