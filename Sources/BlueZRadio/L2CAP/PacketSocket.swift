internal import CLinux
internal import DBus
internal import Glibc
internal import SystemCalls

/// Calls on connected sockets of type SOCK_SEQPACKET, each with its errno read at once and interruptions repeated. None of them waits: on
/// some kernels a thread that waits in `recv(2)` of an L2CAP socket stops the adapter from receiving anything.
enum PacketSocket {
  enum Sending: Hashable {
    case sent
    /// Nothing fits now.
    case blocked
    case failed(SystemError)
  }

  enum Receiving: Hashable {
    /// A packet of this length, which may be 0; 0 too where the other side has closed.
    case packet(Int)
    /// Nothing is there now.
    case nothing
    case failed(SystemError)
  }

  /// How the other side has gone.
  enum HangUp: Hashable {
    /// It has closed.
    case inOrder
    /// The connection is no more, and the other side has not said that it closes.
    case broken
  }

  /// Sends one packet, whole or not at all.
  static func send(_ packet: ArraySlice<UInt8>, to socket: UnixDescriptor) -> Sending {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    while true {
      let count = unsafe packet.withUnsafeBytes { buffer in
        unsafe Glibc.send(socket.raw, buffer.baseAddress, buffer.count, flags)
      }
      if count >= 0 { return .sent }
      switch errno {
      case EINTR: continue
      case EAGAIN, ENOBUFS, ENOMEM: return .blocked
      default: return .failed(SystemError("send(2)"))
      }
    }
  }

  /// Receives one packet into the buffer, which must have room for the longest.
  static func receive(into buffer: inout [UInt8], from socket: UnixDescriptor) -> Receiving {
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { buffer in
        unsafe recv(socket.raw, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
      }
      if count >= 0 { return .packet(count) }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .nothing
      default: return .failed(SystemError("recv(2)"))
      }
    }
  }

  /// Whether and how the other side has gone; packets that came before may still be there.
  static func hangUp(of socket: UnixDescriptor) -> HangUp? {
    var entry = pollfd(fd: socket.raw, events: clinux_pollrdhup, revents: 0)
    guard unsafe poll(&entry, 1, 0) > 0 else { return nil }
    if entry.revents & clinux_pollrdhup != 0 { return .inOrder }
    return entry.revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 ? .broken : nil
  }

  /// Takes the error that waits at the socket (SO_ERROR), or 0.
  static func takeError(of socket: UnixDescriptor) -> Int32 {
    var number: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard unsafe getsockopt(socket.raw, SOL_SOCKET, SO_ERROR, &number, &length) == 0 else { return errno }
    return number
  }

  /// What TIOCOUTQ tells: a measure of what was sent and is still in the kernel.
  ///
  /// What it measures differs: unix(7) sockets tell the octets that wait, Bluetooth sockets of many kernels the room that is left. So it is only good
  /// for comparing: once all has gone it is what it was before anything was sent.
  static func fill(of socket: UnixDescriptor) -> Int32? {
    var fill: Int32 = 0
    return unsafe ioctl(socket.raw, UInt(TIOCOUTQ), &fill) == 0 ? fill : nil
  }

  /// How much memory packets may take that wait in the kernel, as it accounts for them (SO_SNDBUF, socket(7)).
  static func sendBuffer(of socket: UnixDescriptor) -> Int32? {
    var size: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard unsafe getsockopt(socket.raw, SOL_SOCKET, SO_SNDBUF, &size, &length) == 0 else { return nil }
    return size
  }

  /// Sets that size. The kernel takes no more than it lets programs have.
  static func setSendBuffer(of socket: UnixDescriptor, to size: Int32) {
    // It doubles what it is given.
    var half = size / 2
    _ = unsafe setsockopt(socket.raw, SOL_SOCKET, SO_SNDBUF, &half, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Says to the other side that nothing more comes.
  static func shutDownSending(_ socket: UnixDescriptor) { _ = shutdown(socket.raw, Int32(SHUT_WR)) }

  /// Ends the connection, although the descriptor may stay open for a while.
  static func shutDown(_ socket: UnixDescriptor) { _ = shutdown(socket.raw, Int32(SHUT_RDWR)) }
}
