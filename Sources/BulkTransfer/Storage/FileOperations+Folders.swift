internal import Foundation
internal import SystemCalls

extension FileOperations {
  /// Makes a folder and those above it, for this user alone.
  func makeDirectories(_ directory: String) throws(TransferError) {
    var path = directory.hasPrefix("/") ? "" : "."
    for component in directory.split(separator: "/") {
      let parent = path.isEmpty ? "/" : path
      path += "/\(component)"
      do throws(SystemError) {
        try makeDirectory(path, in: nil, mode: 0o700)
        let folder = try OpenFile(parent, flags: O_RDONLY | O_DIRECTORY, self)
        try sync(folder.descriptor)
      } catch {
        // What is there already may lie in folders that we may not write to.
        let there = try? status(of: path, in: nil, followingLinks: true)
        if there?.kind != .directory { throw .failure(error, to: "make the folder", path) }
      }
    }
  }
}
