import Foundation
import TestSupport

/// A Unix stream socket whose clients are served one after the other, and closed when served.
final class SocketListener: Sendable {
  private let folder = TemporaryFolder()
  private let listener: Int32

  struct Failure: Error {
    let call: String
    let number: Int32
  }

  init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    let bound = unsafe withUnsafePointer(to: address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard bound == 0, listen(listener, 8) == 0 else {
      throw Failure(call: "bind(2), listen(2)", number: errno)
    }
    Thread.detachNewThread { [listener] in
      while true {
        let peer = accept(listener, nil, nil)
        guard peer >= 0 else {
          close(listener)
          return
        }
        serve(peer)
        close(peer)
      }
    }
  }

  /// The thread closes the socket after it has come out of it, so that its number is not used for another meanwhile.
  deinit { shutdown(listener, Int32(SHUT_RDWR)) }

  var path: String { folder.path("socket") }
}
