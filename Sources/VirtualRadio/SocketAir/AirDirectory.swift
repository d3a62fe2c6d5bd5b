internal import Foundation
internal import Glibc
internal import Locking
internal import SystemCalls

/// The directory that is an air: finds sockets in it, takes names, connects.
///
/// Sockets are addressed through the directory's descriptor, so that a long path does not matter (sun_path holds 108 octets).
final class AirDirectory: Sendable {
  /// As it was given, for messages.
  let path: String
  private let descriptor: FileDescriptor

  /// Opens a directory and makes it if it is not there.
  init(path: String) throws(VirtualAirError) {
    self.path = path
    guard !path.isEmpty else {
      throw VirtualAirError(.directory, "the directory of a virtual air has no name; write virtual:DIR")
    }
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
      throw VirtualAirError(
        .directory, "cannot make the directory \(path) of the virtual air: \(Self.reason(error))")
    }
    let raw = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard raw >= 0 else {
      throw VirtualAirError(
        .directory, "cannot use \(path) as a virtual air: \(SystemError("open(2)"))")
    }
    descriptor = FileDescriptor(owning: raw)
  }

  private static func reason(_ error: any Error) -> String {
    let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
    guard let underlying, underlying.domain == NSPOSIXErrorDomain else {
      return "\(error.localizedDescription)"
    }
    return unsafe String(cString: strerror(Int32(underlying.code)))
  }

  /// The path of a file that does not depend on where the directory is.
  private func path(of file: String) -> String { "/proc/self/fd/\(descriptor.raw)/\(file)" }

  /// The directory itself, for a watch.
  var descriptorPath: String { "/proc/self/fd/\(descriptor.raw)" }

  /// Peripherals that have a socket, dead ones included, in order of name.
  func sockets() -> [AirFileName] { files().compactMap { AirFileName(socket: $0) } }

  /// Peripherals that have ever been here, in order of name.
  func locks() -> [AirFileName] { files().compactMap { AirFileName(lock: $0) } }

  private func files() -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path(of: "."))) ?? []).sorted()
  }

  /// Connects to a peripheral's socket.
  func connect(to name: AirFileName) throws(SystemError) -> FileDescriptor {
    let socket = try UnixSocket.make()
    try UnixSocket.connect(socket, path: path(of: name.socket))
    return socket
  }

  /// Takes a name and listens under it, until the result is released.
  func listen(as name: String) throws(VirtualAirError) -> AirListener {
    let file = AirFileName(peripheral: name)
    let lock = try lock(file, for: name)
    do {
      let socket = try UnixSocket.make()
      // Left over from a process that ended in between; nobody else touches it while we hold the lock.
      unsafe unlink(path(of: file.newSocket))
      try UnixSocket.bind(socket, path: path(of: file.newSocket))
      try UnixSocket.listen(socket)
      guard unsafe rename(path(of: file.newSocket), path(of: file.socket)) == 0 else {
        throw SystemError("rename(2)")
      }
      return AirListener(name: name, file: file, socket: socket, lock: lock, directory: self)
    } catch {
      throw VirtualAirError(.socket, "\(name) cannot listen in \(path): \(error)")
    }
  }

  private func lock(_ file: AirFileName, for name: String) throws(VirtualAirError) -> FileDescriptor {
    // Others may have made the directory: what is not our kind of file is left alone.
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
    let raw = unsafe open(path(of: file.lock), flags, 0o600)
    guard raw >= 0 else {
      throw VirtualAirError(.socket, "\(name) cannot be taken in \(path): \(SystemError("open(2)"))")
    }
    let lock = FileDescriptor(owning: raw)
    var status = stat()
    guard unsafe fstat(raw, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
      throw VirtualAirError(
        .socket,
        "\(name) cannot be taken in \(path): \(file.lock) there is no file of a virtual air; remove it or choose another directory"
      )
    }
    switch FileClaim.take(raw) {
    case .claimed: break
    case .taken:
      let holder = Self.readProcess(raw).map { "process \($0)" } ?? "another process"
      throw VirtualAirError(
        .nameTaken,
        "the name \(name) is taken in \(path) by \(holder); end that process or choose another name")
    case .failed(let number):
      throw VirtualAirError(
        .socket,
        "\(name) cannot be locked in \(path): \(SystemError("flock(2)", number))")
    }
    let process = Array("\(getpid())\n".utf8)
    // Only for the message above; a full disk does not hurt the lock.
    if ftruncate(raw, 0) == 0 { _ = unsafe pwrite(raw, process, process.count, 0) }
    return lock
  }

  private static func readProcess(_ descriptor: Int32) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = unsafe pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: bytes[..<count].prefix { $0 != 0x0A }, as: UTF8.self))
  }

  fileprivate func removeSocket(_ file: AirFileName) { unsafe unlink(path(of: file.socket)) }
}

/// A name that this process has, and the socket it listens on under it.
final class AirListener: Sendable {
  let name: String
  let socket: FileDescriptor
  private let file: AirFileName
  private let lock: FileDescriptor
  private let directory: AirDirectory

  fileprivate init(
    name: String, file: AirFileName, socket: FileDescriptor, lock: FileDescriptor, directory: AirDirectory
  ) {
    self.name = name
    self.file = file
    self.socket = socket
    self.lock = lock
    self.directory = directory
  }

  deinit {
    // The socket goes while the name is still ours.
    directory.removeSocket(file)
    FileClaim.release(lock.raw)
  }
}

/// Why a process cannot take part in a virtual air.
public struct VirtualAirError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure.
  public enum Code: Hashable, Sendable {
    /// The directory cannot be used.
    case directory
    /// Another process has the name.
    case nameTaken
    /// The name is empty or longer than 248 octets.
    case badName
    /// The socket cannot be made.
    case socket
    /// The clock is in lock-step, which cannot be shared by processes.
    case clock
  }

  /// The kind.
  public var code: Code
  /// What happened and what to do.
  public var message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { message }
}
