internal import Foundation
internal import Glibc
internal import Locking

/// Where a recorder keeps the state of one manager.
protocol StateStore: Sendable {
  /// Where that is, for the log.
  var path: String { get }
  /// The contents; nil: nothing is there. More than `limit` octets are not read.
  func read(limit: Int) throws(StateFileError) -> Data?
  /// Replaces the contents; durable when it returns.
  func write(_ contents: Data) throws(StateFileError)
  /// Removes the contents; durable when it returns.
  func remove() throws(StateFileError)
  /// Gives the place up; what is there stays. Idempotent.
  func close()
}

/// A file of saved state, of which this process is the only user as long as it holds the object; see docs/restoration.md.
///
/// It is replaced as a whole or not at all, whatever moment the machine stops at.
final class StateFile: StateStore {
  let path: String
  private let folder: String
  private let temporaryPath: String
  private let lock: PosixMutex<OpenFile?>

  /// Claims the file `name`.json in `folder`, which is made if it is not there; the file itself need not be there.
  init(folder: String, name: String) throws(StateFileError) {
    self.folder = folder
    path = "\(folder)/\(name).json"
    temporaryPath = "\(folder)/.\(name).new"
    try Self.makeFolder(folder)
    lock = PosixMutex(try Self.claim("\(folder)/\(name).lock"))
  }

  deinit { close() }

  func close() {
    lock.withLock { file in
      if let file { FileClaim.release(file.descriptor) }
      file = nil
    }
  }

  func read(limit: Int) throws(StateFileError) -> Data? {
    let file: OpenFile
    do throws(StateFileError) {
      // A FIFO or a link in its place must neither make us wait nor lead us elsewhere.
      file = try OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    } catch {
      if error.code == .missing { return nil }
      throw error
    }
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    var count = 0
    while count < bytes.count {
      let got = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe Glibc.read(file.descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count)
      }
      if got < 0, errno == EINTR { continue }
      guard got >= 0 else { throw StateFileError(path, "read(2)") }
      if got == 0 { break }
      count += got
    }
    guard count <= limit else {
      throw StateFileError(.failed, "\(path) has more than \(limit) octets")
    }
    return Data(bytes.prefix(count))
  }

  func write(_ contents: Data) throws(StateFileError) {
    // Left over from a process that ended in between, perhaps; nobody else writes it while we hold the lock.
    unsafe unlink(temporaryPath)
    do throws(StateFileError) {
      try writeTemporary(contents)
      guard unsafe rename(temporaryPath, path) == 0 else { throw StateFileError(path, "rename(2)") }
    } catch {
      unsafe unlink(temporaryPath)
      throw error
    }
    try syncFolder()
  }

  func remove() throws(StateFileError) {
    guard unsafe unlink(path) == 0 else {
      if errno == ENOENT { return }
      throw StateFileError(path, "unlink(2)")
    }
    try syncFolder()
  }

  private func writeTemporary(_ contents: Data) throws(StateFileError) {
    let file = try OpenFile(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    let bytes = [UInt8](contents)
    var done = 0
    while done < bytes.count {
      let put = unsafe bytes[done...].withUnsafeBytes { buffer in
        unsafe Glibc.write(file.descriptor, buffer.baseAddress, buffer.count)
      }
      if put < 0, errno == EINTR { continue }
      guard put > 0 else { throw StateFileError(temporaryPath, "write(2)") }
      done += put
    }
    guard fsync(file.descriptor) == 0 else { throw StateFileError(temporaryPath, "fsync(2)") }
  }

  private func syncFolder() throws(StateFileError) { try Self.sync(folder) }

  /// Makes a folder and those above it; durable when it returns.
  private static func makeFolder(_ folder: String) throws(StateFileError) {
    guard !FileManager.default.fileExists(atPath: folder) else { return }
    let parent = (folder as NSString).deletingLastPathComponent
    if !parent.isEmpty, parent != folder { try makeFolder(parent) }
    // Another process may be making the same.
    guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw StateFileError(folder, "mkdir(2)")
    }
    try sync(parent.isEmpty ? "." : parent)
  }

  private static func sync(_ folder: String) throws(StateFileError) {
    let file = try OpenFile(folder, O_RDONLY | O_DIRECTORY)
    guard fsync(file.descriptor) == 0 else { throw StateFileError(folder, "fsync(2)") }
  }

  private static func claim(_ path: String) throws(StateFileError) -> OpenFile {
    let file = try OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
    switch FileClaim.take(file.descriptor) {
    case .claimed: break
    case .taken:
      throw StateFileError(.inUse, file.text(atMost: 16).map { "process \($0)" } ?? "another process")
    case .failed(let number): throw StateFileError(path, "flock(2)", errorNumber: number)
    }
    let process = Array("\(getpid())\n".utf8)
    // Only for the words of whoever comes second; a full disk does not hurt the lock.
    if ftruncate(file.descriptor, 0) == 0 { _ = unsafe pwrite(file.descriptor, process, process.count, 0) }
    return file
  }
}

/// Owns a descriptor and closes it at its end.
private final class OpenFile: Sendable {
  let descriptor: Int32

  /// Opens a file that programs which are started do not inherit; new ones are the user's alone.
  init(_ path: String, _ flags: Int32) throws(StateFileError) {
    while true {
      let descriptor = unsafe open(path, flags | O_CLOEXEC, 0o600)
      if descriptor >= 0 {
        self.descriptor = descriptor
        return
      }
      guard errno == EINTR else { throw StateFileError(path, "open(2)") }
    }
  }

  deinit { close(descriptor) }

  /// The first line; nil where it is empty.
  func text(atMost limit: Int) -> String? {
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = unsafe pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    let line = bytes[..<count].prefix { $0 > 0x20 && $0 < 0x7F }
    return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
  }
}

/// Why saved state cannot be used.
struct StateFileError: Error, Equatable, CustomStringConvertible {
  enum Code: Equatable {
    /// Somebody holds the file: the message says who.
    case inUse
    /// There is no such file.
    case missing
    /// The system refuses.
    case failed
  }

  var code: Code
  /// What happened.
  var description: String

  init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }

  /// Takes errno, so it comes right after the call.
  fileprivate init(_ path: String, _ call: String, errorNumber number: Int32 = errno) {
    self.init(
      number == ENOENT ? .missing : .failed,
      "\(path): \(call): \(unsafe String(cString: strerror(number)))")
  }
}
