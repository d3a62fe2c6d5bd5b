internal import Foundation
internal import Locking
internal import SystemCalls

/// An exclusive claim by means of flock(2) on a lock file, which names the process that holds it.
///
/// The kernel drops it when the process ends, however it ends; a lock file that is left behind does no harm.
final class FileLock: Sendable {
  private let name: String
  /// Where the name is; nil: it is a path.
  private let directory: OpenFile?
  private let operations: any FileOperations
  private let file: PosixMutex<OpenFile?>

  /// Claims the lock file at `path`, creating it if needed.
  ///
  /// - Parameter purpose: what is claimed, as the object of "another process works on".
  /// - Throws: `locked`, with the pid of the holder, if it is taken.
  convenience init(
    path: String, purpose: String, operations: any FileOperations = SystemFileOperations()
  ) throws(TransferError) {
    try self.init(path, in: nil, shownAs: path, purpose: purpose, operations)
  }

  /// Claims the lock file of this name in a folder as it was opened, whatever its path leads to by now.
  ///
  /// - Parameter path: what the folder is called.
  convenience init(
    named name: String, in folder: OpenFile, path: String, purpose: String, operations: any FileOperations
  ) throws(TransferError) {
    try self.init(name, in: folder, shownAs: "\(path)/\(name)", purpose: purpose, operations)
  }

  private init(
    _ name: String, in directory: OpenFile?, shownAs shown: String, purpose: String,
    _ operations: any FileOperations
  ) throws(TransferError) {
    self.name = name
    self.directory = directory
    self.operations = operations
    let claimed: Claim
    do throws(SystemError) {
      claimed = try Self.claim(name, in: directory, operations)
    } catch {
      throw .failure(error, to: "lock", shown)
    }
    switch claimed {
    case .own(let file): self.file = PosixMutex(file)
    case .taken(let pid):
      throw TransferError(
        .locked, "another process\(pid.map { " (pid \($0))" } ?? "") works on \(purpose)",
        advice: "wait until it has ended, or end it", isRetriable: true)
    }
  }

  deinit { release() }

  /// Gives the lock up and keeps the file. Idempotent; implied when the last reference goes.
  func release() {
    file.withLock { Self.giveUp(&$0) }
  }

  /// Gives the lock up and removes its file.
  func removeAndRelease() {
    file.withLock { file in
      guard file != nil else { return }
      // Removed before it is released, so that nobody's lock is removed; who waits for this file finds it gone and makes a new one.
      if let directory {
        try? operations.remove(name, in: directory.descriptor)
      } else {
        let (parent, last) = name.splitLastComponent
        if let folder = try? OpenFile(parent, flags: O_RDONLY | O_DIRECTORY, operations) {
          try? operations.remove(last, in: folder.descriptor)
        }
      }
      Self.giveUp(&file)
    }
  }

  private static func giveUp(_ file: inout OpenFile?) {
    if let file { file.operations.unlock(file.descriptor) }
    file = nil
  }

  private enum Claim {
    case own(OpenFile)
    case taken(pid: String?)
  }

  private static func claim(
    _ name: String, in directory: OpenFile?, _ operations: any FileOperations
  ) throws(SystemError) -> Claim {
    // Between open and flock the holder may remove the file; then the lock would be on a file that no other process can see.
    for _ in 0..<100 {
      let file = try OpenFile(
        name, in: directory, flags: O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600, operations)
      guard try operations.lock(file.descriptor) else {
        let note = try operations.read(file.descriptor, at: 0, count: 32)
        let digits = String(decoding: note, as: UTF8.self).prefix { $0.isASCII && $0.isNumber }
        return .taken(pid: digits.isEmpty ? nil : String(digits))
      }
      let own = try operations.status(of: file.descriptor)
      guard
        let seen = try? operations.status(
          of: name, in: directory?.descriptor, followingLinks: false),
        seen.inode == own.inode, seen.device == own.device
      else { continue }
      try operations.truncate(file.descriptor, to: 0)
      try operations.write(file.descriptor, Data("\(getpid())\n".utf8), at: 0)
      return .own(file)
    }
    return .taken(pid: nil)
  }
}
