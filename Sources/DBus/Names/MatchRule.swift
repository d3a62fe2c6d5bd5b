/// Which messages the bus sends to a connection; what is nil matches all.
///
/// Source: D-Bus Specification, "Match Rules".
public struct MatchRule: Hashable, Sendable, CustomStringConvertible {
  /// What an argument must be.
  public enum Argument: Hashable, Sendable {
    /// A string of this value.
    case equals(String)
    /// A string or object path that equals it, or where one of both ends in a slash and is a prefix of the other.
    case path(String)
    /// A string that is this name or below it; only for argument 0.
    case namespace(String)
  }

  /// Octets of the longest rule that the reference implementation takes.
  public static let maximumLength = 1024

  /// A unique or a well-known name. With the latter, only signals of its owner at that time are delivered.
  public var sender: String?
  public var path: ObjectPath?
  /// The object or any below it; not together with ``path``.
  public var pathNamespace: ObjectPath?
  public var interface: String?
  public var member: String?
  public var destination: String?
  /// By index, 0 to 63.
  public var arguments: [Int: Argument]

  /// A rule for signals.
  public init(
    sender: String? = nil, path: ObjectPath? = nil, pathNamespace: ObjectPath? = nil,
    interface: String? = nil,
    member: String? = nil, destination: String? = nil, arguments: [Int: Argument] = [:]
  ) {
    self.sender = sender
    self.path = path
    self.pathNamespace = pathNamespace
    self.interface = interface
    self.member = member
    self.destination = destination
    self.arguments = arguments
  }

  /// Throws with kind ``DBusError/Kind/invalidArgument`` where the bus would refuse the rule.
  public func check() throws(DBusError) {
    if let sender { try DBusName.check(sender, as: .bus) }
    if let interface { try DBusName.check(interface, as: .interface) }
    if let member { try DBusName.check(member, as: .member) }
    if let destination {
      try DBusName.check(destination, as: .bus)
      guard DBusName.isUnique(destination) else { throw invalid("a destination is a unique name") }
    }
    guard path == nil || pathNamespace == nil else { throw invalid("a path and a namespace of paths") }
    for (index, argument) in arguments {
      guard (0...63).contains(index) else { throw invalid("argument \(index)") }
      switch argument {
      case .equals(let text):
        guard !text.utf8.contains(0) else { throw invalid("argument \(index) has a NUL") }
      case .path(let text):
        let whole = text != "/" && text.utf8.last == UInt8(ascii: "/") ? String(text.dropLast()) : text
        guard ObjectPath.isValid(whole) else { throw invalid("“\(text)” is no path") }
      case .namespace(let text):
        guard index == 0 else { throw invalid("only argument 0 has a namespace") }
        // One element is enough here, unlike in a bus name.
        guard !DBusName.isUnique(text), DBusName.isValid(text + ".x", as: .bus) else {
          throw invalid("“\(text)” is no namespace")
        }
      }
    }
    guard text.utf8.count <= Self.maximumLength else { throw invalid("\(text.utf8.count) octets") }
  }

  private func invalid(_ reason: String) -> DBusError {
    .invalid("match rule: \(reason)", name: DBusErrorName.matchRuleInvalid)
  }

  /// The rule as the bus reads it.
  public var text: String {
    var parts = ["type='signal'"]
    func add(_ key: String, _ value: String?) {
      if let value { parts.append("\(key)=\(Self.quoted(value))") }
    }
    add("sender", sender)
    add("path", path?.text)
    add("path_namespace", pathNamespace?.text)
    add("interface", interface)
    add("member", member)
    add("destination", destination)
    for (index, argument) in arguments.sorted(by: { $0.key < $1.key }) {
      switch argument {
      case .equals(let value): add("arg\(index)", value)
      case .path(let value): add("arg\(index)path", value)
      case .namespace(let value): add("arg\(index)namespace", value)
      }
    }
    return parts.joined(separator: ",")
  }

  /// Between apostrophes nothing is special but the apostrophe, which is written as `'\''`.
  private static func quoted(_ text: String) -> String {
    var result = "'"
    for character in text.unicodeScalars {
      if character == "'" { result += "'\\''" } else { result.unicodeScalars.append(character) }
    }
    return result + "'"
  }

  public var description: String { text }

  /// Whether a signal is meant by the rule; of a well-known sender, `owner` is who has the name now.
  func matches(_ message: DBusMessage, owner: String?) -> Bool {
    guard message.kind == .signal else { return false }
    if let sender, message.sender != (Self.needsOwner(sender) ? owner : sender) { return false }
    if let path, message.path != path { return false }
    if let pathNamespace {
      guard let path = message.path, path.isWithin(pathNamespace) else { return false }
    }
    if let interface, message.interface != interface { return false }
    if let member, message.member != member { return false }
    if let destination, message.destination != destination { return false }
    return arguments.allSatisfy { index, argument in
      index < message.body.count && argument.matches(message.body[index])
    }
  }

  /// Whether signals carry another sender than the rule: they carry unique names, except those of the bus itself.
  static func needsOwner(_ name: String) -> Bool { !DBusName.isUnique(name) && name != DBusWellKnown.bus }
}

extension MatchRule.Argument {
  func matches(_ value: DBusValue) -> Bool {
    switch (self, value) {
    case (.equals(let wanted), .string(let text)):
      return wanted == text
    case (.path(let wanted), .string(let text)):
      return Self.paths(wanted, text)
    case (.path(let wanted), .objectPath(let path)):
      return Self.paths(wanted, path.text)
    case (.namespace(let wanted), .string(let text)):
      return text == wanted || text.hasPrefix(wanted + ".")
    case (.equals, _), (.path, _), (.namespace, _):
      return false
    }
  }

  private static func paths(_ wanted: String, _ text: String) -> Bool {
    wanted == text || wanted.hasSuffix("/") && text.hasPrefix(wanted)
      || text.hasSuffix("/") && wanted.hasPrefix(text)
  }
}
