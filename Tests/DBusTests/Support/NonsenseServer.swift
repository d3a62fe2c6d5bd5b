import Foundation

/// Listens at a socket, reads a little, answers with fixed text and closes; with nil it never answers.
final class NonsenseServer: Sendable {
  let path: String
  private let listener: Int32

  struct Failure: Error {
    let call: String
    let number: Int32
  }

  init(_ answer: String?) throws {
    path = FileManager.default.temporaryDirectory.appending(path: "bluehaul-\(UUID()).socket").path
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
    guard bound == 0, listen(listener, 1) == 0 else {
      throw Failure(call: "bind(2), listen(2)", number: errno)
    }
    Thread.detachNewThread { [listener] in
      while true {
        let peer = accept(listener, nil, nil)
        guard peer >= 0 else { return }
        guard let answer else { continue }
        var buffer = [UInt8](repeating: 0, count: 4096)
        _ = unsafe read(peer, &buffer, buffer.count)
        let text = Array(answer.utf8)
        _ = unsafe send(peer, text, text.count, Int32(MSG_NOSIGNAL))
        close(peer)
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    unsafe unlink(path)
  }
}
