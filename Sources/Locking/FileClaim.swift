#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The exclusive claim of one open file on the file that it has opened: flock(2).
///
/// The claim belongs to the open file, not to a descriptor, and the kernel drops it with the last descriptor of that file. Closing is therefore
/// not the way to give it up: a process that another thread is just starting has copies of all descriptors until it has executed its program.
package enum FileClaim {
  package enum Outcome: Equatable, Sendable {
    case claimed
    /// Another open file has the claim.
    case taken
    /// errno.
    case failed(Int32)
  }

  /// Claims without waiting.
  package static func take(_ descriptor: Int32) -> Outcome {
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      switch errno {
      case EINTR: continue
      case EWOULDBLOCK: return .taken
      default: return .failed(errno)
      }
    }
    return .claimed
  }

  /// Gives the claim up, whoever has a copy of the descriptor; to be called before it is closed.
  package static func release(_ descriptor: Int32) {
    while flock(descriptor, LOCK_UN) != 0, errno == EINTR {}
  }
}
