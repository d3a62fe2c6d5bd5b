import Foundation

/// The tables of docs/corebluetooth.md: which symbols are there, how, and what shows it.
struct SurfaceTable {
  struct Row {
    let line: Int
    let symbols: [String]
    /// How the symbols are on Linux.
    let status: String
    /// Names of suites, or of their functions.
    let tests: [String]

    /// Whether the row says that something is not as on Apple's platforms, and why.
    var hasReason: Bool {
      ["differs: ", "not applicable: "].contains { status.hasPrefix($0) && status.count > $0.count + 10 }
    }

    /// Whether the row speaks of symbols that need not be there.
    var isLeftOut: Bool { status.hasPrefix("differs: left out") }
  }

  let rows: [Row]

  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  init() throws {
    let text = try String(contentsOf: Self.root.appending(path: "docs/corebluetooth.md"), encoding: .utf8)
    var section = ""
    var rows: [Row] = []
    for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if line.hasPrefix("### ") { section = String(line.dropFirst(4)) }
      guard line.hasPrefix("| `") else { continue }
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3 else { continue }
      rows.append(
        Row(
          line: number + 1,
          symbols: Self.names(in: cells[0]).map { $0.hasPrefix(".") ? section + $0 : $0 },
          status: cells[1], tests: Self.names(in: cells[2])))
    }
    self.rows = rows
  }

  /// What stands between backticks.
  private static func names(in cell: String) -> [String] {
    let pieces = cell.components(separatedBy: "`")
    return stride(from: 1, to: pieces.count, by: 2).map { pieces[$0] }
  }
}

/// The suites in the package's tests, and their functions, read from the sources.
struct TestNames {
  private let functions: [String: Set<String>]

  init() throws {
    let folder = SurfaceTable.root.appending(path: "Tests")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    var functions: [String: Set<String>] = [:]
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift" else { continue }
      var suite: String?
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        if let type = Self.word(after: ["struct ", "class ", "extension "], in: line), line.first != " " {
          suite = type
          functions[type] = functions[type] ?? []
        } else if let suite, let function = Self.word(after: ["func "], in: line) {
          functions[suite]?.insert(function)
        }
      }
    }
    self.functions = functions
  }

  private static func word(after introducers: [String], in line: Substring) -> String? {
    for introducer in introducers {
      guard let range = line.range(of: introducer) else { continue }
      let word = line[range.upperBound...].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      return word.isEmpty ? nil : String(word)
    }
    return nil
  }

  /// Whether there is a suite, or a function of a suite, of that name.
  func contains(_ name: String) -> Bool {
    let parts = name.split(separator: ".").map(String.init)
    guard let first = parts.first, let known = functions[first] else { return false }
    return parts.count == 1 || parts.count == 2 && known.contains(parts[1])
  }
}
