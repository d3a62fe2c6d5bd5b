import Foundation

/// Reads a little, answers with fixed text and closes; with nil it never answers and waits until the client has gone.
final class NonsenseServer: Sendable {
  private let listener: SocketListener
  var path: String { listener.path }

  init(_ answer: String?) throws {
    listener = try SocketListener { peer in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while unsafe read(peer, &buffer, buffer.count) > 0 {
        guard let answer else { continue }
        let text = Array(answer.utf8)
        _ = unsafe send(peer, text, text.count, Int32(MSG_NOSIGNAL))
        return
      }
    }
  }
}
