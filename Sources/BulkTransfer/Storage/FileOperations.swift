internal import Foundation
internal import SystemCalls
internal import Wording

/// What a name stands for in a file system.
enum FileKind: Hashable, Sendable {
  case regular, directory, symbolicLink, fifo, socket, characterDevice, blockDevice, other
}

/// The part of `stat` that the engine looks at (stat(3type)).
struct FileStatus: Hashable, Sendable {
  var kind: FileKind
  var size: UInt64
  var device: UInt64
  var inode: UInt64
  /// Number of names that the file has.
  var links: Int
  /// Time of the last change of contents, in nanoseconds since 1970.
  var modified: Int64
  /// Time of the last change of contents or status, in the same unit: no program can set it.
  var changed: Int64 = 0
  /// Who may read, write and execute it.
  var permissions: UInt32 = 0o666
}

/// What the engine asks of a file system, one method a system call; tests put a file system in its place that fails or forgets.
///
/// Names are single components in an open directory, or paths where `directory` is nil. Descriptors close on exec. EINTR is dealt with
/// here and nowhere else.
protocol FileOperations: Sendable {
  /// openat(2), with O_CLOEXEC added.
  func open(_ name: String, in directory: Int32?, flags: Int32, mode: UInt32) throws(SystemError) -> Int32
  /// close(2).
  func close(_ descriptor: Int32)
  /// fstat(2).
  func status(of descriptor: Int32) throws(SystemError) -> FileStatus
  /// fstatat(2).
  func status(
    of name: String, in directory: Int32?, followingLinks: Bool
  ) throws(SystemError) -> FileStatus
  /// pread(2); fewer bytes than asked only at the end of the file.
  func read(_ descriptor: Int32, at offset: UInt64, count: Int) throws(SystemError) -> Data
  /// pwrite(2), all of the bytes.
  func write(_ descriptor: Int32, _ bytes: Data, at offset: UInt64) throws(SystemError)
  /// ftruncate(2).
  func truncate(_ descriptor: Int32, to size: UInt64) throws(SystemError)
  /// fsync(2), of a file or a directory.
  func sync(_ descriptor: Int32) throws(SystemError)
  /// fdatasync(2): contents and size, without times, which spares the file system's journal.
  func syncContents(_ descriptor: Int32) throws(SystemError)
  /// posix_fadvise(2), POSIX_FADV_DONTNEED: the pages that are on the disk leave memory, so that reading finds what the disk has. Best effort.
  func forgetCached(_ descriptor: Int32)
  /// renameat(2): replaces what has the new name.
  func rename(_ name: String, to newName: String, in directory: Int32) throws(SystemError)
  /// renameat2(2), RENAME_NOREPLACE: fails with EEXIST if the new name is taken, and with EINVAL or ENOSYS where the file system has no such call.
  func renameExclusively(_ name: String, to newName: String, in directory: Int32) throws(SystemError)
  /// renameat2(2), RENAME_EXCHANGE: each gets the other's name; fails with EINVAL or ENOSYS where the file system has no such call.
  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError)
  /// readlinkat(2), of a path.
  func target(ofLink path: String) throws(SystemError) -> String
  /// linkat(2): fails with EEXIST if the new name is taken.
  func link(_ name: String, to newName: String, in directory: Int32) throws(SystemError)
  /// unlinkat(2).
  func remove(_ name: String, in directory: Int32) throws(SystemError)
  /// mkdirat(2).
  func makeDirectory(_ name: String, in directory: Int32?, mode: UInt32) throws(SystemError)
  /// readdir(3): all names but `.` and `..`, in no order.
  func names(in directory: Int32) throws(SystemError) -> [String]
  /// flock(2), exclusive and without waiting; false if another open file holds it.
  func lock(_ descriptor: Int32) throws(SystemError) -> Bool
  /// flock(2): gives up what ``lock(_:)`` has got, also where a copy of the descriptor lives on.
  func unlock(_ descriptor: Int32)
  /// fstatvfs(3): bytes that an unprivileged process can still store.
  func freeSpace(of descriptor: Int32) throws(SystemError) -> UInt64
}

/// An open descriptor; closed with the last reference.
final class OpenFile: Sendable {
  let descriptor: Int32
  let operations: any FileOperations

  /// Takes ownership of a descriptor.
  init(_ descriptor: Int32, _ operations: any FileOperations) {
    self.descriptor = descriptor
    self.operations = operations
  }

  /// Opens a name in a directory, or a path.
  init(
    _ name: String, in directory: OpenFile? = nil, flags: Int32, mode: UInt32 = 0,
    _ operations: any FileOperations
  ) throws(SystemError) {
    descriptor = try operations.open(name, in: directory?.descriptor, flags: flags, mode: mode)
    self.operations = operations
  }

  deinit { operations.close(descriptor) }
}

extension TransferError {
  /// The failure of the file system while local state is kept: full disk, missing rights and a failing disk in words of their own.
  static func failure(_ error: SystemError, to action: String, _ path: String) -> TransferError {
    switch error.number {
    case ENOSPC, EDQUOT:
      TransferError(
        .diskFull, "no space is left to \(action) \(path.printable)",
        advice: "free space and run the same command again",
        isRetriable: true)
    case EACCES, EPERM:
      TransferError(
        .storage, "not permitted to \(action) \(path.printable)",
        advice: "check owner and mode of the file and its folder")
    case EROFS:
      TransferError(
        .storage, "cannot \(action) \(path.printable): the file system is read-only",
        advice: "choose another folder")
    case EIO:
      TransferError(
        .storage, "the disk failed to \(action) \(path.printable)",
        advice: "look for disk errors in the kernel log; what was confirmed before is kept")
    case ENOENT:
      TransferError(
        .storage, "cannot \(action) \(path.printable): it or its folder does not exist",
        advice: "make the folder, or name another place")
    case EISDIR:
      TransferError(
        .storage, "cannot \(action) \(path.printable): it is no regular file",
        advice: "move away what is there, or name another place")
    case ENOTDIR:
      TransferError(
        .storage, "cannot \(action) \(path.printable): it, or a part of the path, is no folder",
        advice: "move away what is there, or name another folder")
    case EFBIG:
      TransferError(
        .storage, "cannot \(action) \(path.printable): it would be larger than a file may be",
        advice: "raise the limit (ulimit -f), or use another file system")
    case ENAMETOOLONG:
      TransferError(
        .storage, "cannot \(action) \(path.printable): the name is too long", advice: "choose a shorter one")
    case ELOOP:
      TransferError(
        .storage, "cannot \(action) \(path.printable): it is a symbolic link",
        advice: "remove the link or name another place")
    case EMFILE, ENFILE:
      TransferError(
        .storage, "cannot \(action) \(path.printable): too many files are open",
        advice: "raise the limit (ulimit -n)",
        isRetriable: true)
    default:
      TransferError(.storage, "cannot \(action) \(path.printable): \(error.text) (\(error.call))")
    }
  }
}

extension String {
  /// The text for a terminal or a log: control and direction characters, which could forge output, are written as `\u{...}`.
  var printable: String { SafeText.escaping(self) }
}

extension Unicode.Scalar {
  /// Whether it is no visible character and no space.
  var isUnprintable: Bool { !SafeText.isHarmless(self) }
}
