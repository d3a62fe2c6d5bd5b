package import Foundation

/// What the testing library has recorded of a run: one JSON object a line, version 0 of its event stream.
package struct GuestTestEvents: Sendable {
  package struct Issue: Sendable, Equatable {
    /// The test, with its suite as it is written in source; nil for what belongs to none.
    package let test: String?
    package let text: String
    package let location: Location?
  }

  package struct Location: Sendable, Equatable, Decodable {
    package let fileID: String
    package let filePath: String
    package let line: Int
    package let column: Int

    private enum CodingKeys: String, CodingKey {
      case fileID, line, column
      case filePath = "_filePath"
    }
  }

  /// Tests, not suites, that have run to their end. Names are those of ``Issue/test``.
  package private(set) var ended: Set<String> = []
  /// Tests in the middle of which the process has ended.
  package private(set) var unfinished: Set<String> = []
  /// Tests that were not run, with the reason that the library gave.
  package private(set) var skipped: [String: String] = [:]
  /// Issues that fail a test: neither known ones nor warnings.
  package private(set) var issues: [Issue] = []
  /// Whether the run came to its end.
  package private(set) var isComplete = false
  /// The library's own last sentence.
  package private(set) var summary: String?

  package init(_ data: Data) {
    var functions: Set<String> = []
    for line in data.split(separator: 0x0A) {
      // A process that was killed may have left half a line.
      guard let record = try? JSONDecoder().decode(Record.self, from: Data(line)) else { continue }
      let payload = record.payload
      if record.kind == "test", payload.kind == "function", let id = payload.id {
        functions.insert(id)
      } else if record.kind == "event" {
        add(payload, isFunction: payload.testID.map { functions.contains($0) } ?? false)
      }
    }
  }

  private mutating func add(_ event: Payload, isFunction: Bool) {
    let test = event.testID.map(Self.name)
    let text = event.messages?.map(\.text).joined(separator: "\n") ?? ""
    switch event.kind {
    case "testStarted": if isFunction, let test { unfinished.insert(test) }
    case "testEnded":
      if isFunction, let test, unfinished.remove(test) != nil { ended.insert(test) }
    case "testSkipped", "testCancelled":
      if isFunction, let test {
        unfinished.remove(test)
        skipped[test] = text
      }
    case "issueRecorded":
      guard let issue = event.issue, issue.isKnown != true, issue.isFailure != false,
        issue.severity != "warning"
      else { return }
      let argument = event.testCase.flatMap(\.displayName).map { " (\($0))" } ?? ""
      issues.append(Issue(test: test.map { $0 + argument }, text: text, location: issue.sourceLocation))
    case "runEnded":
      isComplete = true
      summary = text
    default: break
    }
  }

  /// `Target.Suite/function()/File.swift:1:2` without its place.
  private static func name(_ id: String) -> String {
    guard let end = id.range(of: #"/[^/]*\.swift:\d+:\d+$"#, options: .regularExpression) else { return id }
    return String(id[..<end.lowerBound])
  }

  private struct Record: Decodable {
    let kind: String
    let payload: Payload
  }

  private struct Payload: Decodable {
    struct Message: Decodable { let text: String }
    struct Case: Decodable { let displayName: String? }
    struct Recorded: Decodable {
      let isKnown: Bool?
      let isFailure: Bool?
      let severity: String?
      let sourceLocation: Location?
    }

    let kind: String
    let id: String?
    let testID: String?
    let messages: [Message]?
    let testCase: Case?
    let issue: Recorded?

    private enum CodingKeys: String, CodingKey {
      case kind, id, testID, messages, issue
      case testCase = "_testCase"
    }
  }
}
