public import Foundation
internal import SystemCalls

/// The bytes of a regular file, kept open; notices when the file changes meanwhile.
///
/// Anything but a readable, non-empty regular file is refused when it is opened, each kind in words of its own and without waiting (a FIFO
/// has no writer) or disturbing it (opening a device can have effects).
public final class FileSource: ByteSource {
  /// The path as it was given.
  public let path: String
  public let size: UInt64
  /// Time of the last change when it was opened, in nanoseconds since 1970.
  public let modified: Int64
  private let file: OpenFile
  private let status: FileStatus

  /// Opens the file at `path`.
  public convenience init(path: String) throws(TransferError) {
    try self.init(path: path, operations: SystemFileOperations())
  }

  init(path: String, operations: any FileOperations) throws(TransferError) {
    self.path = path
    let kind: FileKind
    do throws(SystemError) {
      // Before it is opened: that would wait at a FIFO and may start a device.
      kind = try operations.status(of: path, in: nil, followingLinks: true).kind
    } catch {
      throw .unusable(path, error, operations)
    }
    try Self.check(kind, path)
    do throws(SystemError) {
      file = try OpenFile(path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY, operations)
      status = try operations.status(of: file.descriptor)
    } catch {
      throw .unusable(path, error, operations)
    }
    try Self.check(status.kind, path)
    guard status.size > 0 else {
      throw TransferError(
        .unusableFile, "\(path.printable) is empty",
        advice: "check the build step that should have written it")
    }
    size = status.size
    modified = status.modified
  }

  public func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    try checkRange(at: offset, count: count)
    let bytes: Data
    do throws(SystemError) {
      bytes = try file.operations.read(file.descriptor, at: offset, count: count)
    } catch {
      throw .unusable(path, error, file.operations)
    }
    guard bytes.count == count else {
      let end = offset + UInt64(bytes.count)
      throw changed("has become shorter while it was read: it ends at \(end), was \(size) bytes")
    }
    return bytes
  }

  public func checkUnchanged() throws(TransferError) {
    let now: FileStatus
    do {
      now = try file.operations.status(of: file.descriptor)
    } catch {
      throw .unusable(path, error, file.operations)
    }
    if now.size != size {
      throw changed("has changed while it was read: \(size) bytes before, \(now.size) now")
    }
    if now.modified != modified { throw changed("was written to while it was read") }
  }

  private func changed(_ what: String) -> TransferError {
    TransferError(
      .unusableFile, "\(path.printable) \(what)", advice: "wait until the build has finished and start again",
      isRetriable: true)
  }

  private static func check(_ kind: FileKind, _ path: String) throws(TransferError) {
    if kind == .regular { return }
    let (what, advice): (String, String?) =
      switch kind {
      case .directory: ("is a folder", "name the file in it")
      case .characterDevice: ("is a character device", "save what comes out of it in a file first")
      case .blockDevice: ("is a block device", "copy what it holds into a file first")
      case .fifo: ("is a FIFO", "save what comes out of it in a file first")
      case .socket: ("is a socket", "name a file")
      case .regular, .symbolicLink, .other: ("is of an unknown kind", nil)
      }
    throw TransferError(.unusableFile, "\(path.printable) \(what), not a file", advice: advice)
  }
}

extension TransferError {
  /// Why a file that the user named cannot be read.
  static func unusable(
    _ path: String, _ error: SystemError, _ operations: any FileOperations
  ) -> TransferError {
    let shown = path.printable
    switch error.number {
    case ENOENT:
      let link = try? operations.status(of: path, in: nil, followingLinks: false)
      if link?.kind == .symbolicLink {
        return TransferError(.unusableFile, "\(shown) is a symbolic link to something that does not exist")
      }
      return TransferError(.unusableFile, "\(shown) does not exist", advice: "check the path")
    case ENOTDIR:
      return TransferError(
        .unusableFile, "\(shown) does not exist: a part of the path is no folder", advice: "check the path")
    case EACCES, EPERM:
      return TransferError(
        .unusableFile, "not permitted to read \(shown)",
        advice: "check owner and mode of the file and its folders")
    case ELOOP:
      return TransferError(
        .unusableFile, "\(shown) leads through symbolic links in a circle",
        advice: "check the links on the path")
    case ENAMETOOLONG:
      return TransferError(.unusableFile, "the path \(shown.prefix(60))... is too long")
    case EIO:
      return TransferError(
        .unusableFile, "the disk failed to read \(shown)", advice: "look for disk errors in the kernel log")
    case EMFILE, ENFILE:
      return TransferError(
        .unusableFile, "cannot open \(shown): too many files are open", advice: "raise the limit (ulimit -n)",
        isRetriable: true)
    default:
      return TransferError(.unusableFile, "cannot read \(shown): \(error.text) (\(error.call))")
    }
  }
}
