import Foundation

/// A folder of its own for one test, removed with its last reference.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("bulk-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a name in it.
  func path(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  @discardableResult
  func write(_ contents: Data, _ name: String) throws -> String {
    try contents.write(to: URL(fileURLWithPath: path(name)))
    return path(name)
  }

  /// The contents of a file; nil if there is none.
  func contents(_ name: String) -> Data? { FileManager.default.contents(atPath: path(name)) }

  /// All names, hidden ones too, sorted.
  var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? [] }
}

/// A document of the repository.
func document(_ name: String) throws -> String {
  let root = URL(fileURLWithPath: #filePath).pathComponents.dropLast(4)
  return try String(contentsOfFile: NSString.path(withComponents: root + ["docs", name]), encoding: .utf8)
}

/// The indented block of a document that contains `word`, without the indentation.
func block(with word: String, in document: String) -> String? {
  let blocks = document.split(separator: "\n\n").map { paragraph in
    paragraph.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
  return blocks.first { lines in
    lines.allSatisfy { $0.hasPrefix("    ") } && lines.contains { $0.contains(word) }
  }.map { lines in lines.map { $0.dropFirst(4) + "\n" }.joined() }
}
