internal import Foundation
internal import SystemCalls

/// How a file gets a name that something else may have, or get at that very moment.
extension FileOperations {
  /// What has a name in a folder, a link itself and not what it leads to; nil if nothing has.
  func statusIfPresent(_ name: String, in directory: Int32?) throws(SystemError) -> FileStatus? {
    do throws(SystemError) {
      return try status(of: name, in: directory, followingLinks: false)
    } catch {
      if error.number == ENOENT { return nil }
      throw error
    }
  }

  /// Gives a file another name in its folder.
  ///
  /// - Returns: false if the name is taken; nothing has changed then.
  func moveExclusively(_ name: String, to newName: String, in directory: Int32) throws(SystemError) -> Bool {
    do throws(SystemError) {
      try link(name, to: newName, in: directory)
      try remove(name, in: directory)
      return true
    } catch {
      if error.number == EEXIST { return false }
      guard error.call == "linkat", [EPERM, EMLINK].contains(error.number) || error.isMissingCall else {
        throw error
      }
    }
    // A file system without hard links (FAT).
    do throws(SystemError) {
      try renameExclusively(name, to: newName, in: directory)
      return true
    } catch {
      if error.number == EEXIST { return false }
      guard error.isMissingCall else { throw error }
    }
    // There is a moment between looking and renaming, in which somebody else may take the name.
    if try statusIfPresent(newName, in: directory) != nil { return false }
    try rename(name, to: newName, in: directory)
    return true
  }

  /// Gives a file another name in its folder, in place of what has that name if it may go.
  ///
  /// What comes there between looking and renaming is not lost: the two are exchanged, and changed back if it may not go.
  /// - Parameter mayGo: whether something may be replaced.
  /// - Returns: false if what has the name may not be replaced; it stays then, and the file keeps its old name.
  func move(
    _ name: String, to newName: String, in directory: Int32, replacing mayGo: (FileStatus) -> Bool
  ) throws(SystemError) -> Bool {
    for _ in 1...16 {
      guard let there = try statusIfPresent(newName, in: directory) else {
        if try moveExclusively(name, to: newName, in: directory) { return true }
        continue
      }
      guard mayGo(there) else { return false }
      do throws(SystemError) {
        try exchange(name, with: newName, in: directory)
      } catch {
        if error.isMissingCall {
          // Here that moment is left.
          try rename(name, to: newName, in: directory)
          return true
        }
        // What was there has gone meanwhile.
        if error.number == ENOENT { continue }
        throw error
      }
      if mayGo(try status(of: name, in: directory, followingLinks: false)) {
        try remove(name, in: directory)
        return true
      }
      try exchange(name, with: newName, in: directory)
      return false
    }
    throw SystemError("renameat2", EBUSY)
  }
}

extension SystemError {
  /// Whether the system or the file system has no such call, rather than an objection to this one.
  fileprivate var isMissingCall: Bool { [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(number) }
}
