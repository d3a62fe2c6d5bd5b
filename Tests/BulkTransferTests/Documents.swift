import Foundation

/// A document of the repository.
func document(_ name: String) throws -> String {
  let root = URL(fileURLWithPath: #filePath).pathComponents.dropLast(3)
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
