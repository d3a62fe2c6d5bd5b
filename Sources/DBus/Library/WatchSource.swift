internal import CDBus
internal import Dispatch
internal import Glibc

/// One watch of libdbus as a dispatch source: reading or writing at the socket of a connection.
///
/// The source watches a duplicate of the socket, because libdbus closes its own while the source is still being cancelled.
/// Used on the connection's queue only.
@safe final class WatchSource {
  private let source: any DispatchSourceProtocol
  private var isEnabled = false

  /// Nil where the system has no descriptor left. A source begins disabled.
  init?(_ watch: OpaquePointer, queue: DispatchQueue, ready: @escaping @Sendable (UInt32) -> Void) {
    let duplicate = fcntl(unsafe dbus_watch_get_unix_fd(watch), F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { return nil }
    let readable = DBUS_WATCH_READABLE.rawValue
    let writable = DBUS_WATCH_WRITABLE.rawValue
    if unsafe dbus_watch_get_flags(watch) & readable != 0 {
      source = DispatchSource.makeReadSource(fileDescriptor: duplicate, queue: queue)
      source.setEventHandler { ready(readable) }
    } else {
      source = DispatchSource.makeWriteSource(fileDescriptor: duplicate, queue: queue)
      source.setEventHandler { ready(writable) }
    }
    source.setCancelHandler { close(duplicate) }
  }

  func setEnabled(_ enabled: Bool) {
    guard enabled != isEnabled else { return }
    isEnabled = enabled
    if enabled { source.resume() } else { source.suspend() }
  }

  /// Ends it; to be called once.
  func cancel() {
    source.cancel()
    // A suspended source would never run its cancel handler, and must not be released.
    setEnabled(true)
  }
}
