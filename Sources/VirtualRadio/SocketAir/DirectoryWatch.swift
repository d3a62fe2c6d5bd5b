internal import CLinux
internal import Glibc
internal import Radio
internal import Readiness
internal import SystemCalls

/// Tells when files come to a directory or leave it (inotify(7)).
final class DirectoryWatch: Sendable {
  private let source: ReadinessSource

  /// Starts the watch; `onChange` runs on the monitor's queue, once for many changes.
  init(
    _ directory: AirDirectory, _ monitor: ReadinessMonitor, onChange: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    let raw = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    guard raw >= 0 else { throw SystemError("inotify_init1(2)") }
    let descriptor = FileDescriptor(owning: raw)
    let events = UInt32(IN_CREATE) | UInt32(IN_MOVED_TO) | UInt32(IN_DELETE)
    guard unsafe inotify_add_watch(raw, directory.descriptorPath, events) >= 0 else {
      throw SystemError("inotify_add_watch(2)")
    }
    let source = ReadinessSource.reading(raw, monitor) {
      // What has changed does not matter: whoever is told looks at the whole directory.
      var events = [UInt8](repeating: 0, count: 4096)
      while unsafe read(descriptor.raw, &events, events.count) > 0 {}
      onChange()
    }
    guard let source else { throw SystemError("fcntl(2)") }
    source.setEnabled(true)
    self.source = source
  }
}
