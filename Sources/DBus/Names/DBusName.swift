/// Rules of names. libdbus takes a wrong name for a mistake of the program and may abort, so all of them are checked here first.
///
/// Source: D-Bus Specification, "Valid Names".
public enum DBusName {
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    case bus = "bus name"
    case interface = "interface name"
    case member = "member name"
    case error = "error name"
  }

  /// Octets of the longest name.
  public static let maximumLength = 255

  /// Whether `text` is a name of that kind.
  public static func isValid(_ text: String, as kind: Kind) -> Bool {
    let bytes = text.utf8
    guard !bytes.isEmpty, bytes.count <= maximumLength else { return false }
    switch kind {
    case .member:
      return isElement(bytes[...], digitFirst: false, hyphen: false)
    case .interface, .error:
      return areElements(bytes[...], digitFirst: false, hyphen: false)
    case .bus:
      guard bytes.first == UInt8(ascii: ":") else {
        return areElements(bytes[...], digitFirst: false, hyphen: true)
      }
      return areElements(bytes.dropFirst(), digitFirst: true, hyphen: true)
    }
  }

  /// Throws with kind ``DBusError/Kind/invalidArgument`` where ``isValid(_:as:)`` is false.
  public static func check(_ text: String, as kind: Kind) throws(DBusError) {
    guard isValid(text, as: kind) else { throw .invalid("“\(text)” is no \(kind.rawValue)") }
  }

  /// Whether it is the name that the bus gave to one connection, such as `:1.42`.
  public static func isUnique(_ text: String) -> Bool { text.utf8.first == UInt8(ascii: ":") }

  /// At least two elements between dots.
  private static func areElements(_ bytes: Substring.UTF8View, digitFirst: Bool, hyphen: Bool) -> Bool {
    let elements = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return elements.count >= 2
      && elements.allSatisfy { isElement($0, digitFirst: digitFirst, hyphen: hyphen) }
  }

  private static func isElement(_ bytes: Substring.UTF8View, digitFirst: Bool, hyphen: Bool) -> Bool {
    guard let first = bytes.first, digitFirst || !isDigit(first) else { return false }
    return bytes.allSatisfy { isWord($0) || hyphen && $0 == UInt8(ascii: "-") }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// Letters of ASCII, digits, underscore.
  static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
    default: false
    }
  }
}

/// Names that every bus has.
public enum DBusWellKnown {
  /// The bus itself, as a destination, a sender and an interface.
  public static let bus = "org.freedesktop.DBus"
  public static let busPath = ObjectPath(valid: "/org/freedesktop/DBus")
  public static let introspectable = "org.freedesktop.DBus.Introspectable"
  public static let objectManager = "org.freedesktop.DBus.ObjectManager"
  public static let peer = "org.freedesktop.DBus.Peer"
  public static let properties = "org.freedesktop.DBus.Properties"
  /// What libdbus says to its own program; never on a wire.
  static let local = "org.freedesktop.DBus.Local"
  static let localPath = "/org/freedesktop/DBus/Local"
}
