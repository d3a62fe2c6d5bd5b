internal import Glibc
internal import SystemCalls

/// Owns a descriptor and closes it at its end.
final class FileDescriptor: Sendable {
  let raw: Int32

  init(owning raw: Int32) { self.raw = raw }

  deinit { close(raw) }
}

extension SystemError {
  /// Whether the same call may succeed without anyone's doing.
  var isTemporary: Bool { [EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(number) }

  /// Whether the other side has gone without reading everything.
  var isReset: Bool { number == ECONNRESET || number == EPIPE }
}

/// Unix stream sockets (unix(7)), each call with its errno read at once and interruptions repeated.
enum UnixSocket {
  /// A socket that neither blocks nor is inherited by programs that are started.
  static func make() throws(SystemError) -> FileDescriptor {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let raw = socket(AF_UNIX, type, 0)
    guard raw >= 0 else { throw SystemError("socket(2)") }
    return FileDescriptor(owning: raw)
  }

  static func bind(_ socket: FileDescriptor, path: String) throws(SystemError) {
    try unsafe withAddress(path, "bind(2)") { address, length in
      unsafe Glibc.bind(socket.raw, address, length)
    }
  }

  static func listen(_ socket: FileDescriptor) throws(SystemError) {
    guard Glibc.listen(socket.raw, 64) == 0 else { throw SystemError("listen(2)") }
  }

  static func connect(_ socket: FileDescriptor, path: String) throws(SystemError) {
    try unsafe withAddress(path, "connect(2)") { address, length in
      unsafe Glibc.connect(socket.raw, address, length)
    }
  }

  /// The next connection, or nil if none waits.
  static func accept(_ socket: FileDescriptor) throws(SystemError) -> FileDescriptor? {
    while true {
      let raw = Glibc.accept(socket.raw, nil, nil)
      if raw >= 0 {
        let accepted = FileDescriptor(owning: raw)
        guard fcntl(raw, F_SETFD, FD_CLOEXEC) == 0, fcntl(raw, F_SETFL, O_NONBLOCK) == 0 else {
          throw SystemError("fcntl(2)")
        }
        return accepted
      }
      switch errno {
      case EINTR, ECONNABORTED: continue
      case EAGAIN: return nil
      default: throw SystemError("accept4(2)")
      }
    }
  }

  /// Another descriptor of the same socket.
  static func duplicate(_ socket: FileDescriptor) throws(SystemError) -> FileDescriptor {
    let raw = fcntl(socket.raw, F_DUPFD_CLOEXEC, 0)
    guard raw >= 0 else { throw SystemError("fcntl(2)") }
    return FileDescriptor(owning: raw)
  }

  /// Ends a connection for the other side, although the descriptor may stay open for a while.
  static func shutDown(_ socket: FileDescriptor) { _ = shutdown(socket.raw, Int32(SHUT_RDWR)) }

  /// Sends what fits; nil: nothing fits now.
  static func send(_ bytes: ArraySlice<UInt8>, to socket: FileDescriptor) throws(SystemError) -> Int? {
    while true {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Glibc.send(socket.raw, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
      }
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN: return nil
      default: throw SystemError("send(2)")
      }
    }
  }

  /// Receives into the buffer; 0: the other side has closed, nil: nothing is there now.
  static func receive(into buffer: inout [UInt8], from socket: FileDescriptor) throws(SystemError) -> Int? {
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { buffer in
        unsafe recv(socket.raw, buffer.baseAddress, buffer.count, 0)
      }
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN: return nil
      default: throw SystemError("recv(2)")
      }
    }
  }

  private static func withAddress(
    _ path: String, _ call: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(SystemError) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { target in
      guard bytes.count < target.count else { return false }
      unsafe target.copyBytes(from: bytes)
      return true
    }
    guard fits else { throw SystemError(call, ENAMETOOLONG) }
    while true {
      let result = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { rebound in
          unsafe body(rebound, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      if result == 0 { return }
      guard errno == EINTR else { throw SystemError(call) }
    }
  }
}
