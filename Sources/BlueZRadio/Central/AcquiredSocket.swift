internal import DBus
internal import Foundation
internal import Glibc
internal import Readiness

/// A descriptor that the daemon has given for the values of one characteristic: each datagram is one value (unix(7), SOCK_SEQPACKET).
///
/// It can be closed at any moment, and all of this may be called from any thread.
final class AcquiredSocket: Sendable {
  private let descriptor: UnixDescriptor
  private static let noWaiting = Int32(MSG_DONTWAIT)
  private static let noSignal = Int32(MSG_NOSIGNAL)

  init(_ descriptor: UnixDescriptor) {
    self.descriptor = descriptor
    let raw = descriptor.raw
    _ = fcntl(raw, F_SETFL, fcntl(raw, F_GETFL) | O_NONBLOCK)
  }

  enum Sent: Sendable, Hashable {
    case sent
    /// The daemon has not read for a while.
    case full
    /// The daemon has closed its end.
    case ended
  }

  /// Sends a value that is not empty: an empty datagram reads like the end.
  func send(_ value: Data) -> Sent {
    while true {
      let count = unsafe value.withUnsafeBytes { bytes in
        unsafe Glibc.send(descriptor.raw, bytes.baseAddress, bytes.count, Self.noWaiting | Self.noSignal)
      }
      if count >= 0 { return .sent }
      switch errno {
      case EINTR: continue
      case EAGAIN, ENOBUFS, ENOMEM: return .full
      default: return .ended
      }
    }
  }

  enum Received: Sendable, Hashable {
    case value(Data)
    case nothing
    case ended
  }

  /// Takes one value, of at most 512 octets (Core Vol 3 Part F 3.2.9).
  func receive() -> Received {
    while true {
      var count = 0
      let value = unsafe [UInt8](unsafeUninitializedCapacity: 1024) { bytes, initialized in
        count = unsafe recv(descriptor.raw, bytes.baseAddress, bytes.count, Self.noWaiting)
        initialized = max(0, count)
      }
      if count > 0 { return .value(Data(value)) }
      if count == 0 { return .ended }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .nothing
      default: return .ended
      }
    }
  }

  /// What the daemon has not read yet, as the kernel accounts for it: at least the octets of the values.
  var unread: Int {
    var memory = [UInt32](repeating: 0, count: 16)
    var length = socklen_t(memory.count * MemoryLayout<UInt32>.size)
    let result = unsafe memory.withUnsafeMutableBytes {
      unsafe getsockopt(descriptor.raw, SOL_SOCKET, SO_MEMINFO, $0.baseAddress, &length)
    }
    // SK_MEMINFO_WMEM_ALLOC of linux/sock_diag.h. The kernel says that there is room one octet before it has given back a packet.
    return result == 0 && memory[2] > 1 ? Int(memory[2]) : 0
  }

  /// Calls `handler` at the monitor as long as values or the end are there, until the source is cancelled or let go of; nil where no descriptor is left.
  func whenReadable(
    _ monitor: ReadinessMonitor?, _ handler: @escaping @Sendable () -> Void
  ) -> ReadinessSource? {
    let source = monitor.flatMap { ReadinessSource.reading(descriptor.raw, $0, handler) }
    source?.setEnabled(true)
    return source
  }

  /// Calls `handler` at the monitor as long as there is room, until the source is cancelled or let go of; nil where no descriptor is left.
  func whenWritable(
    _ monitor: ReadinessMonitor?, _ handler: @escaping @Sendable () -> Void
  ) -> ReadinessSource? {
    let source = monitor.flatMap { ReadinessSource.writing(descriptor.raw, $0, handler) }
    source?.setEnabled(true)
    return source
  }

  /// Calls `handler` at the monitor at first, and then each time that the daemon has read, as long as at most a quarter of the buffer is taken: above
  /// all when it has read the last value. Until the source is cancelled or let go of; nil where no descriptor is left.
  func whenRead(
    _ monitor: ReadinessMonitor?, _ handler: @escaping @Sendable () -> Void
  ) -> ReadinessSource? {
    let source = monitor.flatMap { ReadinessSource.writing(descriptor.raw, $0, handler) }
    source?.watch(.reads)
    return source
  }
}
