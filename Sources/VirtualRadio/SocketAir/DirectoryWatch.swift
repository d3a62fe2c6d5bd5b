internal import CLinux
internal import Dispatch
internal import Glibc
internal import Locking
internal import Radio

/// Tells when files come to a directory or leave it (inotify(7)).
final class DirectoryWatch: Sendable {
  private let source: PosixMutex<any DispatchSourceRead>

  /// Starts the watch; `onChange` runs on `queue`, once for many changes.
  init(
    _ directory: AirDirectory, queue: DispatchQueue, onChange: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    let raw = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    guard raw >= 0 else { throw SystemError("inotify_init1(2)") }
    let descriptor = FileDescriptor(owning: raw)
    let events = UInt32(IN_CREATE) | UInt32(IN_MOVED_TO) | UInt32(IN_DELETE)
    guard unsafe inotify_add_watch(raw, directory.descriptorPath, events) >= 0 else {
      throw SystemError("inotify_add_watch(2)")
    }
    let source = DispatchSource.makeReadSource(fileDescriptor: raw, queue: queue)
    source.setEventHandler {
      // What has changed does not matter: whoever is told looks at the whole directory.
      var events = [UInt8](repeating: 0, count: 4096)
      while unsafe read(descriptor.raw, &events, events.count) > 0 {}
      onChange()
    }
    source.setCancelHandler { withExtendedLifetime(descriptor) {} }
    source.activate()
    self.source = PosixMutex(source)
  }

  deinit { source.withLock { $0.cancel() } }
}
