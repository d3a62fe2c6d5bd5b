internal import Foundation
internal import Locking

/// Where text goes: a descriptor, or memory in a test.
public protocol OutputSink: AnyObject, Sendable {
  /// Writes all of `text`, or drops it where nobody reads any more.
  func write(_ text: String)

  /// Whether the reader has gone; a program that only lists things can end then.
  var isClosed: Bool { get }

  /// The error number of a write that failed for another reason than a reader gone.
  var failure: Int32? { get }
}

/// A sink on a file descriptor, which it does not own. A reader that goes away (`| head -1`) closes it without an error: the caller has
/// to ignore SIGPIPE.
public final class DescriptorSink: OutputSink {
  private struct State {
    var isClosed = false
    var failure: Int32?
  }

  private let descriptor: Int32
  private let state = PosixMutex(State())

  /// Writes to `descriptor`.
  public init(descriptor: Int32) { self.descriptor = descriptor }

  public var isClosed: Bool { state.withLock { $0.isClosed } }
  public var failure: Int32? { state.withLock { $0.failure } }

  public func write(_ text: String) {
    state.withLock { state in
      if state.isClosed { return }
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        let error = errno
        if count >= 0 {
          rest = rest.dropFirst(count)
        } else if error == EAGAIN {
          var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          _ = unsafe poll(&waiting, 1, -1)
        } else if error != EINTR {
          state.isClosed = true
          if error != EPIPE { state.failure = error }
          return
        }
      }
    }
  }
}
