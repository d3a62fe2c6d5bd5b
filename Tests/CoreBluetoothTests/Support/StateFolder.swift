import CoreBluetooth
import Foundation
import TestSupport

/// A folder for the saved state of one test's managers, which goes with the object.
final class StateFolder: Sendable {
  private let folder = TemporaryFolder()

  /// Where the state is to be; nothing is there yet.
  var path: String { folder.path("state") }

  /// Names of files of saved state.
  var files: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.filter { !$0.hasSuffix(".lock") }.sorted()
  }

  /// The text of a file; nil where there is none.
  func text(_ name: String) -> String? { try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8) }

  func write(_ text: String, to name: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(filePath: "\(path)/\(name)"))
  }
}
