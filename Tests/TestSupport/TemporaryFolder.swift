package import Foundation

/// A folder of its own for one test, removed with the last reference to it, however the test ends.
///
/// All folders of a process stand in one, which goes with the process: also where a test calls exit(3), or where something puts a file back
/// when its folder has gone. What a process that was killed has left is removed by the next one.
package final class TemporaryFolder: Sendable {
  package let path: String

  /// Makes a folder; one that cannot be made shows in what is done with it.
  package init() {
    path = Self.root + "/\(UUID().uuidString.prefix(13))"
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a name in it.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  @discardableResult
  package func write(_ contents: Data, _ name: String) throws -> String {
    try contents.write(to: URL(fileURLWithPath: path(name)))
    return path(name)
  }

  /// The contents of a file; nil if there is none.
  package func contents(_ name: String) -> Data? { FileManager.default.contents(atPath: path(name)) }

  /// All names, hidden ones too, sorted.
  package var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? [] }

  private static let prefix = "bluehaul-tests-"

  /// The folder of this process.
  private static let root: String = {
    let files = FileManager.default
    let parent = files.temporaryDirectory
    for name in (try? files.contentsOfDirectory(atPath: parent.path)) ?? [] where name.hasPrefix(prefix) {
      guard let process = pid_t(name.dropFirst(prefix.count)), process != getpid(),
        kill(process, 0) != 0, errno == ESRCH
      else { continue }
      try? files.removeItem(at: parent.appendingPathComponent(name))
    }
    atexit { try? FileManager.default.removeItem(atPath: root) }
    return parent.appendingPathComponent("\(prefix)\(getpid())").path
  }()
}
