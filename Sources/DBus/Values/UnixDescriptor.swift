internal import Glibc
internal import Locking

/// Owns a file descriptor that travels in messages; it is closed with the last reference and never inherited by started programs.
///
/// A message gets a duplicate when it is sent, so the sender keeps its own; a received one belongs to the receiver alone.
/// Source: D-Bus Specification, "UNIX_FD"; unix(7), SCM_RIGHTS.
public final class UnixDescriptor: Sendable, Hashable {
  private let number: PosixMutex<Int32>

  /// Takes ownership: the descriptor is marked close-on-exec now and closed later.
  public init(owning raw: Int32) {
    _ = fcntl(raw, F_SETFD, FD_CLOEXEC)
    number = PosixMutex(raw)
  }

  /// Makes a duplicate of a descriptor that stays the caller's; throws with kind ``DBusError/Kind/system``.
  public convenience init(duplicating raw: Int32) throws(DBusError) {
    let duplicate = fcntl(raw, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { throw .system("fcntl(2)", errno) }
    self.init(owning: duplicate)
  }

  deinit {
    let raw = number.withLock { $0 }
    if raw >= 0 { close(raw) }
  }

  /// The number, for calls while this object lives; -1 after ``take()``.
  public var raw: Int32 { number.withLock { $0 } }

  /// Gives ownership to the caller, who has to close it; nil where that was done before.
  public func take() -> Int32? {
    let raw = number.withLock { number in
      defer { number = -1 }
      return number
    }
    return raw >= 0 ? raw : nil
  }

  /// A descriptor of its own for the same open file.
  public func duplicate() throws(DBusError) -> UnixDescriptor { try UnixDescriptor(duplicating: raw) }

  /// Two values are equal if they are the same owner.
  public static func == (left: UnixDescriptor, right: UnixDescriptor) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension DBusError {
  static func system(_ call: String, _ number: Int32) -> DBusError {
    DBusError(
      kind: .system, name: DBusErrorName.failed,
      message: "\(call): \(unsafe String(cString: strerror(number)))")
  }
}
