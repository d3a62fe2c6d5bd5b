import Foundation

/// The module's public symbols, one line each: path, two spaces, declaration.
///
/// A requirement of a protocol that has a default is *optional*, as it is for programs. Symbols that Apple's framework does not have begin with `+`.
struct SymbolList {
  let lines: [String]

  /// What types, constants and extensions of ours begin with.
  private static let additions = ["CBLogHandler", "CBManagerOption", "Optional"]

  /// Conformances that every type of a kind has, and which say nothing.
  private static let unsaid: Set<String> = [
    "Copyable", "Escapable", "SendableMetatype", "BitwiseCopyable", "NSObjectProtocol", "Equatable",
    "CustomDebugStringConvertible", "CustomStringConvertible", "SetAlgebra", "ExpressibleByArrayLiteral",
    "Error",
  ]

  init(lines: [String]) { self.lines = lines }

  init(_ graphs: [SymbolGraph]) {
    let relationships = graphs.flatMap(\.relationships)
    let requirements = Set(relationships.lazy.filter { $0.kind == "requirementOf" }.map(\.source))
    let defaults = relationships.filter {
      $0.kind == "defaultImplementationOf" && requirements.contains($0.target)
    }
    let optional = Set(defaults.map(\.target))
    let unseen = Set(defaults.map(\.source))
    var inherited: [String: [String]] = [:]
    for relationship in relationships {
      guard let name = Self.name(of: relationship, in: graphs) else { continue }
      switch relationship.kind {
      case "inheritsFrom": inherited[relationship.source, default: []].insert(name, at: 0)
      case "conformsTo" where !Self.unsaid.contains(name):
        inherited[relationship.source, default: []].append(name)
      default: break
      }
    }
    lines = graphs.flatMap(\.symbols)
      .filter { !unseen.contains($0.identifier.precise) }
      .map { symbol in
        let id = symbol.identifier.precise
        let words = requirements.contains(id) ? (optional.contains(id) ? "optional" : "required") : nil
        return Self.line(symbol, requirement: words, inherits: inherited[id] ?? [])
      }
      .sorted()
  }

  private static func name(of relationship: SymbolGraph.Relationship, in graphs: [SymbolGraph]) -> String? {
    if let name = relationship.targetFallback { return name.split(separator: ".").last.map(String.init) }
    return graphs.lazy.flatMap(\.symbols).first { $0.identifier.precise == relationship.target }?
      .pathComponents.joined(separator: ".")
  }

  private static func line(_ symbol: SymbolGraph.Symbol, requirement: String?, inherits: [String]) -> String {
    var words: [String] = []
    if symbol.availability?.contains(where: { $0.isUnconditionallyDeprecated == true }) == true {
      words.append("deprecated")
    }
    if symbol.spi == true { words.append("@_spi") }
    words.append(requirement ?? symbol.accessLevel)
    var declaration = symbol.declarationFragments.map(\.spelling).joined()
      .split(whereSeparator: \.isWhitespace).joined(separator: " ")
    if !inherits.isEmpty {
      // A class names its superclass first.
      let first = symbol.kind.identifier == "swift.class" ? inherits.prefix(1) : []
      let rest = inherits.dropFirst(first.count).sorted()
      let names = (Array(first) + rest).joined(separator: ", ")
      if !declaration.contains(" : ") { declaration += " : \(names)" }
    }
    for constraint in symbol.swiftExtension?.constraints ?? [] {
      declaration += " where \(constraint.lhs) : \(constraint.rhs)"
    }
    words.append(declaration)
    let isOurs = symbol.spi == true || additions.contains { symbol.pathComponents[0].hasPrefix($0) }
    return (isOurs ? "+ " : "") + symbol.pathComponents.joined(separator: ".") + "  "
      + words.joined(separator: " ")
  }

  /// The path in a line.
  static func path(in line: String) -> String {
    let path = line.components(separatedBy: "  ").first ?? line
    return path.hasPrefix("+ ") ? String(path.dropFirst(2)) : path
  }

  /// Paths of all symbols.
  var paths: Set<String> { Set(lines.map(Self.path)) }
}

extension SymbolList {
  static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "symbols.txt")

  private static let head = """
    # The public symbols of the module CoreBluetooth. Renew this list with
    #   \(renewal)
    # and look at what has changed in it. A symbol with a + is not in Apple's framework.

    """

  /// The command that writes the list anew.
  static let renewal = "\(variable)=write swift test --filter SymbolListTests"
  static let variable = "COREBLUETOOTH_SYMBOLS"

  /// Reads the list that is checked in.
  static func checkedIn() throws -> SymbolList {
    let text = try String(contentsOf: file, encoding: .utf8)
    return SymbolList(
      lines: text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init))
  }

  func write() throws {
    try (Self.head + lines.joined(separator: "\n") + "\n")
      .write(to: Self.file, atomically: true, encoding: .utf8)
  }
}
