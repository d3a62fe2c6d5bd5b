public import Foundation
internal import SystemCalls

/// A file that is replaced as a whole or not at all, whatever moment the machine stops at.
///
/// The new contents go to a temporary file beside it, which is fsynced and renamed over the old one; then the folder is fsynced. A
/// failure removes the temporary file; a crash may leave it as `.NAME.*.tmp`, which ``removeLeftovers()`` takes away.
public struct AtomicFile: Sendable {
  /// Where the file is.
  public let path: String
  private let name: String
  private let parent: String
  private let permissions: UInt32
  private let operations: any FileOperations

  /// A file at `path`; created with `permissions` less the umask.
  public init(path: String, permissions: UInt32 = 0o666) {
    self.init(path: path, permissions: permissions, operations: SystemFileOperations())
  }

  init(path: String, permissions: UInt32 = 0o666, operations: any FileOperations) {
    self.path = path
    self.permissions = permissions
    self.operations = operations
    (parent, name) = path.splitLastComponent
  }

  /// Replaces the contents. Durable when it returns; the old contents are untouched when it throws.
  public func write(_ contents: Data) throws(TransferError) {
    do {
      let folder = try OpenFile(parent, flags: O_RDONLY | O_DIRECTORY, operations)
      try operations.put(contents, as: name, permissions, in: folder) { temporary throws(SystemError) in
        try operations.rename(temporary, to: name, in: folder.descriptor)
        return true
      }
    } catch {
      throw .failure(error, to: "write", path)
    }
  }

  /// The contents; nil if there is no such file. Files beyond `limit` bytes are refused without being read.
  public func read(limit: Int) throws(TransferError) -> Data? {
    let contents: Data
    do throws(SystemError) {
      // A FIFO in its place must not make us wait for a writer.
      let file = try OpenFile(path, flags: O_RDONLY | O_NONBLOCK, operations)
      guard try operations.status(of: file.descriptor).kind == .regular else {
        throw SystemError("open", EISDIR)
      }
      contents = try operations.read(file.descriptor, at: 0, count: limit + 1)
    } catch {
      if error.number == ENOENT { return nil }
      throw .failure(error, to: "read", path)
    }
    guard contents.count <= limit else {
      throw TransferError(.damagedState, "\(path.printable) is larger than \(limit) bytes")
    }
    return contents
  }

  /// Removes temporary files that a crash has left. Only for one who knows that nobody else is writing the file.
  public func removeLeftovers() throws(TransferError) {
    do {
      let folder = try OpenFile(parent, flags: O_RDONLY | O_DIRECTORY, operations)
      for other in try operations.names(in: folder.descriptor) where isLeftover(other) {
        try operations.remove(other, in: folder.descriptor)
      }
    } catch {
      if error.number == ENOENT { return }
      throw .failure(error, to: "tidy up beside", path)
    }
  }

  private func isLeftover(_ other: String) -> Bool {
    other.hasPrefix(".\(name).") && other.hasSuffix(".tmp")
  }
}

extension FileOperations {
  /// Stores contents durably under a name in a folder, whole or not at all.
  ///
  /// - Parameter giveName: gives the temporary file its name; false if it may not have it, and then it goes.
  @discardableResult
  func put(
    _ contents: Data, as name: String, _ permissions: UInt32, in folder: OpenFile,
    giveName: (_ temporary: String) throws(SystemError) -> Bool
  ) throws(SystemError) -> Bool {
    let unique = String(UInt64.random(in: .min ... .max), radix: 36)
    let temporary = ".\(name.cut(to: 200)).\(unique).tmp"
    let file = try OpenFile(
      temporary, in: folder, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: permissions, self)
    do throws(SystemError) {
      try write(file.descriptor, contents, at: 0)
      try sync(file.descriptor)
      guard try giveName(temporary) else {
        try remove(temporary, in: folder.descriptor)
        return false
      }
    } catch {
      try? remove(temporary, in: folder.descriptor)
      throw error
    }
    try sync(folder.descriptor)
    return true
  }
}

extension String {
  /// The folder and the last component of a path: `a/b` gives `a` and `b`, `b` gives `.` and `b`.
  var splitLastComponent: (parent: String, name: String) {
    guard let slash = lastIndex(of: "/") else { return (".", self) }
    let parent = self[..<slash]
    return (parent.isEmpty ? "/" : String(parent), String(self[index(after: slash)...]))
  }
}
