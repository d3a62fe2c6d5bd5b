import Foundation
import Testing

@testable import BluehaulTool

/// What docs/cli.md promises, read from its text.
struct Documentation {
  /// The members of each JSON event.
  let events: [String: Set<String>]
  /// Exit codes with their meanings.
  let exitCodes: [Int32: String]

  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  init() throws {
    var events: [String: Set<String>] = [:]
    var exitCodes: [Int32: String] = [:]
    var event: String?
    for line in try Self.text("docs/cli.md").split(separator: "\n") {
      if line.hasPrefix("#") {
        event = line.hasPrefix("### `") ? line.split(separator: "`")[1].description : nil
        if let event { events[event] = ["event"] }
      } else if line.hasPrefix("| `"), let event {
        let members = line.split(separator: "|")[0].split(separator: "`").map(String.init)
        events[event]?.formUnion(members.filter { $0.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" } })
      } else if line.hasPrefix("| ") {
        let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        if cells.count == 2, let code = Int32(cells[0]) { exitCodes[code] = cells[1] }
      }
    }
    self.events = events
    self.exitCodes = exitCodes
  }

  /// Fails the test unless each line is an object with exactly the members that are documented for its event.
  static func check(_ lines: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let documentation = try Documentation()
    for line in lines {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
        sourceLocation: sourceLocation)
      let event = try #require(object["event"] as? String, sourceLocation: sourceLocation)
      #expect(documentation.events[event] == Set(object.keys), "\(event)", sourceLocation: sourceLocation)
      #expect(line.utf8.allSatisfy { (0x20...0x7E).contains($0) }, sourceLocation: sourceLocation)
    }
  }
}

@Suite struct DocumentationTests {
  @Test func exitCodesAreThoseOfTheTool() throws {
    let documented = try Documentation().exitCodes
    #expect(
      documented == Dictionary(uniqueKeysWithValues: ExitCode.table.map { ($0.code.rawValue, $0.meaning) }))
  }

  @Test(arguments: ["README.md", "CONTRIBUTING.md", "docs/cli.md"])
  func everyCommandLineInTheTextIsAccepted(file: String) throws {
    for line in try Documentation.text(file).split(separator: "\n") where line.hasPrefix("bluehaul ") {
      let words = line.split(separator: " ").dropFirst().prefix { $0 != "|" && $0 != ">" && $0 != "#" }
      #expect(throws: Never.self, "\(file): \(line)") {
        try ArgumentParser(root: .bluehaul).parse(words.map(String.init))
      }
    }
  }

  @Test func everyExampleInTheHelpIsAccepted() {
    for path in CommandPath.all {
      for example in path.command.examples {
        let words = example.line.split(separator: " ").dropFirst().map(String.init)
        #expect(throws: Never.self, "\(example.line)") {
          guard case .command(let named, _) = try ArgumentParser(root: .bluehaul).parse(words) else { return }
          #expect(named.line == path.line || path.commands.count == 1)
        }
      }
    }
  }

  @Test func theFirstTwoBlocksOfTheReadmeAreOneCommandEach() throws {
    let pieces = try Documentation.text("README.md").components(separatedBy: "```")
    let blocks = stride(from: 1, to: pieces.count, by: 2).map {
      pieces[$0].split(separator: "\n").dropFirst()
    }
    #expect(blocks.count >= 2 && blocks.prefix(2).allSatisfy { $0.count == 1 })
  }

  @Test func theLibraryExampleIsTheSnippetThatIsBuilt() throws {
    let example = try Documentation.text("README.md").components(separatedBy: "```swift\n").last?
      .components(separatedBy: "```").first
    #expect(example == (try Documentation.text("Snippets/PushAFile.swift")))
  }
}
