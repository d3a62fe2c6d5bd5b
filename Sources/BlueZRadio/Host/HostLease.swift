internal import Dispatch
internal import Locking

/// Holds a host for those who are not on its queue.
///
/// The last reference is let go on that queue: a host that ended on the thread of a program would be taken away from what runs on its queue at that
/// moment, whose parts take it for granted.
final class HostLease: Sendable {
  private let kept: Kept

  private final class Kept: Sendable {
    let host: PosixMutex<BlueZHost?>
    init(_ host: BlueZHost) { self.host = PosixMutex(host) }
  }

  private let queue: DispatchQueue

  init(_ host: BlueZHost) {
    kept = Kept(host)
    queue = host.queue
  }

  deinit { queue.async { [kept] in kept.host.withLock { $0 = nil } } }
}
