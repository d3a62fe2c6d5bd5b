/// The path of an object at a peer: `/`, or elements of ASCII letters, digits and underscores, each after a slash.
///
/// Source: D-Bus Specification, "Valid Object Paths".
public struct ObjectPath: Hashable, Sendable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral
{
  public let text: String

  public static let root = ObjectPath(valid: "/")

  /// Throws with kind ``DBusError/Kind/invalidArgument`` where the text is no path.
  public init(_ text: String) throws(DBusError) {
    guard Self.isValid(text) else { throw .invalid("“\(text)” is no object path") }
    self.text = text
  }

  /// For literals of a program: a wrong one is a mistake in the source and traps.
  public init(stringLiteral text: StaticString) {
    let text = text.description
    precondition(Self.isValid(text), "“\(text)” is no object path")
    self.text = text
  }

  /// For text that libdbus or this module has checked.
  init(valid text: String) { self.text = text }

  public static func isValid(_ text: String) -> Bool {
    let bytes = text.utf8
    guard bytes.first == UInt8(ascii: "/") else { return false }
    if bytes.count == 1 { return true }
    return bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .allSatisfy { !$0.isEmpty && $0.allSatisfy(DBusName.isWord) }
  }

  /// The path of a child; throws where `element` has other characters than letters, digits and underscores.
  public func appending(_ element: String) throws(DBusError) -> ObjectPath {
    try ObjectPath(self == .root ? "/\(element)" : "\(text)/\(element)")
  }

  /// Whether this is `other`, or an object below it.
  public func isWithin(_ other: ObjectPath) -> Bool {
    self == other || text.hasPrefix(other.prefixOfChildren)
  }

  /// What the paths of all objects below begin with.
  var prefixOfChildren: String { self == .root ? "/" : text + "/" }

  public var description: String { text }

  public static func < (left: ObjectPath, right: ObjectPath) -> Bool { left.text < right.text }
}
