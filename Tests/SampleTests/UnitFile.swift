import Foundation

/// A unit file of systemd (systemd.syntax(7)): sections with assignments.
struct UnitFile {
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  /// Values by section and key, in their order; a key may come again.
  private(set) var sections: [String: [String: [String]]] = [:]
  /// Comments as they stand, without their sign.
  private(set) var comments: [String] = []

  init(_ text: String) throws {
    var section: String?
    var pending = ""
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line.hasPrefix("#") || line.hasPrefix(";") {
        comments.append(String(line.dropFirst()))
        continue
      }
      if line.hasSuffix("\\") {
        pending += line.dropLast() + " "
        continue
      }
      let whole = pending + line
      pending = ""
      guard !whole.isEmpty else { continue }
      if whole.hasPrefix("["), whole.hasSuffix("]") {
        let name = String(whole.dropFirst().dropLast())
        section = name
        sections[name] = sections[name] ?? [:]
        continue
      }
      guard let section else { throw Fault(description: "before any section: \(whole)") }
      guard let (key, value) = Self.assignment(whole) else {
        throw Fault(description: "no assignment: \(whole)")
      }
      sections[section]?[key, default: []].append(value)
    }
    guard pending.isEmpty else { throw Fault(description: "goes on after its end: \(pending)") }
  }

  /// The one value of a key; nil where there is none or more than one.
  func value(_ section: String, _ key: String) -> String? {
    let values = sections[section]?[key] ?? []
    return values.count == 1 ? values.first : nil
  }

  /// Environment variables that it sets, or proposes to set in a comment.
  var variables: [(name: String, value: String)] {
    let set = sections["Service"]?["Environment"] ?? []
    let proposed = comments.compactMap { Self.assignment($0) }.filter { $0.key == "Environment" }.map(\.value)
    return (set + proposed).flatMap { $0.split(separator: " ") }.compactMap { Self.assignment(String($0)) }
      .map { ($0.key, $0.value) }
  }

  private static func assignment(_ text: String) -> (key: String, value: String)? {
    guard let sign = text.firstIndex(of: "=") else { return nil }
    let key = text[..<sign].trimmingCharacters(in: .whitespaces)
    guard !key.isEmpty, key.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else { return nil }
    return (key, text[text.index(after: sign)...].trimmingCharacters(in: .whitespaces))
  }
}
