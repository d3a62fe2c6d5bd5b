internal import Foundation

/// A folder of one run. Where a process was killed and could not remove its own, the next run does.
struct RunFolder: Sendable {
  let folder: URL
  private let lock: FileLock
  private static let prefix = "bluehaul-real-stack."

  init() throws {
    Self.removeAbandoned()
    folder = FileManager.default.temporaryDirectory.appending(path: "\(Self.prefix)\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // The lock gets its name when it is held: so no folder has one that could be had, unless its owner is gone.
    let unnamed = folder.appending(path: "lock.new")
    guard let lock = FileLock.trying(unnamed) else { throw CocoaError(.fileWriteUnknown) }
    self.lock = lock
    try FileManager.default.moveItem(at: unnamed, to: Self.lockFile(in: folder))
  }

  func remove() {
    try? FileManager.default.removeItem(at: folder)
    lock.release()
  }

  private static func lockFile(in folder: URL) -> URL { folder.appending(path: "lock") }

  private static func removeAbandoned() {
    let parent = FileManager.default.temporaryDirectory
    for name in (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
    where name.hasPrefix(prefix) {
      let folder = parent.appending(path: name)
      let file = lockFile(in: folder)
      guard FileManager.default.fileExists(atPath: file.path), let lock = FileLock.trying(file) else {
        continue
      }
      try? FileManager.default.removeItem(at: folder)
      lock.release()
    }
  }
}
